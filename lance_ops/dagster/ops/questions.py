"""The ops that answer a question about a dataset's rows and change nothing; tasks of the run's runner read the rows.

The answer is the metadata of the op's output: numbers for programs, and a table for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.api import LanceDataset
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.markdown import table
from lance_ops.dagster.ops.table_ops import Work, table_op

__all__ = ["Count", "Duplicates", "Statistics", "question_ops"]

_MOST_COLUMNS = 200
_MOST_EXAMPLES = 100
_MOST_CHARACTERS = 200
"""How much of a value the answer has: Dagster keeps it with the run's events."""


class _Question(dg.Config):
    """Which rows a question is about."""

    predicate: str | None = Field(default=None, description="SQL; only rows for which it is true. Default: all rows.")
    version: int | None = Field(default=None, description="The version to read. Default: the newest.", ge=1)

    def data(self, work: Work) -> LanceDataset:
        """Return the version to read."""
        return LanceDataset.of(work.snapshot if self.version is None else work.snapshot.at(self.version))


class Count(_Question):
    """Configuration of the op `count`. Without a predicate the manifest states the number, and no row is read."""


class Statistics(_Question):
    """Configuration of the op `statistics`."""

    columns: list[str] | None = Field(default=None, description="Default: all top-level columns that have an order.")


class Duplicates(_Question):
    """Configuration of the op `duplicates`."""

    on: list[str] = Field(description="The columns of the key.", min_length=1)
    examples: int = Field(default=10, description="How many keys to show.", ge=0, le=_MOST_EXAMPLES)


def question_ops(config: DatasetConfig) -> dict[str, dg.OpDefinition]:
    """Return the ops of a dataset that count its rows, measure its columns, and count rows with equal keys, by name."""
    return {
        "count": table_op(config, "count", "Count rows.", _count, Count, only_reads=True),
        "statistics": table_op(config, "statistics", "Measure columns.", _statistics, Statistics, only_reads=True),
        "duplicates": table_op(
            config, "duplicates", "Count rows with equal keys.", _duplicates, Duplicates, only_reads=True
        ),
    }


def _count(work: Work, asked: Count) -> Mapping[str, Any]:
    data = asked.data(work)
    return {"lance/num_rows": data.count_rows(asked.predicate, runner=work.runner), "lance/read_version": data.version}


def _statistics(work: Work, asked: Statistics) -> Mapping[str, Any]:
    data = asked.data(work)
    found = data.stats.column_stats(asked.columns, asked.predicate, runner=work.runner)
    columns = {
        name: {
            "num_nulls": each.num_nulls,
            "min": _text(each.min),
            "max": _text(each.max),
            "num_distinct": each.num_distinct,
        }
        for name, each in list(found.items())[:_MOST_COLUMNS]
    }
    measured = next(iter(found.values()), None)  # none of a table of lists, blobs or vectors alone
    num_rows = data.count_rows(asked.predicate, runner=work.runner) if measured is None else measured.num_rows
    header = ("column", "nulls", "least", "greatest", "distinct, about")
    lines = [(name, *("" if value is None else value for value in each.values())) for name, each in columns.items()]
    return {
        "lance/num_rows": num_rows,
        "lance/columns": dg.MetadataValue.json(columns),
        "lance/columns_left_out": len(found) - len(columns),
        "lance/statistics": dg.MetadataValue.md(table(header, lines)),
        "lance/read_version": data.version,
    }


def _duplicates(work: Work, asked: Duplicates) -> Mapping[str, Any]:
    data = asked.data(work)
    found = data.duplicates(asked.on, asked.predicate, examples=asked.examples, runner=work.runner)
    keys = [(*map(_text, each.values), each.num_rows) for each in found.examples]
    return {
        "lance/num_keys": found.num_keys,
        "lance/num_rows": found.num_rows,
        "lance/num_surplus_rows": found.num_surplus_rows,
        "lance/examples": dg.MetadataValue.md(table((*asked.on, "rows"), keys)),
        "lance/read_version": data.version,
    }


def _text(value: object) -> str | None:
    text = None if value is None else str(value)
    return text if text is None or len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
