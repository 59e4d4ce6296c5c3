"""Implementations under test, execution, judging, reports and the commands."""
