"""Make the demo's folders and its Dagster instance, which `make run` and `make ui` share.

python -m jobs.instance [--root FOLDER] COMMAND …     run a command in the demo's environment

<root>/landing   raw files        <root>/lake   Lance datasets        <root>/dagster   DAGSTER_HOME
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.instances import instance_file

__all__ = ["DEFAULT_ROOT", "DemoPlace", "main"]

_REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_ROOT = _REPOSITORY / ".demo"
_IN_USE = "in-use"


@dataclass(frozen=True)
class DemoPlace:
    """The folders of the demo."""

    root: Path

    @property
    def landing(self) -> Path:
        """The raw files."""
        return self.root / "landing"

    @property
    def lake(self) -> Path:
        """The Lance datasets."""
        return self.root / "lake"

    @property
    def dagster_home(self) -> Path:
        """Dagster's own storage."""
        return self.root / "dagster"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the declared datasets and Dagster read."""
        return {
            "DAGSTER_HOME": str(self.dagster_home),
            "LANCE_OPS_LAKE": str(self.lake),
            "LANCE_OPS_LANDING": str(self.landing),
            # The demo stays on this machine, and must work where the host's name does not resolve.
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def prepare(self) -> None:
        """Make the folders and the instance if they are missing, and set the environment variables.

        A lock admits one process at a time, because two that create an instance's SQLite files at once damage them.
        """
        for folder in (self.landing, self.lake, self.dagster_home):
            folder.mkdir(parents=True, exist_ok=True)
        os.environ.update(self.environment)
        with (self.root / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (self.dagster_home / "dagster.yaml").write_text(instance_file("laptop"), "utf-8")
            with dg.DagsterInstance.get() as instance:
                instance.get_run_records(limit=1)

    def hold(self) -> None:
        """Keep other processes from clearing the folder until this process ends, also after an `exec`."""
        self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root / _IN_USE, os.O_RDWR | os.O_CREAT)
        os.set_inheritable(descriptor, True)
        fcntl.flock(descriptor, fcntl.LOCK_SH)

    def clear(self) -> None:
        """Remove the folders of earlier demos; raise `ConfigError` while a process uses them."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / _IN_USE).open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(f"{self.root} is in use, perhaps by `make ui`: stop that first") from error
            for folder in (self.landing, self.lake, self.dagster_home):
                shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Replace this process by the command, in the demo's environment."""
    parser = argparse.ArgumentParser(prog="python -m jobs.instance", description=main.__doc__)
    parser.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="the demo's folder (default: %(default)s)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    parsed = parser.parse_args(arguments)
    place = DemoPlace(parsed.root.resolve())
    place.prepare()
    place.hold()
    if parsed.command:
        # A background job of a shell script inherits ignored signals, and Dagster would then not stop on them.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(parsed.command[0], parsed.command)


if __name__ == "__main__":
    main()
