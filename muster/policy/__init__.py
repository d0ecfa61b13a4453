"""Policies: scores and inference in one; what they are called and how they are kept."""
