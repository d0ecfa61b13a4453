"""Speed on this machine, one module a benchmark; each has `run(json)`."""
