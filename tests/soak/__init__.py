"""The fault campaign: what breaks in the world, and what must not break here. `make soak` runs it at length."""
