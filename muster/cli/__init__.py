"""One module a command: a settings dataclass with a `run` method. Heavy imports happen inside `run`."""
