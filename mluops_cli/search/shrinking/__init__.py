"""A failing call reduced to the smallest one that fails for the same reason."""
