"""muster's environments in the shapes that other libraries expect."""
