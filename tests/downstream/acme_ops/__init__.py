"""An operator and an implementation for mluops, as another author would package them."""
