"""Policies x environments x seeds -> figures one can trust."""
