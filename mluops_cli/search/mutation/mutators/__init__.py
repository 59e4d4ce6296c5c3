"""The mutations: what is changed in a source text, and where."""
