"""Experiments: the tables and figures of the papers, measured here and set beside theirs.

A *sweep* is what is measured: settings, and the rows that each gives. An *experiment* is one table
or figure made of a sweep's rows, with what the paper published and a verdict that is computed.
Several experiments may show one sweep, which is measured once.
"""
