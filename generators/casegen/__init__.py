"""Cases into case files: baselines, nodes, thresholds, the manifest."""
