"""Preconditions of the bundled implementations, a module per operator family, by section 1.4 of its design document."""
