"""Experiments: the tables and figures of the papers, measured here and compared with theirs.

A *sweep* is measured: it has settings, and each gives rows. An *experiment* is one table or figure
made from a sweep's rows, with the published figures and a computed verdict. Several experiments may
show the same sweep, which is measured once.
"""
