"""Tables that clean themselves up, configured by one library and written by the other."""

from typing import Any

import pytest

import lance_ops
from lance_ops.api import AutoCleanupConfig
from tests.interop.two_libraries import LIBRARIES, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")

pytestmark = pytest.mark.interop


def retained(library: Any, uri: str, config: dict[str, str] | None, **options: Any) -> list[list[int]]:
    """Return the versions that are left after each of six appends."""
    library.write_dataset(rows(0, 10), uri, **options)
    if config:
        library.dataset(uri).update_config(config)
    found = []
    for _ in range(6):
        library.write_dataset(rows(0, 10), uri, mode="append")
        found.append([version["version"] for version in library.dataset(uri).versions()])
    return found


@pytest.mark.parametrize(
    ("interval", "config"),
    [
        ("3", {"older_than": "0s"}),
        ("3", {"retain_versions": "2"}),
        ("3", {"older_than": "0s", "retain_versions": "4"}),
        ("3", {"older_than": "1h", "retain_versions": "2"}),
        ("0", {"older_than": "0s"}),
        ("3", {"older_than": "soon"}),
        ("many", {"older_than": "0s"}),
    ],
)
def test_auto_cleanup_keeps_the_same_versions_in_both(dataset_uri: str, interval: str, config: dict[str, str]) -> None:
    keys = {f"lance.auto_cleanup.{key}": value for key, value in {"interval": interval, **config}.items()}
    theirs, ours = (retained(library.values[0], f"{dataset_uri}-{library.id}", keys) for library in reversed(LIBRARIES))
    assert ours == theirs


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_table_made_by_one_is_cleaned_up_by_the_other(library: Any, other: Any, dataset_uri: str) -> None:
    options = {"interval": 2, "older_than_seconds": 0}
    dataset = library.write_dataset(rows(0, 10), dataset_uri, auto_cleanup_options=options)
    assert dataset.config() == {"lance.auto_cleanup.interval": "2", "lance.auto_cleanup.older_than": "0s"}
    for _ in range(3):
        other.write_dataset(rows(0, 10), dataset_uri, mode="append")
    assert [version["version"] for version in library.dataset(dataset_uri).versions()] == [3, 4]
    lance_ops.dataset(dataset_uri).validate()


@pytest.mark.parametrize("options", [{}, {"interval": 7}, {"older_than_seconds": 90_061}])
def test_auto_cleanup_options_have_the_reference_s_defaults(dataset_uri: str, options: AutoCleanupConfig) -> None:
    ours = lance_ops.write_dataset(rows(0, 1), f"{dataset_uri}-ours", auto_cleanup_options=options)
    theirs = lance.write_dataset(rows(0, 1), f"{dataset_uri}-theirs", auto_cleanup_options=options)
    assert ours.config() == theirs.config()
