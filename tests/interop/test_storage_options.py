"""A handle shows its storage options as the reference does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api.lance_dataset.storage_options import StorageOptionsAccessor

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

THEIRS: Any = import_module("lance.lance").StorageOptionsAccessor
OPTIONS = {"access_key_id": "me", "secret_access_key": "the secret"}


def test_a_handle_without_options_has_no_accessor(dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"a": [1]}), dataset_uri)
    assert lance_ops.dataset(dataset_uri).storage_options_accessor is None
    assert lance.dataset(dataset_uri).storage_options_accessor is None


def test_the_accessor_of_a_handle_gives_its_options(dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"a": [1]}), dataset_uri)
    for library in (lance_ops, lance):
        dataset = library.dataset(dataset_uri, storage_options=OPTIONS)
        accessor = dataset.storage_options_accessor
        for given in (
            accessor.get_storage_options(),
            accessor.initial_storage_options(),
            dataset.initial_storage_options,
            dataset.latest_storage_options(),
        ):
            assert OPTIONS.items() <= given.items()
        assert not accessor.has_provider()


def test_an_accessor_has_the_reference_s_members_and_hides_values() -> None:
    mine, other = (kind.with_static_options(OPTIONS) for kind in (StorageOptionsAccessor, THEIRS))
    assert {name for name in dir(other) if not name.startswith("_")} <= set(dir(mine))
    assert mine.refresh_offset_secs() == other.refresh_offset_secs()
    assert mine.get_storage_options() == other.get_storage_options() == OPTIONS
    for accessor in (mine, other):
        assert accessor.accessor_id() in repr(accessor) and accessor.accessor_id().startswith("static_options_")
        assert not any(value in repr(accessor) for value in OPTIONS.values())
    again, different = (StorageOptionsAccessor(options) for options in (dict(reversed(OPTIONS.items())), {"a": "b"}))
    assert mine.accessor_id() == again.accessor_id() != different.accessor_id()


def test_what_a_caller_does_with_the_options_does_not_reach_the_handle() -> None:
    accessor = StorageOptionsAccessor(OPTIONS)
    accessor.get_storage_options().clear()
    assert accessor.get_storage_options() == OPTIONS
