"""The conflict matrix on real tables: every ordered pair of operations, on two handles of one version.

The later operation is ours and the earlier one of either library, or the other way round. If the later one commits,
both libraries read the rows of both deeds in order; else it raises the matrix's error and changes nothing. Every
operation after a transaction that cannot be decoded is refused too.

Two operations are not deeds here: `Clone`, which neither library commits on an existing table, and the state of a
write-ahead log, which has no API: its first step is a `CreateIndex` on no column.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

import lance_ops
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    IncompatibleTransaction,
    RetryableConflict,
    TooManyConcurrentWriters,
    UnsupportedFeature,
)
from lance_ops.pb import transaction_pb2
from lance_ops.table import encode_manifest
from lance_ops.transactions import Clone, Transaction
from tests.interop.table_model import KEY, State
from tests.transactions.test_conflict_matrix import BETTER, cells

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

from tests.interop.deeds import CONTENT, DEEDS, Place, make_table, overlay_values  # noqa: E402 # it needs the reference

LANDS = BETTER | {("Rewrite", "CreateIndex"), ("CreateIndex", "Rewrite"), ("CreateIndex", "DataReplacement")}
"""Pairs that commit here although the reference gives up.

A compaction remaps a concurrently built index; a new index is remapped, and does not cover rows that changed.
"""

Outcome = Literal["ok", "R", "X"]

PLACES: tuple[Place, ...] = get_args(Place)
MEASURED = {(ours, theirs): cell for ours, theirs, cell in cells()}
EVERYWHERE = {("Rewrite", "CreateIndex"), ("CreateIndex", "Rewrite"), ("CreateIndex", "DataReplacement")}
"""Operations that touch all rows: an index meets a rewrite, or new values of its column, at any place."""


def expected(ours: str, theirs: str, place: Place) -> Outcome:
    """Return the outcome of ours at the place `same`, after theirs, without the improvements in `LANDS`."""
    pair = _pair(ours, theirs)
    match _cell(*pair):
        case "m":
            return "R" if place == "same" else "ok"
        case "r" if pair == ("CreateIndex", "CreateIndex"):
            return "R" if place == "same" else "ok"
        case "r" if place != "far" or pair in EVERYWHERE:
            return "R"
        case "x" if place == "same":
            return "X"
        case "R":
            return "R"
        case "X":
            return "X"
        case _:
            return "ok"


def _pair(ours: str, theirs: str) -> tuple[str, str]:
    """Return the names in the matrix."""
    names = {"MergeInsert": "Update"}
    return names.get(ours, ours), names.get(theirs, theirs)


def _cell(ours: str, theirs: str) -> str:
    if ours == "ReserveFragments":
        return "X" if theirs in ("Overwrite", "Restore") else "ok"
    if ours == theirs == "UpdateBases":
        return "x"
    return MEASURED.get((ours, theirs), "ok")


def places(ours: str, theirs: str) -> tuple[Place, ...]:
    """Return the places that make a difference."""
    if _cell(*_pair(ours, theirs)) in ("m", "r", "x"):
        return PLACES
    return ("far",) if theirs == "Append" else ("same",)


PAIRS = [(ours, theirs, place) for ours in DEEDS for theirs in DEEDS for place in places(ours, theirs)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matrix") / "table"
    make_table(str(folder))
    return folder


@pytest.fixture
def uri(template: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(template, tmp_path / "table"))


@pytest.fixture(autouse=True)
def without_trying_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make verbs plan only once, so that only the commit itself resolves conflicts."""

    def once(snapshot: Any, attempt: Callable[[Any], Any], *_: object) -> Any:
        return attempt(snapshot)

    monkeypatch.setattr("lance_ops.maintenance.indexing.reindex.retry_conflicts", once)
    monkeypatch.setattr("lance_ops.writing.retry_conflicts", once)  # the public verbs call it by its door


def check(uri: str, state: State) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert ours.version == theirs.version
    assert ours.to_table().sort_by(KEY).to_pylist() == theirs.to_table().sort_by(KEY).to_pylist() == state.records()
    assert ours.config() == theirs.config() == state.config
    ours.validate()
    theirs.validate()


def files(uri: str) -> set[Path]:
    return {path for folder in ("data", "_deletions", "_indices") for path in Path(uri, folder).rglob("*")}


