"""Fewer cases with as much of their power as a budget allows."""
