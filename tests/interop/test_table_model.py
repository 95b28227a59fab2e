"""Handles of both libraries, some of them stale, take random steps on one table, which is compared with a model.

After each step both libraries read the rows of the model, at every retained version of the main branch, of branches and
of clones. A refused step changes nothing, and a refused step of ours leaves no file behind. Each index finds the rows
that it covers. In a table with stable row ids a row keeps its id and records the versions that created and last changed
it, and the change feed between two versions is correct.

Where the reference is known to lose values, or to refuse its own work, the rules avoid the case and say so. Left out
are base paths and blobs, whose files are elsewhere (`test_base_paths`, `test_blobs`), stores other than a local disk
(`test_object_stores`, the contention tests), and threads: steps run one after the other, and stale handles stand for
concurrent writers.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

from tests.interop.table_rules import ContentRules  # noqa: E402 # it needs the reference
from tests.interop.table_upkeep_rules import UpkeepRules  # noqa: E402 # it needs the reference

# Shrinking a failing example takes many times as long as running all examples.
BOUNDED = settings(phases=[Phase.generate], report_multiple_bugs=False)


class Addresses(ContentRules, UpkeepRules):
    stable_row_ids = False


class StableIds(ContentRules, UpkeepRules):
    stable_row_ids = True


@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step(table: type[ContentRules]) -> None:
    table.stale_steps_done.clear()
    run_state_machine_as_test(table, settings=settings(BOUNDED, max_examples=8, stateful_step_count=20))
    assert all(table.stale_steps_done[library] for library in ("lance_ops", "lance")), table.stale_steps_done


@pytest.mark.soak
@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step_for_long(table: type[ContentRules]) -> None:
    run_state_machine_as_test(
        table, settings=settings(BOUNDED, max_examples=100, stateful_step_count=40, derandomize=False)
    )
