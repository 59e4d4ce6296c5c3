"""The Markdown reports."""
