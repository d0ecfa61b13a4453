"""Losses and returns: from decisions to slopes in the scores."""
