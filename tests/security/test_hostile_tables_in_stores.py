"""Hostile tables in every kind of store: no verb reads, writes or removes what is outside the table's root."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from itertools import count, islice
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import LanceOpsError
from lance_ops.reading import scan_execution
from lance_ops.store import MemoryStore, open_store
from tests.security.hostile_manifests import Change, changed
from tests.security.surroundings import OUTSIDE, SECRET, Surroundings, on_disk_or_in_memory, on_server

NUM_ROWS = 11
SERVERS = {"s3": "s3_server", "azure": "azure_server", "gcs": "gcs_server"}
NUMBERS = count()

VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "open": lambda table: table.schema,
    "open a tag": lambda table: table.checkout_version("v1").schema,
    "count": lambda table: table.count_rows(),
    "scan": lambda table: sum(batch.num_rows for batch in islice(table.to_batches(), 50)),
    "take": lambda table: table.take([0, 1]).num_rows,
    "delete": lambda table: table.delete("id = 3"),
    "compact": lambda table: table.optimize.compact_files(),
    "clean up": lambda table: table.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    ),
    "tag": lambda table: table.tags.create("new"),
    "shallow clone": lambda table: clone(table.shallow_clone, table, "shallow"),
    "deep clone": lambda table: clone(table.deep_clone, table, "deep"),
}

READS = ("open", "open a tag", "count", "scan", "take")
GROUPS = (READS, *((verb,) for verb in VERBS if verb not in READS))
"""The verbs that one table is used by: those that only read share it."""


def clone(make: Callable[..., LanceDataset], table: LanceDataset, kind: str) -> LanceDataset:
    return make(f"{table.uri}-{kind}", table.version, dict(table.snapshot.storage_options))


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scans hold as much on every machine: they hold something for each core."""
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 2)


@pytest.fixture(
    scope="module", params=["local", "memory", *(pytest.param(each, marks=pytest.mark.server) for each in SERVERS)]
)
def surroundings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    folder = tmp_path_factory.mktemp("surroundings")
    if request.param in SERVERS:
        with on_server(request.getfixturevalue(SERVERS[request.param]), folder) as made:
            made.plant()
            yield made
    else:
        made = on_disk_or_in_memory(request.param, folder)
        made.plant()
        yield made


@cache
def sound() -> dict[str, bytes]:
    """Return the objects of a table of several versions, with deletions, an index and a tag, by their paths."""
    store = MemoryStore()
    rows = pa.table({"id": range(6), "s": [f"row {number}" for number in range(6)]})
    made = lance_ops.write_dataset(rows, store.uri)
    made.create_scalar_index("id", "BTREE")
    made.tags.create("v1", 1)
    made.delete("id = 2")
    made.insert(rows)
    return {each.path: bytes(store.get(each.path)) for each in store.list()}


def places(around: Surroundings) -> dict[str, list[str]]:
    """Return what a hostile manifest may call a place outside its root, by the kind of the name."""
    return {
        "paths with ..": [
            f"../{OUTSIDE}/secret.lance",
            f"../../{OUTSIDE}/secret.lance",
            f"a/../../../{OUTSIDE}/secret.lance",
            f"..%2f..%2f{OUTSIDE}%2fsecret.lance",
        ],
        "absolute paths": [f"{around.disk}/secret.lance", f"/{OUTSIDE}/secret.lance", f"//{around.disk}/secret.lance"],
        "other stores": [
            f"{around.elsewhere}/{OUTSIDE}/secret.lance",
            f"file://{around.disk}/secret.lance",
            f"{around.tables}/{OUTSIDE}/secret.lance",
        ],
        "bases": [
            f"{around.elsewhere}/{OUTSIDE}",
            f"file://{around.disk}",
            f"{around.tables}/{OUTSIDE}",
            f"../{OUTSIDE}",
        ],
        "branches": [f"../../{OUTSIDE}", OUTSIDE, f"tree/{OUTSIDE}", "main", "dev"],
        "rows in no file": [""],
        "tags": [f"../../{OUTSIDE}", f"/{OUTSIDE}", f"..%2f{OUTSIDE}", f"{around.elsewhere}/{OUTSIDE}"],
    }


KINDS = {
    "paths with ..": ("file", "text", "row ids"),
    "absolute paths": ("file", "text", "row ids"),
    "other stores": ("file", "text", "row ids"),
    "bases": ("base",),
    "branches": ("branch",),
    "rows in no file": ("rows",),
    "tags": ("tag",),
}

IGNORED = {"branches"}
"""What no verb refuses: a root that is no branch's folder is the main branch, whatever its manifest says."""


