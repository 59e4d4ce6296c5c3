"""YAML specs: grammar, expansion into cases, selection."""
