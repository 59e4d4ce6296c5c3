"""How fast an implementation is, and of what."""
