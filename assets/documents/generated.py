"""Generate raw files of documents: each day some new ones, and new texts of old ones.

    python -m assets.documents.generated FOLDER [DAYS]

From the third day on, files have the column `language`. The same day gives the same file.
"""

from __future__ import annotations

import os
import random
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

__all__ = ["FIRST_DAY", "NEW_EACH_DAY", "land_day"]

FIRST_DAY = date(2026, 1, 1)
NEW_EACH_DAY = 20
_CHANGED_EACH_DAY = 5
_LANGUAGE_SINCE = 2
_AUTHORS = 7
_WORDS = ("fragment", "manifest", "version", "index", "scan", "merge", "column", "page", "lake", "batch", "table")
_PAGE_BYTES = 4096


def land_day(folder: Path, number: int) -> Path:
    """Write the file of day `number` (0, 1, …) and return its path; it seems delivered early on the next morning."""
    chosen, day = random.Random(number), FIRST_DAY + timedelta(days=number)
    first = number * NEW_EACH_DAY
    ids = [*range(first, first + NEW_EACH_DAY), *chosen.sample(range(first), min(first, _CHANGED_EACH_DAY))]
    columns: dict[str, pa.Array] = {
        "id": pa.array(ids, pa.int64()),
        "author": pa.array([f"author-{each % _AUTHORS}" for each in ids]),
        "text": pa.array([" ".join([*chosen.choices(_WORDS, k=12), day.isoformat()]) for _ in ids]),
        "page": pa.array([chosen.randbytes(_PAGE_BYTES) for _ in ids], pa.large_binary()),
    }
    if number >= _LANGUAGE_SINCE:
        columns["language"] = pa.array([chosen.choice(["de", "en"]) for _ in ids])
    schema = pa.schema(
        pa.field(name, values.type, metadata={"lance-encoding:blob": "true"} if name == "page" else None)
        for name, values in columns.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{day.isoformat()}.parquet"
    pyarrow.parquet.write_table(pa.Table.from_arrays(list(columns.values()), schema=schema), path)
    delivered = datetime.combine(day + timedelta(days=1), time(2, 0), UTC).timestamp()
    os.utime(path, (delivered, delivered))
    return path


if __name__ == "__main__":
    for each in range(int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        land_day(Path(sys.argv[1]), each)
