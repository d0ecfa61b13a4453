"""HTTP: the solver and trained policies behind an address, within limits that hold; the page beside it."""
