"""Read-outs: they turn the matches of a question into a result, one kind of result per file.

Each has two methods (`question.Readout`): `read` takes what it needs from one block of events and
one part of the index, and `answer` combines the results of `read`.
"""
