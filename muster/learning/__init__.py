"""Learners: tune a scoring model on a small world."""
