"""Count the columns that scans read, of single fragments and of fragments that are read together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.reading.joined_fragments import JoinedFragments
from lance_ops.snapshot.fragment_reader import FragmentReader

__all__ = ["count_columns"]


def count_columns(monkeypatch: pytest.MonkeyPatch, verbs: Iterable[str] = ("read", "take")) -> Counter[str]:
    """Return a counter of the columns that are read from now on, by ranges (`read`) or by offsets (`take`)."""
    names: Counter[str] = Counter()

    def counting(function: Any) -> Any:
        def counted(reader: Any, schema: Schema, *where: Any, **options: Any) -> pa.Table:
            names.update(schema.names)
            return function(reader, schema, *where, **options)

        return counted

    for reader in (FragmentReader, JoinedFragments):
        for verb in verbs:
            monkeypatch.setattr(reader, verb, counting(getattr(reader, verb)))
    return names
