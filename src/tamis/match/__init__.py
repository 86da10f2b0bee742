"""Which subscriptions are true? Kernels, the batch and the single-event matcher, explain."""
