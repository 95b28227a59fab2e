"""Run failing tasks on a Spark master that tries each four times; print what came of them as one line of JSON.

A session has one master, so this needs a process of its own. The argument is a folder for marks of the attempts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.spark import OnSpark, get_or_create


def mark(folder: str) -> int:
    """Leave a mark, and return how many marks were there."""
    earlier = len(os.listdir(folder))
    Path(folder, str(earlier)).touch()
    return earlier


def fail_twice(folder: str) -> str:
    if mark(folder) < 2:
        raise StoreError("503 Slow Down")
    return "done"


def fail_always(folder: str) -> str:
    mark(folder)
    raise StoreError("503 Slow Down")


def die_twice(folder: str) -> str:
    if mark(folder) < 2:
        os._exit(3)
    return "done"


def find_damage(folder: str) -> str:
    mark(folder)
    raise CorruptFile("file-1", "footer", "is torn")


TASKS: dict[str, Callable[[str], str]] = {
    "a store that is too busy at first": fail_twice,
    "a store that stays too busy": fail_always,
    "a worker that dies at first": die_twice,
    "a file that is damaged": find_damage,
}


def main(scratch: Path) -> None:
    """Run each function as a task of its own."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    runner = OnSpark(get_or_create("repeated tasks", master="local[2,4]", config={"spark.driver.memory": "1g"}))
    found = {}
    for name, function in TASKS.items():
        folder = scratch / name
        folder.mkdir()
        try:
            outcome = runner.map(function, [str(folder)])[0]
        except Exception as error:  # noqa: BLE001 - it is what the test compares
            outcome = f"{type(error).__name__}: {error}"
        found[name] = {"outcome": outcome, "attempts": len(os.listdir(folder))}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
