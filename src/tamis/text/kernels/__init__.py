"""The hot loops: only these are compiled."""
