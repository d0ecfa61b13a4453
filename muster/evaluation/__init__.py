"""Policies x worlds x seeds -> figures one can trust."""
