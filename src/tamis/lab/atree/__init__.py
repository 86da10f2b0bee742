"""The A-Tree paper (Ji and Jacobsen 2021): its index, and the algorithms it is compared with."""
