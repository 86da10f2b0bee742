"""Read-outs: what becomes of the matches of a question, one kind of result in each file.

Each has two methods (`question.Readout`): `read` takes what it needs from one block of events and
one part of the index, and `answer` joins what was read into the result.
"""
