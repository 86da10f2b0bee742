"""What all kernels share: how they are compiled, and how they ask for memory ahead of time."""
