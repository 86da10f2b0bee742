"""The hot loops of the A-Tree paper's algorithms."""
