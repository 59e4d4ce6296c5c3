"""The operators: one module each, found by scanning this package."""
