"""Searches that make many runs: which faults a suite misses."""
