"""Groups of tasks: every task once, few groups, and about the same weight in each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.spark.running.group_dealing import deal

pytestmark = pytest.mark.spark


def test_without_weights_tasks_are_dealt_in_turn() -> None:
    assert deal("abcde", 2) == [[(0, "a"), (2, "c"), (4, "e")], [(1, "b"), (3, "d")]]


def test_a_heavy_task_is_alone_and_first() -> None:
    assert deal("abcd", 2, [1, 1, 100, 1]) == [[(2, "c")], [(0, "a"), (1, "b"), (3, "d")]]


def test_there_are_no_empty_groups() -> None:
    assert deal("ab", 8) == [[(0, "a")], [(1, "b")]]


@given(st.lists(st.integers(0, 1 << 40), max_size=60), st.integers(1, 12))
def test_each_task_is_in_one_group_and_no_group_is_much_heavier(weights: list[int], num_groups: int) -> None:
    groups = deal(weights, num_groups, weights)
    assert sorted(index for group in groups for index, _ in group) == list(range(len(weights)))
    assert all(weight == weights[index] for group in groups for index, weight in group)
    loads = [sum(max(weight, 1) for _, weight in group) for group in groups]
    assert loads == sorted(loads, reverse=True)
    if loads:  # the heaviest group was the lightest before its last task
        assert loads[0] - loads[-1] <= max(*weights, 1)
