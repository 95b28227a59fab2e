"""Plan a repair: for each damage of a report, choose the action that loses least, or say why there is none.

    missing or damaged file      the same file of a copy; else as for wrong rows
    wrong rows or row ids        an older version; else, if the caller allows, drop the fragment's rows
    index                        build it again; drop it if that is not possible
    hint, transaction file       write it again
    tag                          delete it, if the caller allows
    newest manifest              go back to the newest version that can be read, if the caller allows
    older manifest               set it aside, unless it may have recorded work that nobody may do twice, it alone
                                 shows that such work counts, a tag or a branch needs it, or rows of the newest version
                                 are damaged

A restore that takes back changes of rows needs the caller's permission too. Planning verifies files of the copy and of
older versions. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from lance_ops.core.errors import CorruptFile, InvalidInput, LanceOpsError, UnsupportedFeature
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.indices import index_type_of
from lance_ops.maintenance.repair.actions import (
    DeleteTag,
    DropFragments,
    DropIndex,
    RebuildIndex,
    RepairAction,
    RestoreVersion,
    RewriteHint,
    RewriteTransactionFile,
)
from lance_ops.maintenance.repair.dataset_copies import DatasetCopy
from lance_ops.maintenance.repair.file_mending import mend_fragment
from lance_ops.maintenance.repair.older_unreadable import find_older_unreadable
from lance_ops.maintenance.repair.older_versions import WholeVersion, concerns_rows, find_whole_version
from lance_ops.maintenance.repair.unreadable_versions import (
    UNREADABLE_DIR,
    GoBack,
    SetAside,
    find_unreadable,
    held_versions,
)
from lance_ops.maintenance.verification import DamageKind, Finding, VerificationReport
from lance_ops.refs import read_tag, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.table import inline_transaction

__all__ = ["Refusal", "RepairOptions", "RepairPlan", "plan_repair", "plan_repair_of_manifest"]

_ONLY_NEWEST = "only the newest version is repaired; cleanup_old_versions removes older ones"
_MAY_HAVE_RECORDED_WORK = (
    "this version may have recorded a batch or a token, and without it the same work could be done twice: put the file "
    f"back from a copy of the dataset, or move it to {UNREADABLE_DIR} yourself"
)
_SHOWS_WORK = (
    "only this version shows that the batch or the token of the version before it counts, and without it the same work "
    "could be done twice: put the file back from a copy of the dataset"
)
_ROWS_FIRST = "mend the newest version's rows first: this version may name their files"


@dataclass(frozen=True)
class RepairOptions:
    """What a repair may use and lose. With the defaults, a repair loses no row and no tag.

    `copy` is the URI of a copy of the dataset: of its folder, or a deep clone of a retained version.
    """

    copy: str | None = None
    copy_storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    restore_older_version: bool = False
    drop_damaged_rows: bool = False
    delete_dangling_tags: bool = False


@dataclass(frozen=True)
class Refusal:
    """A damage that stays, and why."""

    damage: Finding
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the damage and the reason as values for JSON."""
        return {"damage": self.damage.to_dict(), "reason": self.reason}


