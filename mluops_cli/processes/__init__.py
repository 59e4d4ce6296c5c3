"""Process trees, reapers and scratch directories."""
