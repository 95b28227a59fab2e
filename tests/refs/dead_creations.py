"""A check of interrupted branch creations, for every kind of committer."""

from __future__ import annotations

from functools import partial

import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput
from lance_ops.refs import branches as verbs
from lance_ops.store import SimulatedCrash

__all__ = ["check_a_dead_creation_is_removed"]


def check_a_dead_creation_is_removed(dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a branch without its file: creating it again fails until the branch is deleted."""
    num_rows = dataset.count_rows()

    def dies(*_: object) -> None:
        raise SimulatedCrash("gone")

    with monkeypatch.context() as patch:
        patch.setattr(verbs, "create_branch_file", dies)
        with pytest.raises(SimulatedCrash):
            dataset.create_branch("dev")
    with pytest.raises(InvalidInput, match=r"branches\.delete"):
        dataset.create_branch("dev")
    explain = partial(dataset.explain_cleanup_old_versions, error_if_tagged_old_versions=False)
    [warning] = explain().warnings
    assert warning.startswith("branch 'dev' was not created or removed completely") and "branches.delete" in warning
    dataset.branches.delete("dev")
    assert not explain().warnings
    assert dataset.create_branch("dev").count_rows() == num_rows
