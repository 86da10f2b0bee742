"""What does an event look like? Typed attributes, encoded into the codes the kernels want."""
