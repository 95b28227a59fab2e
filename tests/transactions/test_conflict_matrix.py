"""The conflict matrix that was measured with the reference, for every ordered pair of operations.

Rows are our operation, planned on the version before theirs; columns are their committed operation. `ok`: both are
committed. `R`: ours is retryable. `X`: ours is incompatible. A letter in lower case holds only if the two touch the
same fragment, column, index or key; otherwise both are committed. `m`: deletions in one fragment, both of which are
committed if their rows differ.

`BETTER` names the cells where both are committed here although the reference gives up.
"""

from __future__ import annotations

import pytest

from lance_ops.transactions import (
    Append,
    Compatible,
    Incompatible,
    Operation,
    Rebase,
    Remap,
    Restore,
    Retry,
    Verdict,
    judge,
)
from tests.transactions.samples import (
    MERGE,
    OVERWRITE,
    PROJECT,
    create_index,
    delete,
    new_fragment,
    replacement,
    rewrite,
    set_config,
    update,
)

MATRIX = """
                Append Delete Update Rewrite Overwrite CreateIndex Merge Project Restore UpdateConfig DataReplacement
Append          ok     ok     ok     ok      X         ok          ok    ok      X       ok           ok
Delete          ok     m      m      r       X         ok          R     ok      X       ok           r
Update          ok     m      m      r       X         ok          R     ok      X       ok           r
Rewrite         ok     r      r      r       X         r           R     ok      X       ok           r
Overwrite       ok     ok     ok     ok      R         ok          ok    ok      ok      ok           ok
CreateIndex     ok     ok     ok     r       X         r           ok    ok      X       ok           r
Merge           R      R      R      R       X         ok          R     X       X       ok           R
Project         ok     ok     ok     ok      X         ok          R     R       X       ok           ok
Restore         ok     ok     ok     ok      ok        ok          ok    ok      ok      ok           ok
UpdateConfig    ok     ok     ok     ok      ok        ok          ok    ok      ok      x            ok
DataReplacement ok     ok     r      r       X         r           R     ok      X       ok           r
"""

BETTER = {
    # The deletion is remapped to the fragments that the rewrite made.
    ("Delete", "Rewrite"),
    ("Update", "Rewrite"),
    # The rewrite deletes, in its new fragments, the rows that were deleted concurrently.
    ("Rewrite", "Delete"),
    ("Rewrite", "Update"),
}

HERE: dict[str, Operation] = {
    "Append": Append((new_fragment("a"),)),
    "Delete": delete(0),
    "Update": update(0),
    "Rewrite": rewrite(0),
    "Overwrite": OVERWRITE,
    "CreateIndex": create_index("one"),
    "Merge": MERGE,
    "Project": PROJECT,
    "Restore": Restore(1),
    "UpdateConfig": set_config("one"),
    "DataReplacement": replacement(0),
}
ELSEWHERE: dict[str, Operation] = HERE | {
    "Delete": delete(1),
    "Update": update(1),
    "Rewrite": rewrite(1),
    "CreateIndex": create_index("two", covers=(1,)),
    "UpdateConfig": set_config("two"),
    "DataReplacement": replacement(1),
}
VERDICTS: dict[str, type[Verdict]] = {"ok": Compatible, "R": Retry, "X": Incompatible, "M": Rebase}


def cells() -> list[tuple[str, str, str]]:
    header, *rows = MATRIX.split("\n")[1:-1]
    names = header.split()
    return [(row.split()[0], theirs, cell) for row in rows for theirs, cell in zip(names, row.split()[1:], strict=True)]


@pytest.mark.parametrize(("ours", "theirs", "cell"), cells())
def test_operations_on_the_same_part(ours: str, theirs: str, cell: str) -> None:
    expected = Remap if (ours, theirs) in BETTER else VERDICTS[cell if cell == "ok" else cell.upper()]

    assert isinstance(judge(HERE[ours], HERE[theirs]), expected)


@pytest.mark.parametrize(("ours", "theirs", "cell"), cells())
def test_operations_on_different_parts(ours: str, theirs: str, cell: str) -> None:
    expected = VERDICTS[cell] if cell in "RX" else Compatible

    assert isinstance(judge(HERE[ours], ELSEWHERE[theirs]), expected)


@pytest.mark.parametrize("ours", ["Delete", "Update", "Rewrite", "DataReplacement"])
@pytest.mark.parametrize("theirs", [delete(dropped=(0,)), update(dropped=(0,))], ids=["Delete", "Update"])
def test_a_fragment_that_was_dropped_meanwhile(ours: str, theirs: Operation) -> None:
    verdict = judge(HERE[ours], theirs)

    expected: type[Verdict] = Remap if (ours, theirs.name) in BETTER else Retry
    irregular = ours == "DataReplacement" and theirs.name == "Delete"
    assert isinstance(verdict, Incompatible if irregular else expected)


@pytest.mark.parametrize("ours", [delete(dropped=(0,)), update(dropped=(0,))], ids=["Delete", "Update"])
@pytest.mark.parametrize("theirs", ["Delete", "Update", "Rewrite", "DataReplacement"])
def test_a_fragment_to_drop_that_changed_meanwhile(ours: Operation, theirs: str) -> None:
    assert isinstance(judge(ours, HERE[theirs]), Remap if (ours.name, theirs) in BETTER else Retry)
    assert isinstance(judge(ours, ELSEWHERE[theirs]), Compatible)
