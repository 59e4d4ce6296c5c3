"""Runs on disk: results, summaries, kept cases, gates, waivers, comparison."""
