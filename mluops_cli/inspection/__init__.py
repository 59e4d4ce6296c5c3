"""What a case file holds, told without running anything: descriptions, figures of values, slices."""
