"""The compiled part: an automaton over literals, and what follows where it meets one."""
