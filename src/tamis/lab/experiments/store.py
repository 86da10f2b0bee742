"""The store of results: a file for each finished setting, so that nothing is measured twice."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tamis.errors import InputError
from tamis.lab.experiments.experiment import ALGORITHM

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Scale, Setting, Sweep


PARTS = ("sweep", "setting", "scale", "seed", "finished_at", "machine", "commit", "rows")


class Store:
    """The results of one scale and one seed."""

    def __init__(self, directory: str | os.PathLike[str], scale: Scale, seed: int) -> None:
        self.scale, self.seed = scale, seed
        self.directory = Path(directory) / f"{scale}-{seed}"

    def path_of(self, sweep: Sweep, setting: Setting) -> Path:
        """The file of a setting."""
        name = ",".join(f"{key}={value}" for key, value in setting.items())
        return self.directory / sweep.name / f"{name or 'all'}.json"

    def prepare(self) -> None:
        """Make the directory; raises an error if it cannot be written."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / ".new").touch()
            (self.directory / ".new").unlink()
        except OSError as error:
            raise InputError(f"cannot write into {self.directory}: {error.strerror}") from None

    def has(self, sweep: Sweep, setting: Setting) -> bool:
        """Whether the setting is finished; raises an error if its file is not a valid result."""
        path = self.path_of(sweep, setting)
        return path.exists() and bool(self._read(sweep, setting))

    def save(self, sweep: Sweep, setting: Setting, rows: list[Row], seconds: float) -> None:
        """Store a setting's rows, atomically."""
        path = self.path_of(sweep, setting)
        path.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "sweep": sweep.name,
            "setting": setting,
            "scale": self.scale,
            "seed": self.seed,
            "cpu_seconds": round(seconds, 3),
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": describe_machine(),
            "commit": find_commit(),
            "rows": [
                setting | {name: shorten(value) for name, value in row.items()} for row in rows
            ],
        }
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
        temporary = path.with_suffix(".new")
        temporary.write_bytes(orjson.dumps(result, option=options))
        temporary.replace(path)

    def load(self, sweep: Sweep) -> list[dict[str, Any]]:
        """The results of a sweep's finished settings, in the order of the settings."""
        settings = sweep.settings(self.scale)
        return [
            self._read(sweep, setting)
            for setting in settings
            if self.path_of(sweep, setting).exists()
        ]

    def _read(self, sweep: Sweep, setting: Setting) -> dict[str, Any]:
        """The result of a setting; raises an error if its file is invalid or of another setting."""
        path = self.path_of(sweep, setting)
        try:
            result = read_result(path)
            own = {"sweep": sweep.name, "scale": self.scale, "seed": self.seed}
            # In the form of the file: JSON has no tuples.
            own["setting"] = orjson.loads(orjson.dumps(setting, option=orjson.OPT_SERIALIZE_NUMPY))
            for name, value in own.items():
                if result[name] != value:
                    raise ValueError(f"its {name} is {result[name]}, not {value}")
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} is not a valid result of an experiment: {error}",
                hint="delete it and run the experiment again",
            ) from None
        return result


def read_result(path: Path) -> dict[str, Any]:
    """The contents of a file of results; raises `ValueError` if they are invalid."""
    result = orjson.loads(path.read_bytes())
    if not isinstance(result, dict):
        raise ValueError("it is not a JSON object")
    missing = [name for name in PARTS if name not in result]
    rows = result.get("rows")
    is_table = isinstance(rows, list) and all(
        isinstance(row, dict) and isinstance(row.get(ALGORITHM), str) for row in rows
    )
    if missing or not is_table:
        raise ValueError(f"it lacks {', '.join(missing or ['rows of algorithms'])}")
    return result


def shorten(value: Any) -> Any:
    """The value with six significant digits, more than the precision of measurements."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


@cache
def describe_machine() -> dict[str, Any]:
    """The properties of the machine that affect the figures, without names."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    packages = {name: version(name) for name in ("tamis", "numba", "numpy")}
    return {
        "processor": find_processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30),
        "caches": find_caches(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | packages


def find_processor() -> str:
    """The processor's model, if the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def find_caches() -> str:
    """The sizes of the first core's caches, if the system reports them."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text(encoding="ascii").strip()
            for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found[f"L{level}"] = size
    return ", ".join(f"{level} {size}" for level, size in found.items())


@cache
def find_commit() -> str | None:
    """The commit of the source, with + if files differ from it; empty outside a checkout."""
    folder = Path(__file__).parent
    try:
        git = ["git", "-C", str(folder)]
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", str(folder.parents[1])],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
