"""Fontoura's algorithms: trees of AND and OR over conjunctions."""
