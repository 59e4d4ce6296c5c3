"""Reports: listeners on the events of a run."""
