"""Faulty implementations, with one injected fault each, which the suites must catch."""
