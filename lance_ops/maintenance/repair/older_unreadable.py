"""Find the damaged manifests of older versions, and which of them must stay.

A manifest stays if its version may have recorded a batch or a token of work that the table still holds.

A version also shows that the table's history produced the version before it, and is not stray. If that version has a
batch event or a token, the transaction of the damaged manifest is replayed instead. Then the event and the token are
written down before the manifest moves. If the transaction is not known, the manifest stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from lance_ops.core.errors import CorruptFile, UnsupportedFeature, VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.maintenance.batch_ledger import BatchEvent, has_checkpoint, recorded_event
from lance_ops.maintenance.repair.unreadable_versions import manifest_finding, read_transaction, transaction_of
from lance_ops.maintenance.verification import Finding
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import (
    BATCH_PREFIX,
    TOKEN,
    TOKENS_DIR,
    CommittedVersion,
    Overwrite,
    Restore,
    Transaction,
    is_in_history,
    read_manifest,
    read_version,
)

__all__ = ["OlderUnreadable", "find_older_unreadable"]

_READ_AT_ONCE = 16


@dataclass(frozen=True)
class OlderUnreadable:
    """The older versions, newest first, whose manifests cannot be read: those to set aside, and those that must stay.

    A version must stay if it may have recorded work that the table still holds, or if only its manifest shows that the
    version before it, which recorded work, is in the table's history. `events` and `token_versions` are what to write
    down before the others are set aside, as in `SetAside`.
    """

    to_set_aside: tuple[Finding, ...] = ()
    may_record_work: tuple[Finding, ...] = ()
    shows_work: tuple[Finding, ...] = ()
    events: tuple[BatchEvent, ...] = ()
    token_versions: tuple[int, ...] = ()


def find_older_unreadable(snapshot: Snapshot) -> OlderUnreadable:
    """Return the versions before the snapshot's whose manifests are damaged. This reads every retained manifest.

    Raises `StoreError` as the store does.
    """
    versions = [version for version in reversed(snapshot.committer.versions()) if version <= snapshot.version]
    workers = 1 if snapshot.store.reads_in_place else _READ_AT_ONCE
    survey = _Survey(snapshot)
    for version, read in map_ordered(partial(_read, snapshot), versions, workers, workers):
        survey.add(version, read)
    return survey.outcome()


@dataclass(frozen=True)
class _Recorded:
    """A version with a batch event or a token; `is_before_gap` says that the next version is damaged.

    `shown_by` are versions without which nothing shows later that this one is in the history.
    """

    version: int
    event: BatchEvent | None
    has_token: bool
    is_in_history: bool
    is_before_gap: bool
    shown_by: frozenset[int]


class _Survey:
    """What the versions show that were added so far, from the newest on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._damaged: dict[int, Finding] = {}
        self._may_record_work: set[int] = set()
        self._recorded: list[_Recorded] = []
        self._transaction_files: set[str] = set()
        self._newest_valid = snapshot.version
        self._is_all_known = True
        self._after: CommittedVersion | None = None
        self._between: list[tuple[int, Transaction | None]] = []  # the damaged versions directly before `_after`

    def add(self, version: int, read: CommittedVersion | Finding | None) -> None:
        """Add a version as `_read` returned it."""
        if isinstance(read, Finding):
            made_by = transaction_of(self._snapshot, version)
            self._damaged[version] = read
            self._between.insert(0, (version, made_by))
            if version <= self._newest_valid and (_has_work(made_by) or _may_set_back(made_by)):
                self._may_record_work.add(version)
        elif read is None:
            self._is_all_known = False
        else:
            self._transaction_files.add(read.manifest.transaction_file)
            try:
                event, has_token = recorded_event(read), TOKEN in read.transaction_properties
            except CorruptFile:  # its transaction is damaged, so nobody knows what it records
                event, has_token, self._is_all_known = None, False, False
            if event is not None or has_token:
                self._recorded.append(self._looked_at(read, event, has_token))
            if event is not None and event.back_to is not None and version <= self._newest_valid:
                self._newest_valid = event.back_to
            self._after, self._between = read, []

    def outcome(self) -> OlderUnreadable:
        """Tell which of the damaged manifests must stay, and what to write down before the others move."""
        store = self._snapshot.store
        has_batches = has_checkpoint(store) or any(each.event and each.event.batches for each in self._recorded)
        has_tokens = bool(store.list_names(TOKENS_DIR)) or any(each.has_token for each in self._recorded)
        is_known_free = self._is_all_known and not (has_batches or has_tokens)
        if is_known_free and not any(map(_has_work, self._other_transactions())):
            self._may_record_work.clear()
        ingesting = [each for each in self._recorded if each.event is not None and has_batches]
        shown_by = self._shown_by(each for each in (*ingesting, *self._with_token) if not each.is_in_history)
        needs_checkpoint = bool(self._shown_by(ingesting))
        if self._may_record_work or shown_by or not self._is_all_known:
            # A checkpoint would hide what the versions that stay may have recorded.
            shown_by |= self._shown_by(ingesting)
            needs_checkpoint = False
        shown_by -= self._may_record_work
        damages = self._damaged.items()
        stay = self._may_record_work | shown_by
        return OlderUnreadable(
            to_set_aside=tuple(damage for version, damage in damages if version not in stay),
            may_record_work=tuple(damage for version, damage in damages if version in self._may_record_work),
            shows_work=tuple(damage for version, damage in damages if version in shown_by),
            events=tuple(each.event for each in ingesting if each.event and each.is_in_history and needs_checkpoint),
            token_versions=tuple(
                each.version for each in self._with_token if each.is_in_history and each.is_before_gap
            ),
        )

    @property
    def _with_token(self) -> list[_Recorded]:
        return [each for each in self._recorded if each.has_token]

    def _shown_by(self, recorded: Iterable[_Recorded]) -> set[int]:
        """Return the damaged versions that are needed to show that one of these is in the history."""
        return {version for each in recorded for version in each.shown_by if version in self._damaged}

    def _looked_at(self, committed: CommittedVersion, event: BatchEvent | None, has_token: bool) -> _Recorded:
        """Find out whether a version with a batch event or a token is in the history, and what shows it."""
        after = self._after
        is_evident = self._is_in_history(committed, ())
        shown_by = frozenset(version for version, _ in self._between)
        is_in_history = is_evident or self._is_in_history(committed, [made_by for _, made_by in self._between])
        if not is_evident and after is not None:
            shown_by |= _versions_needed_by(after)
        return _Recorded(
            committed.version,
            event,
            has_token,
            is_in_history,
            is_before_gap=bool(self._between),
            shown_by=frozenset() if is_evident else shown_by,
        )

    def _is_in_history(self, committed: CommittedVersion, between: Sequence[Transaction | None]) -> bool:
        read = partial(read_manifest, self._snapshot.store, self._snapshot.committer)
        try:
            return is_in_history(committed, self._after, read, between) is True
        except CorruptFile:  # the evidence is damaged
            return False

    def _other_transactions(self) -> Iterator[Transaction | None]:
        """Yield the transactions of other files than those of readable versions; None for one that cannot be read."""
        for name in self._snapshot.store.list_names(TRANSACTIONS_DIR):
            if name not in self._transaction_files and name.endswith(".txn"):
                yield read_transaction(self._snapshot, name)


def _read(snapshot: Snapshot, version: int) -> tuple[int, CommittedVersion | Finding | None]:
    """Read a version; return a finding if its manifest is damaged, None if it is gone or needs a newer reader."""
    try:
        return version, read_version(snapshot.store, snapshot.committer, version)
    except CorruptFile as error:
        return version, manifest_finding(snapshot, version, error)
    except (VersionNotFound, UnsupportedFeature):
        return version, None


def _versions_needed_by(committed: CommittedVersion) -> frozenset[int]:
    """Return the versions without which nobody can work out what a version's operation did; none if it is damaged."""
    try:
        made_by = committed.transaction
    except CorruptFile:
        return frozenset()
    return frozenset() if made_by is None else frozenset(made_by.operation.needed_versions)


def _has_work(transaction: Transaction | None) -> bool:
    """Return whether a transaction has a batch or a token; True also for None, an unknown one."""
    if transaction is None:
        return True
    return any(key == TOKEN or key.startswith(BATCH_PREFIX) for key in transaction.transaction_properties)


def _may_set_back(transaction: Transaction | None) -> bool:
    """Return whether a transaction may take batches out of the table, so that they may be ingested again."""
    return transaction is None or isinstance(transaction.operation, Overwrite | Restore)
