"""Waiting for what has to happen; no test depends on how fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

# After so long, whatever is waited for hangs: no result depends on the number. It stays below
# pytest's `faulthandler_timeout`, which ends the whole run.
HANG_SECONDS = 3600


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Return once `is_so` holds; fail, with `what` is waited for, if it never does."""
    given_up = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < given_up, f"still waiting until {what}"
        time.sleep(0.01)
