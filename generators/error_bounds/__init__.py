"""How far a correct kernel may be from the baseline: rounding errors, bounded per element."""
