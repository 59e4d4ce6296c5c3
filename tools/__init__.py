"""Tools of this repository: what rebuilds the files that are made from others."""
