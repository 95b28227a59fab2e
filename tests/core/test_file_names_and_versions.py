import re

import numpy as np
import pytest

from lance_ops.core import addresses, file_names
from lance_ops.core.file_names import ManifestNaming
from lance_ops.core.versions import FileVersion
from lance_ops.errors import InvalidInput, UnsupportedFeature


def test_v2_manifest_names_count_down_so_the_newest_lists_first() -> None:
    assert file_names.manifest_name(13, ManifestNaming.V2) == "18446744073709551602.manifest"
    assert file_names.manifest_name(2, ManifestNaming.V2) < file_names.manifest_name(1, ManifestNaming.V2)
    assert file_names.manifest_name(7, ManifestNaming.V1) == "7.manifest"


@pytest.mark.parametrize("naming", list(ManifestNaming))
@pytest.mark.parametrize("version", [1, 9, 10, 1 << 40, (1 << 63) - 1])
def test_a_manifest_name_is_parsed_back(version: int, naming: ManifestNaming) -> None:
    assert file_names.parse_manifest_name(file_names.manifest_name(version, naming)) == (version, naming)


@pytest.mark.parametrize(
    "name",
    [
        "d18446744073709551602.manifest",
        "1.manifest-abc",
        "latest_version_hint.json",
        ".manifest",
        "99999999999999999999.manifest",
        "09223372036854775807.manifest",  # a detached number under an ordinary name
        "9223372036854775808.manifest",
    ],
)
def test_names_of_other_files_are_not_parsed_as_manifests(name: str) -> None:
    assert file_names.parse_manifest_name(name) is None


def test_data_file_names_have_spread_prefixes_and_never_repeat() -> None:
    made = {file_names.data_file_name() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", name) for name in made)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a..b", ".hidden", "x.lock", "a b", "a\0b", "end."])
def test_tag_names_that_a_store_could_misread_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        file_names.check_reference_name(name)


def test_row_addresses_split_into_fragment_and_offset() -> None:
    made = addresses.row_addrs(42, [9, 0, (1 << 32) - 1])
    assert addresses.fragment_of(made).tolist() == [42, 42, 42]
    assert addresses.offset_of(made).tolist() == [9, 0, (1 << 32) - 1]
    assert int(made[0]) == addresses.row_addr(42, 9)
    assert made.dtype == np.uint64


@pytest.mark.parametrize(
    ("text", "version"),
    [("stable", FileVersion.V2_2), ("LEGACY", FileVersion.V0_1), ("0.3", FileVersion.V2_0), ("2.1", FileVersion.V2_1)],
)
def test_a_users_spelling_is_parsed_to_its_file_version(text: str, version: FileVersion) -> None:
    assert FileVersion.parse(text) is version


def test_unstable_and_unknown_file_versions_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"2\.3"):
        FileVersion.parse("2.3")
    with pytest.raises(InvalidInput, match="stable"):
        FileVersion.parse("9")
    with pytest.raises(UnsupportedFeature, match="some.manifest"):
        FileVersion.from_manifest("stable", "some.manifest")


@pytest.mark.parametrize("version", list(FileVersion))
def test_the_numbers_of_footers_and_data_files_are_parsed_back(version: FileVersion) -> None:
    assert FileVersion.from_numbers(*version.footer, "f") is version
    assert FileVersion.from_numbers(*version.data_file, "f") is version
    assert FileVersion.V2_0 < FileVersion.V2_2 and FileVersion.V2_2 >= FileVersion.V2_1


def test_files_of_a_job_are_told_by_their_names() -> None:
    ours, theirs = file_names.new_job_token(), file_names.new_job_token()
    with file_names.file_names_of_job(ours):
        names = [file_names.data_file_name() for _ in range(50)]
        with file_names.file_names_of_job(theirs):
            other = file_names.data_file_name()
        names.append(file_names.data_file_name())
    plain = file_names.data_file_name()
    assert len({*names, other, plain}) == 53
    for name in (*names, other, plain):
        assert re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", name)
    assert all(file_names.is_file_of_job(f"data/{name}", ours) for name in names)
    assert file_names.is_file_of_job(f"data/{file_names.blob_file_name(names[0], 3)}", ours)
    assert not any(file_names.is_file_of_job(f"data/{name}", ours) for name in (other, plain))
    assert not file_names.is_file_of_job(names[0], ours)
    assert not file_names.is_file_of_job(f"data/{plain}", "")


def test_deletion_files_of_a_job_are_told_by_their_names() -> None:
    def path(deletion_id: int, suffix: str = "arrow") -> str:
        return f"_deletions/{file_names.deletion_file_name(3, 1 << 62, deletion_id, suffix)}"

    ours, theirs = "f" * 16, "f" * 11 + "0" * 5
    with file_names.file_names_of_job(ours):
        ids = [file_names.new_deletion_file_id() for _ in range(50)]
        with file_names.file_names_of_job(theirs):
            other = file_names.new_deletion_file_id()
    assert len(set(ids)) > 1
    assert all(0 <= each < 1 << 63 for each in (*ids, other))
    assert all(file_names.is_file_of_job(path(each, suffix), ours) for each in ids for suffix in ("arrow", "bin"))
    assert not file_names.is_file_of_job(path(other), ours)
    assert file_names.is_file_of_job(path(other), theirs)
    assert not file_names.is_file_of_job(path(file_names.new_deletion_file_id()), theirs)
    for foreign in ("_deletions/x", "_deletions/3-1-x.arrow", "_deletions/3-1-.bin", f"other/3-1-{ids[0]}.bin"):
        assert not file_names.is_file_of_job(foreign, ours)
    assert not file_names.is_file_of_job(path(ids[0]), "")
