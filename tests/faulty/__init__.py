"""Faulty implementations, one planted fault each: what the suites must catch."""