def put_table(around: Surroundings, attack: Change | None) -> str:
    """Put the table, changed by an attack, into a root of its own, and return the root's URI."""
    name = f"t{next(NUMBERS)}"
    store = open_store(f"{around.tables}/{name}", around.direct)
    newest = min(path for path in sound() if path.endswith(".manifest"))  # names count down
    for path, data in sound().items():
        if attack is not None and attack.kind == "tag" and path.startswith("_refs/tags/"):
            data = json.dumps({**json.loads(data), "branch": attack.text}).encode()
        elif attack is not None and attack.kind != "tag" and path == newest:
            data = changed(data, [attack], str(around.disk))
            assert data != sound()[newest]
        store.put(path, data)
    return store.uri


def is_within(root: str, touched: str) -> bool:
    """Return whether a traced place is of a table or its clones, or is of its bucket as a whole."""
    verb, _, place = touched.partition(" ")
    bucket, _, name = root.partition("://")[2].partition("/")
    if verb in ("HEAD", "GET") and place in (bucket, f"{bucket}/*"):
        return True  # how a store asks for the server's time; no object is read
    if verb == "POST" and place in (bucket, f"{bucket}/o", "batch/storage/v1"):
        return True  # the names of the objects are in the request's body: `secrets` shows what was removed
    beneath = f"{place}/"
    return any(beneath.startswith(f"{bucket}/{name}{clone}/") for clone in ("", "-shallow", "-deep"))


def attempt(around: Surroundings, verbs: Sequence[str], attack: Change | None) -> tuple[set[str], list[str]]:
    """Use a table that an attack changed; return the outcomes, and the places outside the root that were asked for."""
    uri, before, outcomes = put_table(around, attack), around.secrets(), set()
    with around.traced() as trace:
        for verb in verbs:
            try:
                VERBS[verb](lance_ops.dataset(uri, storage_options=around.options))
                outcomes.add("done")
            except LanceOpsError as error:
                outcomes.add(type(error).__name__)
        touched = trace()
    assert around.secrets() == before and SECRET in before.values()
    for kind in ("", "-shallow", "-deep"):
        store = open_store(f"{uri}{kind}", around.direct)
        written = [each.path for each in store.list() if each.size_bytes != len(sound().get(each.path, b""))]
        assert not [path for path in written if SECRET in bytes(store.get(path))]
    if around.options:
        assert [each for each in touched if is_within(uri, each)], "the recorder saw nothing"
    return outcomes, [each for each in touched if not is_within(uri, each)]


def may_be_read(around: Surroundings, attack: Change) -> list[str]:
    """Return what a base path makes readable by design: other places of the root's bucket, or of this machine."""
    if attack.kind != "base":
        return []
    if around.options:
        return [f"GET {around.tables.partition('://')[2]}/", f"HEAD {around.tables.partition('://')[2]}/"]
    return ["memory ", f"open {around.disk}"]


def attacks(around: Surroundings, of: str) -> list[Change]:
    """Return an attack for each group of verbs: every name of the kind, at places that a seed chooses."""
    choose = random.Random(of)
    names, kinds = places(around)[of], KINDS[of]
    number = 1 << 31 if of == "rows in no file" else 1
    return [
        Change(kinds[at % len(kinds)], choose.randrange(1000), names[at % len(names)], number)
        for at in range(len(GROUPS))
    ]


@pytest.mark.parametrize("of", list(KINDS))
def test_no_verb_on_a_hostile_table_leaves_its_root(surroundings: Surroundings, of: str) -> None:
    outcomes: set[str] = set()
    for verbs, attack in zip(GROUPS, attacks(surroundings, of), strict=True):
        found, outside = attempt(surroundings, verbs, attack)
        allowed = tuple(may_be_read(surroundings, attack))
        assert [each for each in outside if not each.startswith(allowed)] == [], (verbs, attack)
        outcomes |= found
    assert of in IGNORED or outcomes - {"done"}, "no attack was refused"


def test_every_verb_works_on_the_sound_table_and_stays_in_its_root(surroundings: Surroundings) -> None:
    for verbs in GROUPS:
        assert attempt(surroundings, verbs, None) == ({"done"}, []), verbs
    opened = lance_ops.dataset(put_table(surroundings, None), storage_options=surroundings.options)
    assert (opened.count_rows(), VERBS["scan"](opened), VERBS["take"](opened)) == (NUM_ROWS, NUM_ROWS, 2)


def test_the_recorder_sees_a_read_of_every_place_outside(surroundings: Surroundings) -> None:
    root = f"{surroundings.tables}/t"
    for uri in (surroundings.tables, surroundings.elsewhere, "disk"):
        with surroundings.traced() as trace:
            if uri == "disk":
                (surroundings.disk / "secret.lance").read_bytes()
            elif not Path(uri).is_absolute():
                assert bytes(open_store(uri, surroundings.options).get(f"{OUTSIDE}/secret.lance")) == SECRET
            else:
                continue
            assert [each for each in trace() if not is_within(root, each)]
