"""Keep the classes of Spark as Java has loaded them, so that a JVM starts in half the time.

Java maps such an archive (class data sharing) instead of reading, parsing and verifying thousands of classes. The
archive is a file of about 190 MB in the user's cache folder. Its name is a digest of the Java, of Spark's jars, and of
the variables and settings that make the class path. A JVM whose class path differs in another way ignores the archive.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from lance_ops.core.errors import ConfigError
from lance_ops.spark.java.finding import cache_folder

__all__ = ["archive_options", "make_archive"]

_SILENT = "-Xlog:cds*=off"
"""If a JVM cannot use an archive, it starts without one. This option keeps it from printing why."""

_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""In a session of a few seconds, Java's second compiler takes more time than it saves."""

_CLASS_PATH_VARIABLES = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")

_SECONDS = 600
"""How long the session that makes an archive may take. On two cores it takes half a minute."""


def archive_options(home: Path) -> str | None:
    """Return the options that let a JVM of the Java in `home` map its archive; None if there is no archive."""
    archive = _archive(home)
    return _options(archive) if archive.exists() else None


def make_archive(home: Path) -> Path:
    """Start a session that loads what most sessions need, archive its classes, and return the file.

    Takes half a minute of two cores, or no time if the archive is there. The file appears whole or not at all. Raises
    `ConfigError` with what Java said if it makes none, for example if the class path has a folder with files.
    """
    archive = _archive(home)
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="unfinished-") as folder:
        base, made = Path(folder, _base(archive).name), Path(folder, archive.name)
        if not _has_base(home) and not _base(archive).exists():
            _run([home / "bin" / "java", "-Xshare:dump", f"-XX:SharedArchiveFile={base}"], base, home)
            base.replace(_base(archive))
        options = f"{_options(archive)} {_FIRST_COMPILER} {_quoted(f'-XX:ArchiveClassesAtExit={made}')}"
        _run([sys.executable, "-m", "lance_ops.spark.warm", "--load-classes", options], made, home)
        made.replace(archive)
    return archive


def _run(command: list[str | Path], made: Path, home: Path) -> None:
    """Run a command until it and its JVM end. Raises `ConfigError` if it fails, takes too long or makes no file."""
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_SUBMIT_ARGS"} | {
        "JAVA_HOME": str(home)
    }
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"Java did not archive the classes of Spark within {_SECONDS} s: {command[0]}") from None
    if ended.returncode or not made.exists():
        said = (ended.stderr.strip() or ended.stdout.strip())[-1000:]
        raise ConfigError(f"Java archived no classes of Spark (exit code {ended.returncode}): {said}")


def _archive(home: Path) -> Path:
    """Return where the archive for this Java, Spark and class path is kept. It may not exist."""
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    java = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False).stderr
    jars = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in (spark / "jars").glob("*.jar"))
    paths = [os.environ.get(name) for name in _CLASS_PATH_VARIABLES]
    # Files of settings are on the class path, too. Among them may be `spark.driver.defaultJavaOptions`.
    settings = sorted(path.name for path in (spark / "conf").glob("*"))
    digest = hashlib.sha256(repr((java, str(home), str(spark), jars, paths, settings)).encode()).hexdigest()
    return cache_folder() / "spark" / f"classes-{digest[:16]}.jsa"


def _base(archive: Path) -> Path:
    """Return where the archive of Java's own classes is kept. Only a Java that came without one needs it."""
    return archive.with_suffix(".base.jsa")


def _has_base(home: Path) -> bool:
    answer = subprocess.run([home / "bin" / "java", "-Xshare:on", "-version"], capture_output=True, check=False)
    return answer.returncode == 0


def _options(archive: Path) -> str:
    """Return the options of a JVM that maps the archive and that of Java's own classes, as far as they are there."""
    files = os.pathsep.join(str(path) for path in (_base(archive), archive) if path.exists())
    return f"{_SILENT} {_quoted(f'-XX:SharedArchiveFile={files}')}" if files else _SILENT


def _quoted(option: str) -> str:
    """Quote an option for Spark's launcher, because the folder's name may have spaces and quotes."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
