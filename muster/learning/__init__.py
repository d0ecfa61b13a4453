"""Learners: tune a scoring model on a small environment."""
