"""Case files: reading, writing and converting them, external data, enum numberings."""
