"""What implementations on torch tensors share: the device, memory on it between canaries, calls, options."""
