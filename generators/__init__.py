"""Operators (contracts, input generators, reference kernels), spec expansion and random data."""
