"""Which names in `_versions` are versions, and which is the newest."""

from __future__ import annotations

import pytest

from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.committers.versions_directory import list_newest, list_versions
from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.store import LocalStore, MemoryStore, Store

NO_VERSIONS = [
    "d9223372036854775809.manifest",
    "18446744073709551615.manifest-8f14e45f",
    "latest_version_hint.json",
    ".tmp_7.manifest_9c100374",
    "notes.txt",
    "x.manifest",
    ".manifest",
]


@pytest.fixture(params=[MemoryStore, LocalStore], ids=["in-order", "unordered"])
def store(request: pytest.FixtureRequest, tmp_path: object) -> Store:
    kind = request.param
    return LocalStore(str(tmp_path)) if kind is LocalStore else MemoryStore()


def write(store: Store, naming: ManifestNaming, versions: range) -> None:
    for version in versions:
        store.put(f"_versions/{manifest_name(version, naming)}", b"%d" % version, durable=False)


@pytest.mark.parametrize("naming", list(ManifestNaming))
def test_only_manifests_are_versions(store: Store, naming: ManifestNaming) -> None:
    for name in NO_VERSIONS:
        store.put(f"_versions/{name}", b"x")
    assert list_versions(store).versions == list_newest(store).versions == ()

    write(store, naming, range(8, 12))
    assert list_versions(store).versions == (8, 9, 10, 11)
    assert list_newest(store).versions[-1] == 11
    assert list_newest(store).naming is naming


@pytest.mark.parametrize("naming", list(ManifestNaming))
@pytest.mark.parametrize("num_versions", [15, 16, 17, 60])
def test_the_newest_is_found_however_many_there_are(store: Store, naming: ManifestNaming, num_versions: int) -> None:
    write(store, naming, range(1, num_versions + 1))

    assert list_newest(store).versions[-1] == num_versions
    assert list_versions(store).versions == tuple(range(1, num_versions + 1))
    assert PutIfAbsentCommitter(store).latest() == num_versions


def test_the_newest_is_found_behind_a_page_of_other_names(store: Store) -> None:
    for number in range(150):
        store.put(f"_versions/.stray-{number:03}", b"")
    write(store, ManifestNaming.V2, range(1, 4))
    assert list_newest(store).versions[-1] == 3


def test_a_mixture_of_naming_schemes_is_corrupt(store: Store) -> None:
    write(store, ManifestNaming.V1, range(1, 3))
    write(store, ManifestNaming.V2, range(3, 4))
    committer = PutIfAbsentCommitter(store)
    for use in (committer.latest, committer.versions, lambda: committer.commit(4, b"x"), lambda: committer.read(1)):
        with pytest.raises(CorruptFile, match="both naming schemes"):
            use()
