"""Kernels of the bundled operators, right ones and ones with one fault each that a good suite must catch."""
