"""Faults injected into right outputs, to verify that the judge detects them."""
