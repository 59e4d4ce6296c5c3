"""Runs over time: what was measured and judged, in a SQLite file, and what changed when."""