@dataclass(frozen=True)
class RepairPlan:
    """The actions that mend a version, in the order in which they are applied, and what they do not mend."""

    uri: str
    version: int
    actions: tuple[RepairAction, ...]
    refusals: tuple[Refusal, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values for JSON."""
        return {
            "uri": self.uri,
            "version": self.version,
            "actions": [action.to_dict() for action in self.actions],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def __str__(self) -> str:
        lines = [f"repair of version {self.version} of {self.uri}: {len(self.actions)} actions"]
        lines += [f"  {action.name}: {action.explanation}" for action in self.actions]
        lines += [f"  not mended: {refusal.damage}: {refusal.reason}" for refusal in self.refusals]
        return "\n".join(lines)


def plan_repair(snapshot: Snapshot, report: VerificationReport, options: RepairOptions | None = None) -> RepairPlan:
    """Plan the repair of the newest version, which `report` is about, and of older versions' manifests.

    Call `plan_repair_of_manifest` first.

    Raises `InvalidInput` for a report of another version or dataset, and as `Snapshot.open` does for the copy.
    """
    options = options or RepairOptions()
    if (report.uri, report.version) != (snapshot.uri, snapshot.version):
        raise InvalidInput(f"the report is about version {report.version} of {report.uri}, not about {snapshot!r}")
    if snapshot.latest().version != snapshot.version:
        raise InvalidInput(
            f"{snapshot.uri}: only the newest version is repaired: verify version {snapshot.latest().version}"
        )
    copy = options.copy and DatasetCopy.open(snapshot, options.copy, options.copy_storage_options)
    of_version = [damage for damage in report.damages if damage.version == snapshot.version]
    rows = [damage for damage in of_version if concerns_rows(damage)]
    indices = [damage for damage in of_version if damage.index_name]
    others = [damage for damage in of_version if damage not in rows and damage not in indices]
    draft = _Draft(snapshot, options)
    draft.mend_rows(rows, copy or None, report)
    draft.mend_indices(indices)
    draft.mend_others(others)
    older = [damage for damage in report.damages if damage.version != snapshot.version]
    draft.set_aside(older, has_row_damages=bool(rows))
    return RepairPlan(snapshot.uri, snapshot.version, tuple(draft.actions), tuple(draft.refusals))


def plan_repair_of_manifest(snapshot: Snapshot, options: RepairOptions | None = None) -> RepairPlan | None:
    """Plan the repair of a table whose newest manifest is damaged; return None if that manifest can be read.

    `snapshot` is any version of the table. Going back takes back the changes of the unreadable versions, so it needs
    `restore_older_version`. Raises `UnsupportedFeature` if the newest version needs a newer reader: it is not damaged.
    """
    found = find_unreadable(snapshot)
    if found is None:
        return None
    lost = ", ".join(found.lost)
    if found.readable is None:
        reason = "no older version can be read: put manifests back from a copy of the dataset"
    elif options is not None and options.restore_older_version:
        versions = tuple(finding.version for finding in found.findings)
        return RepairPlan(snapshot.uri, found.newest, (GoBack(found.readable.version, versions, found.lost),), ())
    else:
        reason = f"restore_older_version goes back to version {found.readable.version}, which takes back {lost}"
    return RepairPlan(snapshot.uri, found.newest, (), tuple(Refusal(each, reason) for each in found.findings))


@dataclass
class _Draft:
    """The actions and refusals so far."""

    snapshot: Snapshot
    options: RepairOptions
    actions: list[RepairAction] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, damages: Iterable[Finding], reason: str) -> None:
        self.refusals += [Refusal(damage, reason) for damage in damages]

    def mend_rows(self, damages: Sequence[Finding], copy: DatasetCopy | None, report: VerificationReport) -> None:
        """Mend files from the copy; mend everything by an older version if the copy is not enough."""
        mended: list[RepairAction] = []
        left: list[Finding] = []
        for fragment_id, its_damages in _by_fragment(damages).items():
            actions = None
            if copy is not None and fragment_id is not None:
                actions = mend_fragment(self.snapshot, copy, fragment_id, its_damages)
            if actions is None:
                left += its_damages
            else:
                mended += actions
        if not left:
            self.actions += mended
            return
        paths = frozenset(damage.path for damage in damages if damage.path and damage.fragment_id is not None)
        older = find_whole_version(self.snapshot, paths, report.level)
        if older is not None and (not older.undone or self.options.restore_older_version):
            self.actions.append(RestoreVersion(older.version, self.snapshot.version, older.undone))
            return
        self.actions += mended
        self._drop_or_refuse(left, _why_not(copy, older))

    def mend_indices(self, damages: Sequence[Finding]) -> None:
        """Build damaged indices again, after their rows are mended; drop those that cannot be built."""
        restores = any(isinstance(action, RestoreVersion) for action in self.actions)
        rows_stay_damaged = any(concerns_rows(refusal.damage) for refusal in self.refusals)
        for name, its_damages in _by_index(damages).items():
            if restores:
                self.refuse(its_damages, "the restored version has its own indices: verify again after the repair")
                continue
            segments = [index for index in self.snapshot.manifest.indices if index.name == name]
            if any(index.is_system for index in segments):
                self.refuse(its_damages, "the format itself keeps this index, and rows depend on it")
            elif rows_stay_damaged and all(each.kind is DamageKind.INDEX_ENTRIES for each in its_damages):
                self.refuse(its_damages, "it may be the rows that are wrong: mend them first")
            elif rows_stay_damaged:
                self.actions.append(DropIndex(name, "the rows that it would be built from are damaged"))
            else:
                self.actions.append(self._rebuilt(name))

    def set_aside(self, older: Sequence[Finding], *, has_row_damages: bool) -> None:
        """Set damaged manifests of older versions aside, and refuse the `older` damages that stay.

        Files of such a version may be all that is left of damaged rows, and clean-up removes files that no version
        names.
        """
        found = find_older_unreadable(self.snapshot)
        findings = (*found.to_set_aside, *found.may_record_work, *found.shows_work)
        unreadable = {finding.version: finding for finding in findings}
        by_version = unreadable | {damage.version: damage for damage in older if damage.version in unreadable}
        self.refuse((damage for damage in older if damage.version not in unreadable), _ONLY_NEWEST)
        self.refuse((by_version[finding.version] for finding in found.may_record_work), _MAY_HAVE_RECORDED_WORK)
        self.refuse((by_version[finding.version] for finding in found.shows_work), _SHOWS_WORK)
        to_set_aside = [by_version[finding.version] for finding in found.to_set_aside]
        if has_row_damages:
            self.refuse(to_set_aside, _ROWS_FIRST)
            return
        try:
            held = held_versions(self.snapshot) if to_set_aside else {}
        except CorruptFile as error:
            self.refuse(to_set_aside, f"{error.path} may name it: mend or delete that, and repair again")
            return
        for damage in to_set_aside:
            if damage.version in held:
                self.refuse([damage], f"{held[damage.version]} names it: delete that, and repair again")
        moved = tuple(damage.version for damage in to_set_aside if damage.version not in held)
        if moved:
            self.actions.append(SetAside(moved, found.events, found.token_versions))

    def _rebuilt(self, name: str) -> RepairAction:
        index = next(index for index in self.snapshot.manifest.indices if index.name == name)
        column = self.snapshot.schema.by_id(index.fields[0]) if len(index.fields) == 1 else None
        try:
            kind = index_type_of(index)
            if column is not None:
                kind.check(column)
                return RebuildIndex(name, self.snapshot.schema.path_of(column.id), kind.name, kind.parameters)
        except UnsupportedFeature as error:
            return DropIndex(name, str(error))
        return DropIndex(name, f"it is on fields {list(index.fields)}")

    def mend_others(self, damages: Sequence[Finding]) -> None:
        """Mend the hint, the transaction's file and tags; refuse branches."""
        for damage in damages:
            action = self._other_action(damage)
            if action is not None:
                self.actions.append(action)
            elif damage.kind is DamageKind.TAG:
                gone = "its version is gone: delete_dangling_tags deletes the tag"
                lost = "nobody can read which version it names: delete it, and create it again"
                self.refuse([damage], gone if self._is_dangling(damage.reference) else lost)
            elif damage.kind is DamageKind.BRANCH:
                self.refuse([damage], "delete the branch, or put its versions back from a copy")
            else:
                self.refuse([damage], "the manifest holds no copy of the transaction; readers do not need it")

    def _other_action(self, damage: Finding) -> RepairAction | None:
        manifest = self.snapshot.manifest
        if damage.kind is DamageKind.VERSION_HINT:
            return RewriteHint()
        if damage.kind is DamageKind.TAG:
            may_go = self.options.delete_dangling_tags and self._is_dangling(damage.reference)
            return DeleteTag(damage.reference) if may_go and damage.reference else None
        path = self.snapshot.store.uri_of(f"{TRANSACTIONS_DIR}/{manifest.transaction_file}")
        if damage.path == path:
            data = self.snapshot.committer.read(self.snapshot.version)
            if inline_transaction(data, self.snapshot.manifest_uri) is not None:
                return RewriteTransactionFile(manifest.transaction_file, self.snapshot.version)
        return None

    def _is_dangling(self, tag: str | None) -> bool:
        """Return whether a damaged tag can be read, so that it is its version that does not exist."""
        try:
            return tag is not None and bool(read_tag(reference_store(self.snapshot), tag))
        except LanceOpsError:
            return False

    def _drop_or_refuse(self, damages: Sequence[Finding], reason: str) -> None:
        droppable = {each.fragment_id for each in damages if each.fragment_id in self.snapshot.manifest.fragments.ids}
        fragment_ids = tuple(sorted(number for number in droppable if number is not None))
        if fragment_ids and self.options.drop_damaged_rows:
            fragments = self.snapshot.manifest.fragments.having(fragment_ids)
            num_rows = sum(fragment.num_rows for fragment in fragments)
            self.actions.append(DropFragments(fragment_ids, num_rows))
            self.refuse((each for each in damages if each.fragment_id is None), reason)
            return
        for damage in damages:
            can_drop = "; drop_damaged_rows deletes the fragment's rows" if damage.fragment_id in droppable else ""
            self.refuse([damage], reason + can_drop)


def _by_fragment(damages: Iterable[Finding]) -> dict[int | None, list[Finding]]:
    groups: dict[int | None, list[Finding]] = {}
    for damage in damages:
        groups.setdefault(damage.fragment_id, []).append(damage)
    return groups


def _by_index(damages: Iterable[Finding]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for damage in damages:
        assert damage.index_name is not None
        groups.setdefault(damage.index_name, []).append(damage)
    return groups


def _why_not(copy: DatasetCopy | None, older: WholeVersion | None) -> str:
    from_copy = "pass copy=… if there is a copy of the dataset" if copy is None else "the copy has no bytes to mend it"
    if older is None:
        return f"{from_copy}; no older version is whole"
    lost = ", ".join(older.undone)
    return f"{from_copy}; restore_older_version restores version {older.version}, which takes back {lost}"
