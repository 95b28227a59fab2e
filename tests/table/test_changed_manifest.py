"""Copies of manifests with some fields changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from lance_ops.table import Manifest, change_manifest
from tests.table.samples import fragment, manifest


def test_a_copy_has_the_changes_and_all_other_fields_as_replace_has_it() -> None:
    before = manifest(fragment(0), fragment(1))
    made = change_manifest(before, version=7, tag="t")

    assert type(made) is Manifest and made == replace(before, version=7, tag="t") != before
    assert before == manifest(fragment(0), fragment(1))
    assert made.fragments is before.fragments
    with pytest.raises(FrozenInstanceError):
        made.version = 8  # type: ignore[misc]  # which is refused


def test_an_unknown_field_is_refused_as_replace_refuses_it() -> None:
    for change in (change_manifest, replace):
        with pytest.raises(TypeError, match="nothing"):
            change(manifest(), nothing=1)
