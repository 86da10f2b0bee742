"""What if a test is expensive? Operators, and in which order to call them."""
