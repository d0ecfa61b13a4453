"""muster's worlds in the shapes that other libraries expect."""
