"""Loops over flat arrays: what is known of one event, which call is next, chains, the optimum."""
