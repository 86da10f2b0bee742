"""The hot loops of building: only these are compiled."""
