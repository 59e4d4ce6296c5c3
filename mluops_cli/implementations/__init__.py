"""Implementations under test: bundled, Python callables, and what others register."""
