"""A JVM gets the archive of Spark's classes that fits it, and a session starts from it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lance_ops.core.errors import ConfigError
from lance_ops.spark import find_java
from lance_ops.spark.java import archive_options, class_archive, make_archive
from tests.groups import OWN_SESSIONS

_SESSION = """
from pathlib import Path
from lance_ops.spark import get_or_create
session = get_or_create(master="local[1]", config={"spark.driver.memory": "512m"})
print(Path(f"/proc/{session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that only tells its version, beside a Spark of one jar; the cache folder has a difficult name."""
    cache = tmp_path / 'a "cache" of mine'
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_bytes(b"classes")
    home = tmp_path / "java"
    answers(home, "17.0.1")
    return home


def answers(home: Path, version: str) -> None:
    """Make a Java that answers with a version."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    lines = f"    java.home = {home}\n    java.specification.version = 17\n{version}\n"
    script.write_text(f"#!/bin/sh\nprintf '%s' '{lines}' >&2\n")
    script.chmod(0o755)


def made(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an archive that is an empty file."""
    with monkeypatch.context() as patched:
        patched.setattr(class_archive, "_run", lambda command, file, home: file.touch())
        return make_archive(home)


def test_a_jvm_without_an_archive_gets_no_options(home: Path) -> None:
    assert archive_options(home) is None


def test_the_options_name_the_archive_whatever_its_folder_is_called(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = made(home, monkeypatch)
    options = archive_options(home)
    assert options is not None
    assert shlex.split(options)[-1] == f"-XX:SharedArchiveFile={archive}"
    assert made(home, monkeypatch) == archive
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_another_java_another_jar_and_another_class_path_have_archives_of_their_own(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made(home, monkeypatch)
    jar = tmp_path / "spark" / "jars" / "core.jar"
    answers(home, "17.0.2")
    assert archive_options(home) is None
    answers(home, "17.0.1")
    assert archive_options(home) is not None
    jar.write_bytes(b"other classes")
    assert archive_options(home) is None
    made(home, monkeypatch)
    assert archive_options(home) is not None
    settings = tmp_path / "spark" / "conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    settings.touch()
    assert archive_options(home) is None
    settings.unlink()
    assert archive_options(home) is not None
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert archive_options(home) is None


def test_a_session_that_fails_leaves_no_archive_and_its_words_are_told(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)archived no classes of Spark \(exit code 1\).*[Gg]ateway"):
        make_archive(home)
    assert archive_options(home) is None
    assert not list(tmp_path.glob("*cache*/lance_ops/spark/*"))


@pytest.mark.spark
@OWN_SESSIONS
def test_a_session_maps_the_archive_of_its_java() -> None:
    archive = make_archive(find_java())
    ended = subprocess.run(
        [sys.executable, "-c", _SESSION],
        env={name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert str(archive) in ended.stdout, ended.stderr[-2000:]
