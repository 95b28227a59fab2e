"""A process that changes one table by SQL of Spark for some seconds, and prints how many rows each kind changed.

Called as `python -m tests.contention.sql_writer URI NUMBER SECONDS`. Each row `kept` has a counter of all writers, `n`,
and one of this writer, `u0` or `u1`. Rows `new` are this writer's own: it inserts and deletes them.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter

import lance_ops
from lance_ops.core.errors import TooManyConcurrentWriters
from lance_ops.spark import get_or_create, sql

OWN_IDS = 1_000_000
"""Writer 0 inserts ids from here on, and writer 1 from twice as many."""


def main(uri: str, number: int, seconds: float) -> Counter[str]:
    """Change the table until the time is over."""
    session, chosen, changed = get_or_create(master="local[1]"), random.Random(number), Counter[str]()
    table, counter, own, inserted = f"lance.`{uri}`", f"u{number}", OWN_IDS * (number + 1), 0
    statements = {
        "updated": lambda: (
            f"UPDATE {table} SET n = n + 1, {counter} = {counter} + 1 "
            f"WHERE id % 7 = {chosen.randrange(7)} AND kind = 'kept'"
        ),
        "merged": lambda: (
            f"MERGE INTO {table} t USING (SELECT id, n FROM {table} WHERE kind = 'kept' AND id % 11 = "
            f"{chosen.randrange(11)}) q ON t.id = q.id "
            f"WHEN MATCHED AND t.n >= 0 THEN UPDATE SET n = q.n + 1, {counter} = t.{counter} + 1"
        ),
        "inserted": lambda: (
            f"MERGE INTO {table} t USING (SELECT id + {own + 10 * inserted} AS id FROM range(10)) q "
            "ON t.id = q.id AND t.n >= 0 WHEN NOT MATCHED THEN "
            "INSERT (id, n, u0, u1, kind) VALUES (q.id, 0, 0, 0, 'new')"
        ),
        "deleted": lambda: (
            f"DELETE FROM {table} WHERE kind = 'new' AND id % 5 + 0 = {chosen.randrange(5)} "
            f"AND id BETWEEN {own} AND {own + OWN_IDS - 1}"
        ),
    }
    session.range(1).collect()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        kind = chosen.choice([*statements, "compacted"])
        try:
            if kind == "compacted":
                lance_ops.dataset(uri).optimize.compact_files(target_rows_per_fragment=500)
                continue
            changed[kind] += sql(session, statements[kind]()).collect()[0][0]
        except TooManyConcurrentWriters:
            changed["refused"] += 1
        inserted += kind == "inserted"
    return changed


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
