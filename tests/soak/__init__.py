"""The fault campaign: what breaks in the environment, and what must not break here. `make soak` runs it at length."""
