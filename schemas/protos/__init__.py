"""The schema of case files (.proto and descriptor) and its message classes."""
