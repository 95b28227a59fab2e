"""Shares of sorted runs have exact sizes, together all rows in order, and few rows besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.indices.btree.merge_plan import RunSample, Share, plan_shares

KEYS = st.none() | st.integers(0, 6)


def order(key: int | None) -> tuple[bool, int]:
    return key is not None, key or 0


def sample(keys: list[int | None], stride: int) -> RunSample:
    rows = sorted({*range(0, len(keys), stride), len(keys) - 1})
    return RunSample(pa.array([keys[row] for row in rows], pa.int64()), np.array(rows), len(keys))


def sample_of(first: int, step: int, num_rows: int, stride: int) -> RunSample:
    """The sample of a run with the keys first, first + step, …"""
    rows = np.unique(np.append(np.arange(0, num_rows, stride), num_rows - 1))
    return RunSample(pa.array(first + rows * step), rows, num_rows)


def merged(runs: list[list[int | None]], share: Share) -> list[tuple[Any, int, int]]:
    """The share's rows as (key, run, place), by sorting all rows of its slices."""
    bounds = enumerate(zip(share.starts.tolist(), share.stops.tolist(), strict=True))
    rows = [(order(runs[run][at]), run, at) for run, (start, stop) in bounds for at in range(start, stop)]
    return sorted(rows)[share.skip_rows : share.skip_rows + share.num_rows]


@settings(max_examples=400)
@given(
    runs=st.lists(
        st.lists(KEYS, min_size=1, max_size=30).map(lambda run: sorted(run, key=order)), min_size=1, max_size=5
    ),
    stride=st.integers(1, 5),
    share_rows=st.integers(1, 20),
)
def test_the_shares_of_any_runs_are_their_rows_in_order(
    runs: list[list[int | None]], stride: int, share_rows: int
) -> None:
    whole = sorted((order(key), run, at) for run, keys in enumerate(runs) for at, key in enumerate(keys))
    shares = list(plan_shares([sample(run, stride) for run in runs], share_rows))
    assert [row for share in shares for row in merged(runs, share)] == whole
    assert [share.num_rows for share in shares[:-1]] == [share_rows] * (len(shares) - 1)
    for share in shares:
        read = int((share.stops - share.starts).sum())
        assert read <= share.num_rows + 4 * stride * len(runs)


@pytest.mark.parametrize("keys", ["distinct", "equal", "one run after the other"])
def test_a_share_of_many_rows_reads_few_others(keys: str) -> None:
    num_runs, rows, stride = 40, 1 << 16, 4096
    samples = {
        "distinct": [sample_of(run, num_runs, rows, stride) for run in range(num_runs)],
        "equal": [sample_of(7, 0, rows, stride)] * num_runs,
        "one run after the other": [sample_of(run * rows, 1, rows, stride) for run in range(num_runs)],
    }[keys]
    shares = list(plan_shares(samples, 1 << 18))
    assert [share.num_rows for share in shares] == [1 << 18] * 10
    for share in shares:
        touched = np.flatnonzero(share.stops > share.starts)
        assert len(touched) == num_runs if keys == "distinct" else len(touched) <= 6
        others = num_runs if keys == "distinct" else 2
        assert int((share.stops - share.starts).sum()) <= share.num_rows + 2 * stride * others


def test_a_hundred_million_keys_are_planned_from_one_key_a_page() -> None:
    num_runs, rows, stride = 25, 4_000_000, 4096
    samples = [sample_of(run, num_runs, rows, stride) for run in range(num_runs)]
    shares = list(plan_shares(samples, 1 << 22))
    assert sum(len(each.keys) for each in samples) == 24_450
    assert sum(share.num_rows for share in shares) == num_runs * rows
    assert len(shares) == 24 and all(len(share.starts) == num_runs for share in shares)
    assert abs(int(shares[1].starts[0]) - (1 << 22) // num_runs) <= 2 * stride
