"""Try random schemas: `python -m tests.fuzz.schemas --count 10000`.

Prints the first schema that a verb commits and that cannot be read, or that raises a foreign exception, and fails. Else
it prints how many tables were created, and the exit code is 0. `make fuzz` runs it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.schemas.history import run_history
from tests.fuzz.schemas.strategies import NAMES, fields, tables

VERSIONS = ("0.1", "2.0", "2.1", "2.2")


def main() -> None:
    """Run the search that the arguments describe."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.schemas", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many tables to try")
    parser.add_argument("--seed", type=int, default=1, help="where the search begins")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()

    @seed(arguments.seed)
    @settings(max_examples=arguments.count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(table=tables(), version=st.sampled_from(VERSIONS), name=NAMES, added=fields())
    def search(table: pa.Table, version: str, name: str, added: pa.Field) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run_history(Path(folder), table, version, name, added, lambda uri: None)
        counts.update(outcome.committed)
        counts["tried"] += 1

    search()
    print(", ".join(f"{verb} {times}" for verb, times in counts.most_common()))


if __name__ == "__main__":
    main()
