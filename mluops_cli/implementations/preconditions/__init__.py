"""What the bundled implementations accept: one module per operator family, after section 1.4 of its design document."""
