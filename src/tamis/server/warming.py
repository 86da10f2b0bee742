"""A cold start: kernels are compiled in another process, so that the server answers meanwhile."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from tamis.kernels.cold import MATCHING, SCHEDULING, announce
from tamis.match.warmup import is_warmed_up

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

REASON: Final = "the kernels are being compiled, once on this machine"
_COMMAND: Final = (sys.executable, "-m", "tamis.match.warmup")
_LOG: Final = logging.getLogger("tamis.server")


class Warming:
    """Compiles what matching needs, if this machine has not done so for this version."""

    def __init__(
        self, report: Callable[[str], None] | None = None, command: tuple[str, ...] = _COMMAND
    ) -> None:
        """`report` gets a message about how long it takes."""
        self._report = report
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: Thread | None = None
        self._starting = Lock()
        self._is_closed = False

    @property
    def reason(self) -> str | None:
        """Why the server is not ready; None if it need not wait for this."""
        return REASON if self._thread is not None and self._thread.is_alive() else None

    def __enter__(self) -> Self:
        if not is_warmed_up():
            import_module("tamis.index.build")  # the kernels of imported modules are counted
            import_module("tamis.match.index")
            announce(self._announce, (*MATCHING, *SCHEDULING))
            self._thread = Thread(target=self._run, name="tamis-warm-up", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        if self._thread is not None:
            self._thread.join()

    def _announce(self, message: str) -> None:
        _LOG.info("%s", message)
        if self._report is not None:
            self._report(f"{message}; until then, /readyz says that the server is not ready")

    def _run(self) -> None:
        began = time.monotonic()
        try:
            status = self._start().wait()
        except OSError as error:
            _LOG.warning("kernels cannot be compiled in another process: %s", error)
            return
        if self._is_closed:
            return
        if status:  # they are compiled when they are called
            _LOG.warning("the process that compiles kernels ended with status %d", status)
        else:
            _LOG.info("the kernels are compiled, after %.1f s", time.monotonic() - began)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._starting:
            if self._is_closed:
                raise OSError("the server is stopping")
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Ctrl-C is for the server, which ends this process then.
                start_new_session=True,
                # The same modules as in this process, wherever they were found.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            return self._process
