"""Environments: search and rescue, battles, and the base for a user's own."""

from muster.envs.adapters.registration import register as _register

_register()
