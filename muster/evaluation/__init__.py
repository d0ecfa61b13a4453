"""Policies x environments x seeds -> metrics with intervals."""
