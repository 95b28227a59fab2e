"""What reads of several fragments do together is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lance_ops.core.schema import Schema
from lance_ops.file import AlikeFiles
from lance_ops.reading import joined_fragments, scan_execution
from lance_ops.reading.joined_fragments import JoinedFragments
from lance_ops.snapshot import Snapshot, open_alike
from lance_ops.table import Fragment


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many fragments each joint read has."""
    counts: list[int] = []
    open_fragments = JoinedFragments.open

    def recording(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> JoinedFragments | None:
        found = open_fragments(snapshot, fragments, schema)
        if found is not None:
            counts.append(len(fragments))
        return found

    monkeypatch.setattr(JoinedFragments, "open", recording)
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 1)
    return counts


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many files are opened by each call, 0 for those that must be opened one by one."""
    counts: list[int] = []

    def recording(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> AlikeFiles | None:
        found = open_alike(snapshot, fragments, schema)
        counts.append(0 if found is None else len(fragments))
        return found

    monkeypatch.setattr(joined_fragments, "open_alike", recording)
    return counts
