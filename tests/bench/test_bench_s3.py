from __future__ import annotations

from collections import Counter

import pytest

from tests.bench.s3.operations import ALL_OPERATIONS
from tests.bench.s3.page import page
from tests.bench.s3.rounds import CONTENDERS, WITH_FSSPEC, Measured, measure


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


@pytest.mark.interop
@pytest.mark.server
def test_each_operation_is_counted_for_both_and_both_answer_the_same() -> None:
    results = measure(1, num_rows=800, latency_seconds=0)
    assert list(results) == [each.name for each in ALL_OPERATIONS]
    for name, found in results.items():
        assert set(found) == set(CONTENDERS)
        for each in found.values():
            # A warm handle holds the rows of so small a table.
            assert (each.typical_requests.total() > 0) or "warm" in name
            assert (each.typical_bytes > 0) or "warm" in name
            assert len(each.seconds) == len(each.cpu_seconds) == 1
    assert results["open"]["ours"].typical_requests == {"LIST": 1}  # this process made the newest version
