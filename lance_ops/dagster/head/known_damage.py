"""Remember the damages that verifications found, until a later one shows that they are gone.

A bounded run verifies only some parts, so what it finds intact says nothing of the others. A damage is gone when the
newest version does not name the damaged file, fragment or index any more, as after a repair, or when a whole pass that
began after it was found does not find it. A quick pass says nothing of damages that only checksums show. Damages of
older versions, which a run finds only if it is asked for them, are not remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

import dagster as dg

from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification import DamageKind, Finding, VerificationLevel, VerificationReport
from lance_ops.snapshot import Snapshot

__all__ = ["KNOWN_DAMAGES", "KnownDamage", "decode_damages", "encode_damages", "known_damages"]

KNOWN_DAMAGES = "lance/known_damages"
"""The metadata of an evaluation of the check `intact` that lists the damages which are not known to be gone."""

_MOST = 1000
_OF_TABLE = (DamageKind.TAG, DamageKind.BRANCH, DamageKind.VERSION_HINT)
"""Damages of what no version names, so that a newer version tells nothing of them."""


@dataclass(frozen=True)
class KnownDamage:
    """Where a verification of a version found a damage, and whether a pass of the level has begun since."""

    place: str
    version: int
    level: str
    path: str | None = None
    fragment_id: int | None = None
    index_uuid: str | None = None
    is_of_table: bool = False
    is_pass_begun: bool = False

    @classmethod
    def of(cls, found: Finding, level: VerificationLevel) -> KnownDamage:
        """Return what is remembered of a finding."""
        if found.index_name is not None:
            place = f"index {found.index_name}"
        elif found.fragment_id is not None:
            place = f"fragment {found.fragment_id}"
        else:
            place = found.path or str(found)
        uuid = None if found.index_uuid is None else str(found.index_uuid)
        return cls(place, found.version, level.value, found.path, found.fragment_id, uuid, found.kind in _OF_TABLE)

    @property
    def identity(self) -> tuple[str, str | None]:
        """Names the damage in later runs."""
        return self.place, self.path

    def is_gone(self, newest: Snapshot) -> bool:
        """Return whether the newest version does not name what is damaged."""
        if self.index_uuid is not None:
            return UUID(self.index_uuid) not in {each.uuid for each in newest.manifest.indices}
        if self.fragment_id is None:
            return not self.is_of_table and newest.version != self.version
        fragment = newest.fragments_by_id.get(self.fragment_id)
        if fragment is None:
            return True
        folder, _, name = (self.path or "").rpartition("/")
        if folder.endswith(f"/{DATA_DIR}"):
            return name not in {file.path.rpartition("/")[2] for file in fragment.files}
        if folder.endswith(f"/{DELETIONS_DIR}"):
            deletions = fragment.deletion_file
            return deletions is None or deletions.name(self.fragment_id) != name
        return False


def known_damages(
    before: Sequence[KnownDamage],
    report: VerificationReport,
    first_part: int,
    *,
    in_turn: bool,
    newest: Snapshot | None,
) -> tuple[KnownDamage, ...]:
    """Return the damages that are known after a run that began at a part.

    `in_turn` says whether the run began where a pass begins or goes on; another one says nothing of the parts between.
    `newest` is None if the newest version does not open: then no damage is gone because of it.
    """
    found = {each.identity: each for each in (KnownDamage.of(each, report.level) for each in _of_version(report))}
    ends = in_turn and report.reaches_end_from(first_part)
    begins = in_turn and first_part == 0
    kept: list[KnownDamage] = []
    for damage in before:
        if damage.identity in found or (newest is not None and damage.is_gone(newest)):
            continue
        judged = report.level is VerificationLevel.FULL or damage.level == report.level.value
        if judged and ends and (begins or damage.is_pass_begun):
            continue
        # A run that ends a pass goes on with the first part, which begins the next one.
        kept.append(replace(damage, is_pass_begun=damage.is_pass_begun or (judged and (begins or ends))))
    return (*found.values(), *kept)[:_MOST]


def encode_damages(damages: Iterable[KnownDamage]) -> dg.MetadataValue[Any]:
    """Return damages as the metadata of an evaluation."""
    return dg.MetadataValue.json([asdict(each) for each in damages])


def decode_damages(metadata: Mapping[str, dg.MetadataValue[Any]]) -> tuple[KnownDamage, ...] | None:
    """Return the damages that an evaluation lists; None if it lists none, because it did not look at files."""
    listed = metadata.get(KNOWN_DAMAGES)
    return None if listed is None else tuple(KnownDamage(**each) for each in listed.value)


def _of_version(report: VerificationReport) -> Iterable[Finding]:
    return (found for found in report.damages if found.version == report.version)
