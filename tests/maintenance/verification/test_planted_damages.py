"""A verification finds each planted damage, names it, and blames nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance.verification import (
    DamageKind,
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify,
    verify_uri,
)
from tests.maintenance.verification.planted_damages import ALL_DAMAGES, Damage, newest_manifest


def verified(root: Path, level: VerificationLevel, *, all_versions: bool = False) -> VerificationReport:
    return verify_uri(str(root), options=VerificationOptions(level, all_versions))


@pytest.mark.parametrize("level", VerificationLevel)
def test_the_dataset_is_whole_before_it_is_damaged(healthy: Path, level: VerificationLevel) -> None:
    report = verified(healthy, level, all_versions=True)
    assert (report.findings, report.ok, report.versions) == ((), True, (1, 2, 3))
    named = {path for path in healthy.rglob("*") if path.is_file() and "tree" not in path.parts}
    manifests_and_references = {path for path in named if path.parts[-2] in ("_versions", "tags", "branches")}
    assert report.num_files >= len(named - manifests_and_references)


@pytest.mark.parametrize("damage", ALL_DAMAGES, ids=lambda damage: damage.name)
def test_a_planted_damage_is_found_and_named(copied: Path, damage: Damage) -> None:
    damage.plant(copied)
    report = verified(copied, VerificationLevel.FULL, all_versions=damage.all_versions)
    assert damage.kind in {finding.kind for finding in report.damages}, str(report)
    assert report.damaged_fragments == damage.fragment_ids
    assert report.damaged_indices == damage.index_names
    assert not report.ok
    if damage.quick:
        assert not verified(copied, VerificationLevel.QUICK, all_versions=damage.all_versions).ok


def test_there_are_far_more_than_twenty_damages_of_every_kind_but_one() -> None:
    assert len({damage.name for damage in ALL_DAMAGES}) == len(ALL_DAMAGES) > 30
    kinds = {damage.kind for damage in ALL_DAMAGES}
    assert set(DamageKind) - kinds == {DamageKind.BLOB}


def test_several_damages_are_all_found(copied: Path) -> None:
    chosen = {"data file missing", "deletion file missing", "index file missing", "tag file of garbage"}
    for damage in ALL_DAMAGES:
        if damage.name in chosen:
            damage.plant(copied)
    report = verified(copied, VerificationLevel.FULL)
    assert (report.damaged_fragments, report.damaged_indices) == ((0, 1), ("x_idx",))
    assert DamageKind.TAG in {finding.kind for finding in report.damages}


def test_a_newest_manifest_that_cannot_be_read_is_a_finding(copied: Path) -> None:
    newest_manifest(copied).write_bytes(b"garbage")
    report = verified(copied, VerificationLevel.QUICK)
    assert [finding.kind for finding in report.damages] == [DamageKind.MANIFEST]
    assert "footer" in report.damages[0].detail
    assert (report.uri, report.version) == (str(copied), 3)
    older = verify_uri(str(copied), 2, options=VerificationOptions(VerificationLevel.FULL))
    assert older.ok


def test_a_flipped_bit_anywhere_in_the_newest_manifest_is_a_finding(copied: Path) -> None:
    data = newest_manifest(copied).read_bytes()
    for at in range(0, len(data), 37):
        newest_manifest(copied).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert not verified(copied, VerificationLevel.QUICK).ok, at


def test_a_handle_that_has_read_the_rows_sees_a_damage_that_came_later(copied: Path) -> None:
    opened = lance_ops.dataset(str(copied))
    assert opened.to_table(columns=["x"]).num_rows == opened.count_rows()
    next(damage for damage in ALL_DAMAGES if damage.name == "deletion file of garbage").plant(copied)
    assert opened.verify().damaged_fragments == (1,)


def test_a_report_can_be_read_and_stored(copied: Path) -> None:
    next(damage for damage in ALL_DAMAGES if damage.name == "data file missing").plant(copied)
    report = lance_ops.dataset(str(copied)).verify(level="quick")
    assert "has 1 damage (" in str(report)
    assert "fragment 0" in str(report)
    stored = json.loads(json.dumps(report.to_dict()))
    assert (stored["ok"], stored["damaged_fragments"], stored["level"]) == (False, [0], "quick")
    [finding] = stored["findings"]
    assert (finding["kind"], finding["severity"], finding["fragment_id"]) == ("missing file", "damaged", 0)


def test_an_unknown_level_is_refused(healthy: Path) -> None:
    with pytest.raises(InvalidInput, match="'quick', 'full'"):
        lance_ops.dataset(str(healthy)).verify(level="deep")


def test_a_full_verification_tells_which_files_have_checksums(healthy: Path) -> None:
    snapshot = lance_ops.dataset(str(healthy)).snapshot
    full, quick = verify(snapshot), verify(snapshot, VerificationOptions(VerificationLevel.QUICK))
    assert len(full.files_with_checksums) + len(full.files_without_checksums) == full.num_files
    assert (quick.files_with_checksums, quick.files_without_checksums) == ((), ())
