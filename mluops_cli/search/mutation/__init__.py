"""Is a suite good enough: mutants of an implementation's own source, run on the cases."""
