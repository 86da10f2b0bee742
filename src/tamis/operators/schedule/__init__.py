"""In which order are expensive calls made, and which calls are not needed?

A schedule is built once from gates over calls, their costs and their selectivities. Each event has
an `EventRun`, which chooses a call, takes its result, and chooses the next.
"""

from tamis.operators.schedule.adaptive import make_schedule
from tamis.operators.schedule.gates import Gates
from tamis.operators.schedule.run import EventRun, Schedule

__all__ = ["EventRun", "Gates", "Schedule", "make_schedule"]
