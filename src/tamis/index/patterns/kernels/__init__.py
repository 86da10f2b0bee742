"""The compiled part: an automaton over literals, and the tests that its matches lead to."""
