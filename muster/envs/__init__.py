"""Worlds: search and rescue, battles, and the base for a user's own."""
