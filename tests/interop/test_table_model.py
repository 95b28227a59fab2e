"""One table in many hands: handles of both libraries, some of them stale, take random steps against a model.

After each step both libraries read the rows of the model, at every version of every line that is retained: of the main
line, of branches, and of clones that live on beside what they were cloned from. A step that is refused changed nothing,
and one of ours left no file behind. What an index covers, it answers. In a table of stable row ids a row keeps its id,
tells which versions brought and last changed it, and two versions tell what changed between them.

Where the reference is known to lose values, or to refuse its own work, the rules step around it and say so. Left out
are base paths and blobs, whose files are in places of their own (`test_base_paths`, `test_blobs`), stores other than a
local disk (`test_object_stores`, the contention lab), and threads: steps follow each other, stale handles stand for
writers at the same time.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

from tests.interop.table_rules import ContentRules  # noqa: E402 # it needs the reference
from tests.interop.table_upkeep_rules import UpkeepRules  # noqa: E402 # it needs the reference

# To find a shorter failing example takes many times as long as all of the examples.
BOUNDED = settings(phases=[Phase.generate], report_multiple_bugs=False)


class Addresses(ContentRules, UpkeepRules):
    stable_row_ids = False


class StableIds(ContentRules, UpkeepRules):
    stable_row_ids = True


@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step(table: type[ContentRules]) -> None:
    run_state_machine_as_test(table, settings=settings(BOUNDED, max_examples=8, stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step_for_long(table: type[ContentRules]) -> None:
    run_state_machine_as_test(
        table, settings=settings(BOUNDED, max_examples=100, stateful_step_count=40, derandomize=False)
    )
