"""Read committed versions: their manifests and the transactions that made them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from lance_ops.committers import Committer
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, ObjectNotFound, VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.store import Store
from lance_ops.table import MANIFEST_CACHE, Manifest, VersionSummary, decode_summary
from lance_ops.transactions.transaction import StoredTransaction, Transaction

__all__ = [
    "CommittedVersion",
    "decode_version",
    "manifests_newest_first",
    "read_manifest",
    "read_version",
    "summaries_newest_first",
    "versions_newest_first",
]


T = TypeVar("T")
Decoded = TypeVar("Decoded", Manifest, VersionSummary)

_READ_AHEAD = 8


@dataclass(frozen=True)
class CommittedVersion:
    """A committed version; `stored_transaction` is None if its file is gone or was never written."""

    manifest: Manifest
    stored_transaction: StoredTransaction | None

    @property
    def version(self) -> int:
        """The version's number."""
        return self.manifest.version

    @cached_property
    def transaction(self) -> Transaction | None:
        """The whole transaction, decoded on first use; raises as `StoredTransaction.decoded` does."""
        return None if self.stored_transaction is None else self.stored_transaction.decoded

    @property
    def transaction_properties(self) -> Mapping[str, str]:
        """The transaction's properties, none if there is no transaction; decodes no operation."""
        return {} if self.stored_transaction is None else self.stored_transaction.properties


def read_version(store: Store, committer: Committer, version: int, *, as_listed: bool = False) -> CommittedVersion:
    """Read a version's manifest and transaction; raise `VersionNotFound` if it was never made or was cleaned up.

    `as_listed` is as in `read_manifest`.
    """
    return decode_version(store, committer, version, _read(committer, version, as_listed))


def read_manifest(store: Store, committer: Committer, version: int, *, as_listed: bool = False) -> Manifest:
    """Read a version's manifest; raise `VersionNotFound` if it was never made or was cleaned up.

    With `as_listed`, for a caller that has just listed the versions, the manifest is not requested if the listing tells
    its bytes. It may have been cleaned up since the listing.
    """
    where, data = _where(store, committer, version), _read(committer, version, as_listed)  # the first may list versions
    return _checked(MANIFEST_CACHE.decode(data, where), store, version)


def decode_version(
    store: Store, committer: Committer, version: int, data: pa.Buffer, *, in_passing: bool = False
) -> CommittedVersion:
    """Decode a manifest, `data`; the transaction is read from the manifest, or from its file.

    A table may keep transactions only in its manifests, so they are looked for there first. `in_passing` is as in
    `ManifestCache.decode`.
    """
    where = _where(store, committer, version)
    manifest, inline = MANIFEST_CACHE.decode_with_transaction(data, where, in_passing=in_passing)
    _checked(manifest, store, version)
    return CommittedVersion(
        manifest, _read_transaction(store, manifest) if inline is None else StoredTransaction(inline, where)
    )


def versions_newest_first(
    store: Store, committer: Committer, *, down_to: int = 1, up_to: int | None = None, to_the_end: bool = False
) -> Iterator[CommittedVersion]:
    """Yield the retained versions from the newest (or `up_to`) to `down_to`, but for those that clean-up removes
    meanwhile.

    Versions are read ahead of the caller: in a remote store the more of them, the more the caller has asked for, and
    many at once if it will read `to_the_end`.
    """
    decode = partial(decode_version, in_passing=to_the_end)
    return _newest_first(decode, store, committer, down_to, up_to, to_the_end=to_the_end)


def manifests_newest_first(store: Store, committer: Committer) -> Iterator[Manifest]:
    """Yield the manifests of the versions that `versions_newest_first` yields."""
    return _newest_first(_decode_manifest, store, committer, 1, None, to_the_end=False)


def summaries_newest_first(store: Store, committer: Committer) -> Iterator[VersionSummary]:
    """Yield summaries of the versions that `versions_newest_first` yields, for a caller that reads all of them."""
    return _newest_first(_decode_summary, store, committer, 1, None, to_the_end=True)


def _newest_first(
    decode: Callable[[Store, Committer, int, pa.Buffer], T],
    store: Store,
    committer: Committer,
    down_to: int,
    up_to: int | None,
    *,
    to_the_end: bool,
) -> Iterator[T]:
    versions = committer.versions()
    numbers = (version for version in versions[::-1] if version >= down_to and (up_to is None or version <= up_to))
    is_told_by_listing = bool(versions) and committer.as_listed(versions[-1]) is not None
    if to_the_end and store.reads_in_place and not is_told_by_listing:
        for version, data in committer.read_several(numbers):
            yield decode(store, committer, version, data)
        return

    def read(version: int) -> T:
        return decode(store, committer, version, _read(committer, version, as_listed=True))

    begun: deque[Callable[[], T]] = deque()
    ahead = _READ_AHEAD if to_the_end else 1
    while True:
        for version in islice(numbers, ahead - len(begun)):
            begun.append(store.begin_call(partial(read, version)))
        if not begun:
            return
        ahead = min(2 * ahead, _READ_AHEAD)
        try:
            found = begun.popleft()()
        except VersionNotFound:
            continue
        yield found


def _decode_manifest(store: Store, committer: Committer, version: int, data: pa.Buffer) -> Manifest:
    return _checked(MANIFEST_CACHE.decode(data, _where(store, committer, version)), store, version)


def _decode_summary(store: Store, committer: Committer, version: int, data: pa.Buffer) -> VersionSummary:
    return _checked(decode_summary(data, _where(store, committer, version)), store, version)


def _read_transaction(store: Store, manifest: Manifest) -> StoredTransaction | None:
    """Read the file of the transaction that made a version; None if the version names none or it is gone."""
    if not manifest.transaction_file:
        return None
    path = f"{TRANSACTIONS_DIR}/{manifest.transaction_file}"
    try:
        data = store.get(path)
    except ObjectNotFound:
        return None
    return StoredTransaction(data.to_pybytes(), store.uri_of(path))


def _read(committer: Committer, version: int, as_listed: bool) -> pa.Buffer:
    data = committer.as_listed(version) if as_listed else None
    return committer.read(version) if data is None else data


def _checked(decoded: Decoded, store: Store, version: int) -> Decoded:
    if decoded.version != version:
        raise CorruptFile(store.uri, f"version {version}", f"its manifest has version {decoded.version}")
    return decoded


def _where(store: Store, committer: Committer, version: int) -> str:
    return store.uri_of(committer.location(version))
