"""Worker processes: the child's side, the supervisor's handle, the process tree."""
