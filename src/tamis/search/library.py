"""The library of the indexes, which may be missing."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Final

_log: Final = logging.getLogger(__name__)


@cache
def load_tantivy() -> Any:
    """The library; None if it is not installed, which is logged once."""
    try:
        import tantivy
    except ImportError:
        _log.warning(
            "tantivy is not installed: searches scan all events; pip install tamis[search]"
        )
        return None
    return tantivy
