"""Process trees, reapers, their memory and state, and scratch directories."""
