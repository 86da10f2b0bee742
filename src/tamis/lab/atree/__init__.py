"""The A-Tree paper (Ji and Jacobsen 2021): its index, and what it is compared with."""
