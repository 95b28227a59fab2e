from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.bench.s3.operations import ALL_OPERATIONS, operations_chosen
from tests.bench.s3.page import page
from tests.bench.s3.rounds import CONTENDERS, WITH_FSSPEC, Measured, measure

FIRST_WRITE_REQUESTS = 1
"""Requests of a first write that only this library makes; `docs/bench-s3.md` says for what."""


def measured(requests: dict[str, int], size_bytes: int, *seconds: float) -> Measured:
    rounds = len(seconds)
    return Measured([Counter(requests)] * rounds, [size_bytes] * rounds, list(seconds), list(seconds))


def test_the_page_says_first_what_is_slower_or_takes_more() -> None:
    results = {
        "worse": {"pylance": measured({"GET": 2}, 100, 1, 1, 9), "ours": measured({"GET": 3}, 201, 2, 2, 2)},
        "better": {"pylance": measured({"GET": 2}, 100, 4), "ours": measured({"PUT": 2}, 200, 1)},
    }
    results["worse"][WITH_FSSPEC] = measured({"GET": 3}, 201, 4, 4, 4)
    results["better"][WITH_FSSPEC] = measured({"PUT": 2}, 200, 1)
    shown = page({"date": "some day"}, results)
    assert "**Slower than the reference**: worse (0.50)." in shown
    assert "**More requests than the reference**: worse." in shown
    assert "**More than twice the reference's bytes**: worse." in shown
    assert "Geometric mean of the 2 ratios of seconds: 1.41" in shown
    assert "geometric mean of seconds: 1.00; of CPU seconds: 1.00. Slower than the reference: worse (0.25)." in shown
    assert "| better | 4.00 | 1.00 | 4.00 | 2 | 2 | 0.00 | 0.00 |" in shown


def test_a_run_measures_the_operations_that_its_words_name() -> None:
    assert [each.name for each in operations_chosen(["restore", "take"])] == [
        "take 10, handle warm",
        "take 10, handle new",
        "restore",
    ]
    assert operations_chosen([]) == ALL_OPERATIONS
    with pytest.raises(ValueError, match="'compress' is in none of first write, append 1 row"):
        operations_chosen(["take", "compress"])


@pytest.mark.interop
@pytest.mark.server
def test_no_operation_makes_more_requests_than_the_reference_nor_transfers_twice_its_bytes() -> None:
    results = measure(1, num_rows=40_000, latency_seconds=0)  # which compares the answers too
    assert list(results) == [each.name for each in ALL_OPERATIONS]
    for found in results.values():
        assert set(found) == set(CONTENDERS)
        assert found["pylance"].typical_requests.total() > 0
        assert found["pylance"].typical_bytes > 0
        assert all(len(found[ours].seconds) == len(found[ours].cpu_seconds) == 1 for ours in ("ours", WITH_FSSPEC))
    assert results["open"]["ours"].typical_requests == {"LIST": 1}  # this process made the newest version
    costly = [each for each in ALL_OPERATIONS if _takes_more(each.name, results[each.name])]
    if costly:  # a slow machine makes a client repeat a request, or look once more
        again = measure(1, costly, num_rows=40_000, latency_seconds=0)
        assert not [name for name, found in again.items() if _takes_more(name, found)]


def _takes_more(name: str, found: Mapping[str, Measured]) -> bool:
    """Return whether one of our clients makes more requests than the reference, or transfers over twice its bytes."""
    theirs = found["pylance"]
    most = theirs.typical_requests.total() + (FIRST_WRITE_REQUESTS if name == "first write" else 0)
    return any(
        found[ours].typical_requests.total() > most or found[ours].typical_bytes > 2 * theirs.typical_bytes
        for ours in ("ours", WITH_FSSPEC)
    )
