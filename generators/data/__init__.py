"""Random data: generators of bits, distributions, samplers, values read from files."""
