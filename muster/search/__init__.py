"""Search for settings: many trials, each a normal training run, in one study that any number of processes share."""
