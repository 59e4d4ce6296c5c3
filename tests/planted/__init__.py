"""Planted faults: kernels that are right but for one rare condition, which the small suites don't cover."""
