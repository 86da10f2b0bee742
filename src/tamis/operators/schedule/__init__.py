"""In which order are expensive calls made, and which are not made at all?

A schedule is made once, of gates over calls, their costs and their selectivities. Each event is a
`Run`, which chooses a call, takes its result, and chooses the next.
"""

from tamis.operators.schedule.adaptive import make_schedule
from tamis.operators.schedule.gates import Gates
from tamis.operators.schedule.run import Run, Schedule

__all__ = ["Gates", "Run", "Schedule", "make_schedule"]
