"""Judging: is an output right, how far off is it, where, and can the verdict be trusted."""
