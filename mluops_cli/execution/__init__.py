"""From a path to records: plan, worker processes, buffers, events."""
