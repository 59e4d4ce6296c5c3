"""Faults injected into right outputs, to see the judge detect them."""
