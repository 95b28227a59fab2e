"""The packages that an install brings are listed with their licences, and the licences are accepted ones."""

from __future__ import annotations

from importlib.metadata import distribution

import pytest

from tests.licences import ACCEPTED, PAGE, closure, licence_of, packages, parts_of, render


@pytest.mark.parametrize("name", sorted(packages()))
def test_the_licence_of_a_package_is_an_accepted_one(name: str) -> None:
    expression = licence_of(distribution(name))
    assert any(ACCEPTED.issuperset(together) for together in parts_of(expression)), expression


def test_the_page_of_licences_says_what_the_packages_say() -> None:
    assert PAGE.read_text() == render(), "write it again with: python -m tests.licences"


def test_the_packages_of_all_are_those_of_the_listed_extras() -> None:
    assert closure("lance-ops", frozenset({"all"})) == {"lance-ops", *packages()}


def test_a_copyleft_licence_is_not_accepted() -> None:
    assert not any(ACCEPTED.issuperset(together) for together in parts_of("LGPL-3.0-only"))
    assert not any(ACCEPTED.issuperset(together) for together in parts_of("MIT AND GPL-3.0-only"))
    assert any(ACCEPTED.issuperset(together) for together in parts_of("GPL-3.0-only OR MIT"))
