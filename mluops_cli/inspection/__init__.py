"""What a case file holds, described without running anything: descriptions, statistics of values, slices."""