@pytest.mark.parametrize(
    ("ours", "theirs", "place", "by"),
    [(*pair, by) for pair in PAIRS for by in ("ours", "pylance") if by == "ours" or DEEDS[pair[1]].theirs],
)
def test_our_operation_after_any_committed_one_follows_the_matrix(
    uri: str, ours: str, theirs: str, place: Place, by: str
) -> None:
    mine, other = DEEDS[ours], DEEDS[theirs]
    stale = lance_ops.dataset(uri)
    act, library = (other.ours, lance_ops) if by == "ours" else (other.theirs, lance)
    assert act is not None
    act(library.dataset(uri), place)
    landed = other.change(place).applied(CONTENT, CONTENT, 0)
    before = files(uri)
    outcome = "ok" if _pair(ours, theirs) in LANDS else expected(ours, theirs, place)

    if outcome == "ok":
        mine.ours(stale, "same")
        check(uri, mine.change("same").applied(CONTENT, landed, 0))
    else:
        refusal = (RetryableConflict, TooManyConcurrentWriters) if outcome == "R" else IncompatibleTransaction
        with pytest.raises(refusal):
            mine.ours(stale, "same")
        assert files(uri) == before
        check(uri, landed)


@pytest.mark.parametrize(("ours", "theirs", "place"), [pair for pair in PAIRS if DEEDS[pair[0]].theirs])
def test_the_reference_s_operation_after_ours_follows_the_matrix(
    uri: str, ours: str, theirs: str, place: Place
) -> None:
    mine, other = DEEDS[ours], DEEDS[theirs]
    stale = lance.dataset(uri)
    other.ours(lance_ops.dataset(uri), place)
    landed = other.change(place).applied(CONTENT, CONTENT, 0)
    outcome = expected(ours, theirs, place)
    assert mine.theirs is not None

    if outcome == "ok":
        mine.theirs(stale, "same")
        check(uri, mine.change("same").applied(CONTENT, landed, 0))
    else:
        words = "(?i)retryable|too many concurrent" if outcome == "R" else "(?i)incompatible"
        with pytest.raises((OSError, ValueError, RuntimeError), match=words):
            mine.theirs(stale, "same")
        check(uri, landed)


def _commit_silently(uri: str) -> None:
    """Make a version without a transaction."""
    snapshot = lance_ops.dataset(uri).snapshot
    silent = replace(snapshot.manifest, version=snapshot.version + 1, transaction_file="")
    snapshot.committer.commit(silent.version, encode_manifest(silent, b""))


def _commit_the_unknown(uri: str) -> None:
    """Make a version by an operation that neither library knows: field 150."""
    snapshot = lance_ops.dataset(uri).snapshot
    envelope = transaction_pb2.Transaction(read_version=snapshot.version, uuid="a newer writer's")
    transaction = Transaction.decode(envelope.SerializeToString() + b"\xb2\x09\x00", "the test")
    assert transaction.operation.name == "UnknownOperation"
    made = replace(snapshot.manifest, version=snapshot.version + 1, transaction_file="")
    snapshot.committer.commit(made.version, encode_manifest(made, transaction.encode()))


@pytest.mark.parametrize("intervene", [_commit_silently, _commit_the_unknown], ids=["missing", "unknown"])
@pytest.mark.parametrize("ours", DEEDS)
def test_our_operation_after_a_missing_or_unknown_transaction_is_refused(
    uri: str, ours: str, intervene: Callable[[str], None]
) -> None:
    deed, stale = DEEDS[ours], lance_ops.dataset(uri)
    intervene(uri)
    before = files(uri)

    with pytest.raises((RetryableConflict, TooManyConcurrentWriters)):
        deed.ours(stale, "same")
    assert files(uri) == before
    check(uri, CONTENT)

    deed.ours(lance_ops.dataset(uri), "same")
    check(uri, deed.change("same").applied(CONTENT, CONTENT, 0))


@pytest.mark.parametrize("ours", DEEDS)
def test_our_operation_after_an_overlay_is_refused(uri: str, ours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = lance_ops.dataset(uri)
    monkeypatch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")
    overlaid = overlay_values(lance.dataset(uri))
    assert overlaid.to_table(["k", "b"], filter="k = 1").to_pylist() == [{"k": 1, "b": 1001}]
    before = files(uri)

    with pytest.raises((RetryableConflict, TooManyConcurrentWriters)):
        DEEDS[ours].ours(stale, "same")
    with pytest.raises(UnsupportedFeature, match="DATA_OVERLAYS"):
        lance_ops.dataset(uri)
    assert files(uri) == before
    assert lance.dataset(uri).version == overlaid.version


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_committing_a_clone_to_an_existing_table_is_refused(uri: str, library: Any, tmp_path: Path) -> None:
    clone = Clone(True, 2, uri) if library is lance_ops else lance.LanceOperation.Clone(True, None, 2, uri, None)
    with pytest.raises((UnsupportedFeature, OSError), match="(?i)clone"):
        library.LanceDataset.commit(library.dataset(uri), clone, read_version=3)
    with pytest.raises((DatasetAlreadyExists, OSError), match="(?i)already"):
        library.dataset(uri).shallow_clone(uri, 2)
    check(uri, CONTENT)
