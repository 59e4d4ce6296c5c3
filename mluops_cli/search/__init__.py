"""Searches that make many runs: which calls an implementation fails, which faults a suite misses."""
