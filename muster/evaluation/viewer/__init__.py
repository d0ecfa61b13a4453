"""The page that plays a recorded episode."""
