"""Hyperparameter search: a study of many trials, each a training run, shared by any number of processes."""
