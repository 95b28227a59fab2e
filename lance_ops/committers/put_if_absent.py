"""Commit by one conditional create of the manifest, on any store that has a real one.

The bytes identify a commit: a writer that reads its own bytes back has made the version.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import islice

import pyarrow as pa

from lance_ops.committers.contract import Abandoned, CommitOutcome, Committed, Committer, Conflict
from lance_ops.committers.create_retries import CREATE_RETRIES, CreateRetries
from lance_ops.committers.known_manifests import KNOWN_MANIFESTS, is_digest
from lance_ops.committers.legacy_manifest import LEGACY_MANIFEST_PATH, LegacyManifest, read_legacy_manifest
from lance_ops.committers.recently_empty import RECENTLY_EMPTY
from lance_ops.committers.version_hint import newest_by_hint, uses_version_hint, write_hint
from lance_ops.committers.versions_directory import (
    VersionNames,
    delete_manifests,
    list_newest,
    list_versions,
    manifest_path,
)
from lance_ops.core.errors import (
    InvalidInput,
    LanceOpsError,
    ObjectNotFound,
    StoreError,
    VersionNotFound,
    WriteRefused,
)
from lance_ops.core.file_names import VERSIONS_DIR, ManifestNaming, is_detached, parse_manifest_name
from lance_ops.core.records import dataclass
from lance_ops.store import PutOutcome, Store, prove_conditional_create
from lance_ops.wire import MAGIC

__all__ = ["PutIfAbsentCommitter", "check_version"]

_READ_TOGETHER, _SHORT_BYTES = 64, 16 << 10
"""These take one MiB of memory together. Of most tables a manifest is shorter; a longer one is mapped, not copied."""


class PutIfAbsentCommitter(Committer):
    """Commits versions as files in `_versions`, created by `Store.put_if_absent`.

    `new_naming` is the naming scheme of a new dataset; an existing one keeps its scheme.
    """

    relies_on_conditional_create = True
    takes_detached = True

    def __init__(
        self,
        store: Store,
        *,
        new_naming: ManifestNaming = ManifestNaming.V2,
        retries: CreateRetries = CREATE_RETRIES,
    ) -> None:
        self._store = store
        self._new_naming = new_naming
        self._retries = retries
        self._naming: ManifestNaming | None = None  # of the manifests last listed
        # Whether a look, perhaps of another committer some seconds ago, found neither a version nor a legacy manifest.
        self._is_new = False
        self._newest: tuple[int, object] | None = None  # at the last listing, with the directory's stamp before it
        self._sealed: tuple[int, str] | None = None  # the newest version under a seal, with the seal's stamp
        self._tags: Mapping[int, str] = {}  # of the manifests last listed, as far as the store states them
        self._num_looks = self._last_look = 0  # listings that were begun; the number of the one that stated the tags
        self._written: tuple[int, bytes] | None = None  # the last version committed, until the next listing

    def __repr__(self) -> str:
        return f"PutIfAbsentCommitter({self._store!r})"

    def latest(self, known: int | None = None) -> int | None:
        stamp = self._store.directory_stamp(VERSIONS_DIR)
        if known is not None and stamp is not None and self._newest == (known, stamp):
            return known
        if known == 0 and self._naming is None and self._was_empty():
            self._is_new = True
            return None
        newest = self._hinted(stamp)
        if newest is None:
            newest = max(self._look(list_newest).versions, default=None)
        self._newest = None if newest is None else (newest, stamp)
        return newest

    def versions(self) -> list[int]:
        return list(self._look(list_versions).versions)

    def exists(self, version: int) -> bool:
        return self._store.exists(self.location(version))

    def location(self, version: int) -> str:
        if is_detached(version):
            _check_detached(version)
            return manifest_path(version, ManifestNaming.V2)
        check_version(version)
        if self._naming is None and self._hinted(self._store.directory_stamp(VERSIONS_DIR)) is None:
            legacy = self._look(list_newest).legacy
            if legacy is not None and legacy.version == version:
                return LEGACY_MANIFEST_PATH
        return manifest_path(version, self._naming or self._new_naming)

    def read(self, version: int) -> pa.Buffer:
        path = self.location(version)
        tag = self._tags.get(version)
        try:
            data = self._store.get(path)
            if tag is not None:
                KNOWN_MANIFESTS.keep(self._key(version, tag), data)
            return data
        except ObjectNotFound as error:
            self._naming = None  # all manifests may have been renamed since they were last listed
            renamed = self.location(version)
            if renamed != path and self._store.exists(renamed):
                return self._store.get(renamed)
            raise VersionNotFound(f"{self._store.uri} has no version {version}") from error

    def read_several(self, versions: Iterable[int]) -> Iterator[tuple[int, pa.Buffer]]:
        """Read short manifests in place together: to find and open each by itself takes longer than to read it."""
        numbers = iter(versions)
        if not self._store.reads_in_place:
            yield from super().read_several(numbers)
        while together := [*islice(numbers, _READ_TOGETHER)]:
            data = memoryview(bytearray(len(together) * _SHORT_BYTES))
            starts = range(0, len(data), _SHORT_BYTES)
            parts = [[(0, _SHORT_BYTES, start)] for start in starts]
            sizes: list[int] | None = None
            with suppress(LanceOpsError):
                sizes = self._store.read_parts([*map(self.location, together)], parts, data)
            if sizes is None:  # one of them is absent, or is no plain file
                yield from super().read_several(together)
                continue
            for version, start, size in zip(together, starts, sizes, strict=True):
                whole = bytes(data[start : start + size])
                if size < _SHORT_BYTES and whole.endswith(MAGIC):  # a file system may return less than there is
                    yield version, pa.py_buffer(whole)
                else:
                    yield from super().read_several([version])

    def as_listed(self, version: int) -> pa.Buffer | None:
        tag = self._tags.get(version)
        return None if tag is None else KNOWN_MANIFESTS.get(self._key(version, tag))

    def finds_nothing(self) -> bool:
        if self._store.reads_in_place or not self._store.lists_in_order:  # the others list more than the first page
            return False
        began = time.monotonic()
        is_empty = next(self._store.list(), None) is None
        if is_empty:
            self._found_empty(began)
        return is_empty

    def commit(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        _check_number(version)
        prove_conditional_create(self._store)
        return self._commit(version, data, tuple(after), prepare, self._store.put_if_absent_with_callbacks)

    def commit_exclusively(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        """Do what `commit` does without a conditional create; no other writer may commit to the dataset meanwhile."""
        _check_number(version)
        return self._commit(version, data, tuple(after), prepare, self._put_exclusively)

    def _commit(
        self,
        version: int,
        data: bytes,
        needed: tuple[str, ...],
        prepare: Callable[[], bool],
        put: Callable[..., PutOutcome],
    ) -> CommitOutcome:
        if self._naming is None and not self._is_new:
            legacy = self._look(list_newest).legacy
            if legacy is not None:
                self._adopt(legacy)
        naming, is_first = self._naming or self._new_naming, self._is_new
        path = manifest_path(version, naming)
        newest: int | None = None
        look_for_newest: Callable[[], int]

        def follow_up() -> None:
            nonlocal newest
            if is_detached(version):
                return
            self._naming, self._is_new = naming, False
            self._written = version, data
            self._was_empty()  # it is not any more
            if uses_version_hint(self._store):
                with suppress(LanceOpsError):  # the version exists, and the hint is optional
                    newest = self._hint_at(version, is_first, look_for_newest)

        def create() -> Committed | Abandoned | None:
            match put(path, data, after=needed, prepare=prepare, follow_up=follow_up):
                case PutOutcome.CREATED:
                    return Committed(version, path, newest=newest)
                case PutOutcome.ABANDONED:
                    return Abandoned(version)
            return None

        def look() -> CommitOutcome | None:
            try:
                found = self._store.get(path)
            except ObjectNotFound:
                return None
            if found != pa.py_buffer(data):
                return Conflict(version, found)
            self._store.make_durable(path)
            follow_up()
            return Committed(version, path, recognised=True, newest=newest)

        with self._watch() as changed_names:
            look_for_newest = partial(self._newest_with, version, self._newest_under_seal(), changed_names)
            return self._retries.settle(version, create, look)

    def remove(self, version: int) -> None:
        self._store.delete(self.location(version))

    def remove_several(self, versions: Sequence[int]) -> set[int]:
        return delete_manifests(self._store, {self.location(version): version for version in versions})

    def _put_exclusively(
        self,
        path: str,
        data: bytes,
        *,
        after: Iterable[str],
        prepare: Callable[[], bool],
        follow_up: Callable[[], object],
    ) -> PutOutcome:
        if self._store.exists(path):
            return PutOutcome.EXISTS
        if not prepare():
            return PutOutcome.ABANDONED
        self._store.make_durable(*after)
        self._store.put(path, data)
        follow_up()
        return PutOutcome.CREATED

    def _hint_at(self, version: int, is_first: bool, look_for_newest: Callable[[], int]) -> int | None:
        """Write a hint to the newest version, ours or a later one; return that version if it was looked for."""
        if self._sealed is None:  # there may be no hint, and to create its file would break a seal
            self._write_hint(version, None)
        stamp = None if is_first else self._store.seal_directory(VERSIONS_DIR)
        if stamp is None:
            if self._sealed is not None:
                self._write_hint(version, None)
            return None
        newest = look_for_newest()
        self._newest = (newest, stamp)
        is_sealed = self._naming is ManifestNaming.V2
        self._sealed = (newest, stamp) if is_sealed else None
        self._write_hint(newest, stamp if is_sealed else None)
        return newest

    def _write_hint(self, version: int, stamp: str | None) -> None:
        with suppress(LanceOpsError):  # the hint is optional
            write_hint(self._store, version, stamp)

    def _watch(self) -> AbstractContextManager[Callable[[], frozenset[str] | None]]:
        """Watch the versions if one is known to be the newest, so that a commit needs no listing."""
        with suppress(LanceOpsError):  # the watch is optional
            if self._sealed is not None:
                return self._store.watch_directory(VERSIONS_DIR)
        return nullcontext(lambda: None)

    def _newest_under_seal(self) -> int | None:
        """Return the newest version if the directory still has the seal under which it was found, else None."""
        with suppress(LanceOpsError):
            if self._sealed is not None and self._store.directory_stamp(VERSIONS_DIR) == self._sealed[1]:
                return self._sealed[0]
        return None

    def _newest_with(self, version: int, before: int | None, changed_names: Callable[[], frozenset[str] | None]) -> int:
        """Return the newest version after a commit of `version`, without a listing if nothing else has changed.

        `before` was the newest version when the watch had begun. The directory must be sealed.
        """
        names = changed_names() if before is not None else None
        if before is None or names is None or _versions_in(names) != {(version, ManifestNaming.V2)}:
            return max(self._look(list_newest).versions, default=version)
        self._written = None
        return max(before, version)

    def _hinted(self, stamp: str | None) -> int | None:
        """Return the newest version if a hint proves it, and keep the naming scheme that a hint stands for.

        `stamp` is the directory's now. Without a proof, return None: the directory must be listed.
        """
        hinted = newest_by_hint(self._store, stamp) if stamp is not None and uses_version_hint(self._store) else None
        if hinted is not None and stamp is not None:
            self._naming, self._is_new, self._sealed = ManifestNaming.V2, False, (hinted, stamp)
        return hinted

    def _look(self, listing: Callable[[Store], VersionNames]) -> _Seen:
        """List versions and keep their naming scheme, which does not change while writers are active."""
        self._num_looks += 1
        number, written = self._num_looks, self._written
        self._tags, self._written = {}, None
        began = time.monotonic()
        names = listing(self._store)
        if written is not None:
            self._keep_written(*written, names.tags.get(written[0]))
        self._naming = names.naming
        if number >= self._last_look:  # another thread may have begun a later listing, and have its answer already
            self._last_look, self._tags = number, names.tags
        may_be_legacy = names.naming is None and not self._is_new  # nobody makes a legacy manifest any more
        legacy = read_legacy_manifest(self._store) if may_be_legacy else None
        self._is_new = names.naming is None and legacy is None
        if self._is_new:
            self._found_empty(began)
        return _Seen((legacy.version,) if legacy is not None else names.versions, legacy)

    def _found_empty(self, began: float) -> None:
        self._is_new = True
        if not self._store.reads_in_place:  # where a look is no request, each commit looks
            RECENTLY_EMPTY.note((self._store.proof_scope, self._store.uri), began)

    def _was_empty(self) -> bool:
        """Return whether a look of the last five seconds found nothing here, and forget the look."""
        return not self._store.reads_in_place and RECENTLY_EMPTY.take((self._store.proof_scope, self._store.uri))

    def _keep_written(self, version: int, data: bytes, tag: str | None) -> None:
        if tag is not None and is_digest(tag, data):
            KNOWN_MANIFESTS.keep(self._key(version, tag), pa.py_buffer(data))

    def _key(self, version: int, tag: str) -> object:
        return self._store.proof_scope, self._store.uri, version, tag

    def _adopt(self, legacy: LegacyManifest) -> None:
        """Copy a legacy dataset's only version into `_versions`; otherwise the next version would hide it."""
        try:
            self._store.put_if_absent(manifest_path(legacy.version, self._new_naming), legacy.data)
        except StoreError as error:
            raise WriteRefused(f"{self._store.uri}: cannot keep version {legacy.version}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Seen:
    versions: tuple[int, ...]
    legacy: LegacyManifest | None


def _versions_in(names: Iterable[str]) -> set[tuple[int, ManifestNaming]]:
    return {version for version in map(parse_manifest_name, names) if version is not None}


def check_version(version: int) -> None:
    """Raise `InvalidInput` for a number that is not a version."""
    if version <= 0:
        raise InvalidInput(f"{version} is not a version: versions start at 1")
    if is_detached(version):
        raise InvalidInput(f"{version} is a detached version, and a manifest store has none")


def _check_number(version: int) -> None:
    if is_detached(version):
        _check_detached(version)
    else:
        check_version(version)


def _check_detached(version: int) -> None:
    if version >= 1 << 64:
        raise InvalidInput(f"{version} is not a version: it has more than 64 bits")
