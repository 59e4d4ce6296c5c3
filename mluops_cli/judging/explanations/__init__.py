"""What explains an output that no rounding explains: a constant factor, a lower precision, a missing term, others."""
