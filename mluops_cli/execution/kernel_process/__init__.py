"""The kernel process: it loads the implementation and makes its calls; its worker judges."""
