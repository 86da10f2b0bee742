"""What is new out there? Feeds are read, and their new items are published as events.

A *source* is a feed that the server reads; its state is in the tables of the broker. A document of
a feed is parsed in a child process, since it comes from strangers. A *feed* of the broker is the
opposite: matches that feed readers read.
"""
