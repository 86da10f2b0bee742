"""And if the set of subscriptions changes every second?

    live = LiveIndex.open("people.live")
    live.add("s1", "age >= 18")
    live.match({"age": 20})

A live index is durable, changes while it answers, and is opened by one process for writing.
"""

from tamis.errors import MissingDependencyError

try:
    import sqlalchemy  # noqa: F401
except ImportError:
    raise MissingDependencyError(
        "a live index needs the package sqlalchemy", hint="pip install 'tamis[live]'"
    ) from None

from tamis.live.follower import Follower, follow, follow_checked
from tamis.live.index import LiveIndex

__all__ = ["Follower", "LiveIndex", "follow", "follow_checked"]
