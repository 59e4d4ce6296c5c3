"""Looking through case files for what is wrong or odd in them, without running anything."""
