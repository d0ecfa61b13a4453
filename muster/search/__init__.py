"""Many draws of a run's settings, each a normal run, on one study that any number of processes share."""
