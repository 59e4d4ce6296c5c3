"""The YAML case specs, one file per operator: data, no code."""
