"""A package for a new operator: contract, reference stub, suites, implementation stub, tests."""
