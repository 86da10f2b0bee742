"""Merges small parts into larger ones, in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis import durable
from tamis.errors import StoreError
from tamis.index import artefact
from tamis.live.live_set import LivePart
from tamis.live.part_rows import list_rows
from tamis.versions.manifest import BASE, DELTA, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tamis.live.live_set import LiveSet
    from tamis.match.view import View

LARGE: Final = 50_000  # subscriptions: a process that has merged so many ends, to free its memory
FAN_IN: Final = 8  # parts of one tier that are merged into one of the next
SMALLEST: Final = 64  # subscriptions: parts with fewer are in the first tier
MOST_SLOWDOWN: Final = 0.3  # the share of time that small parts may add to that of the largest one
LEAST_SLOW: Final = 3  # parts: fewer are not merged for their time
MOST_HIDDEN: Final = 0.2  # the share of hidden subscriptions at which a part is rewritten
LEAST_WORN: Final = 2_000  # subscriptions: what is hidden in smaller parts costs next to nothing


def choose_run(live_set: LiveSet) -> tuple[LivePart, ...]:
    """The neighbouring parts that should be merged now; empty if there are none.

    That is the first tier with too many parts, or else a part in which much is hidden. The newest
    part is left out while it grows.
    """
    parts = live_set.parts if live_set.newest is None else live_set.parts[:-1]
    tiers = [_tier(part) for part in parts]
    for tier in sorted(set(tiers)):
        end = len(parts)
        while end:
            begin = end
            while begin and tiers[begin - 1] <= tier:
                begin -= 1
            if end - begin >= FAN_IN:
                return parts[begin:end]
            end = begin - 1 if begin else 0
    return next(((part,) for part in parts if _is_worn(part)), ())


def measure_parts(view: View, events: Sequence[Mapping[str, Any]]) -> list[float]:
    """Seconds of CPU that each part takes to match some events one by one."""
    seconds = []
    question = view.ask(None, None, None)
    for part in question.parts:
        began = time.thread_time()
        for event in events:  # without operators, which may be expensive
            read = question.singles.read(event)
            part.matcher.match_ordinals(read)
            question.singles.give_back(read)
        seconds.append(time.thread_time() - began)
    return seconds


def choose_slow(live_set: LiveSet, seconds: Sequence[float]) -> tuple[LivePart, ...]:
    """The parts that should be merged because they make matching slow, given the time that each
    takes: if all but the largest one take too much beside it, the newest of them that make the
    difference, since older ones are larger; or all parts, if the largest one is not much larger.
    """
    parts = live_set.parts if live_set.newest is None else live_set.parts[:-1]
    if len(parts) < LEAST_SLOW or len(seconds) < len(parts):
        return ()
    sizes = [part.n_shown for part in parts]
    largest = sizes.index(max(sizes))
    allowed = MOST_SLOWDOWN * seconds[largest]
    excess = sum(seconds) - seconds[largest] - allowed
    if excess <= 0:
        return ()
    # Neighbours only: later parts hide ids of earlier ones.
    is_small = sum(sizes) - sizes[largest] <= MOST_SLOWDOWN * sizes[largest]
    if not is_small or largest >= len(parts) - 2:
        return parts
    saved = 0.0
    for first in range(len(parts) - 2, largest, -1):
        merged = seconds[first : len(parts)]
        saved = sum(merged) - max(merged)  # most of the time of a small part is the same for all
        if saved >= excess:
            return parts[first:]
    return parts[largest + 1 :] if saved >= allowed / 2 else ()


def _is_worn(part: LivePart) -> bool:
    size = len(part.contents.ids)
    return size >= LEAST_WORN and part.n_hidden > MOST_HIDDEN * size


def _tier(part: LivePart) -> int:
    tier, size = 0, SMALLEST
    while part.n_shown > size:
        tier, size = tier + 1, size * FAN_IN
    return tier


class Merger:
    """Runs merges one at a time in a process that is started when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()
        self._starting = Lock()
        self._is_closed = False

    def merge(
        self, live_set: LiveSet, run: Sequence[LivePart], sample: pa.Table | None
    ) -> LivePart | None:
        """One part of the subscriptions of several parts; None if all of them are hidden."""
        n_rows = sum(part.n_shown for part in run)
        if not n_rows:
            return None
        kind = BASE if run[0].contents is live_set.parts[0].contents else DELTA
        settings = live_set.settings
        schema = settings.schema.with_operators(settings.operators)
        with self._lock, self._scratch() as scratch:
            job: dict[str, Any] = {
                "is_last": n_rows >= LARGE,
                "sample": _write_table(sample, scratch / "sample.arrow"),
                "folder": str(self._folder),
                "schema": schema.to_json(),
                "missing": str(settings.missing.value),
                "kind": kind,
                "change": max(own.change for own in run),
            }
            answer = self._ask(job | {"sources": self._describe(run, scratch)})
            if "error" in answer:  # a file may be lost or damaged: this process has the parts
                rows = self._describe(run, scratch, from_memory=True)
                answer = self._ask(job | {"sources": rows})
        if "error" in answer:
            raise StoreError(f"parts of {self._folder} were not merged: {answer['error']}")
        part = read_part(answer["part"])
        contents = artefact.open_contents(self._folder / part.folder, verify=False)
        return LivePart(contents, job["change"], None, part)

    def _describe(
        self, run: Sequence[LivePart], scratch: Path, *, from_memory: bool = False
    ) -> list[dict[str, Any]]:
        """Where the other process finds the subscriptions of some parts. It maps stored parts, as
        this process does, so that their arrays take memory only once.
        """
        sources: list[dict[str, Any]] = []
        for at, part in enumerate(run):
            stored = part.stored
            if stored is None or from_memory:
                rows = list_rows(part.contents, part.is_hidden)
                sources.append({"rows": _write_table(rows, scratch / f"{at}.arrow")})
                continue
            hidden = None
            if part.is_hidden is not None:
                hidden = str(scratch / f"{at}.npy")
                np.save(hidden, part.is_hidden)
            sources.append({"part": str(self._folder / stored.folder), "hidden": hidden})
        return sources

    def close(self) -> None:
        """End the process, and a merge that is running; nothing is lost."""
        with self._starting:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        with self._lock:  # the merge that was running has noticed
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A directory for the files of a merge; if this process is killed, it is a leftover that
        goes when the next version is saved.
        """
        try:
            with durable.draft_directory(self._folder) as directory:
                yield directory
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(f"parts of {self._folder} were not merged: {reason}") from None

    def _ask(self, job: dict[str, Any]) -> Any:
        try:
            process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{json.dumps(job)}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        except BaseException:  # such as Ctrl-C: the answer would be taken for that of the next job
            self._end()
            raise
        if line.endswith("\n"):  # otherwise it ended in the middle of its answer
            if job["is_last"]:
                process.communicate()
                self._process = None
            return json.loads(line)
        self._end()
        raise StoreError(f"the process that merges parts of {self._folder} has ended")

    def _start(self) -> subprocess.Popen[str]:
        with self._starting:
            if self._is_closed:
                raise OSError("the live index is closed")
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tamis.live.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    # The same modules as in this process, wherever they were found.
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            return self._process


def _write_table(table: pa.Table | None, path: Path) -> str | None:
    """Write a table to a file that another process can map; returns its path."""
    if table is None:
        return None
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return str(path)
