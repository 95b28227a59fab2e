"""The generated pages of the site say what the code says."""

from __future__ import annotations

import pytest

from tests.reference_pages import DOCS, generated_pages

pytestmark = pytest.mark.dagster


def test_the_generated_pages_are_those_of_the_code() -> None:
    pages = generated_pages()
    stale = [name for name, text in pages.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text]
    assert not stale, "python -m tests.reference_pages writes these pages"


def test_no_page_of_a_verb_outlives_the_verb() -> None:
    kept = {f"verbs/{page.name}" for page in DOCS.glob("verbs/*.md")}
    assert kept <= generated_pages().keys()


def test_every_attribute_option_and_argument_says_what_it_means() -> None:
    unexplained = [
        f"{name}: {line}"
        for name, text in generated_pages().items()
        for line in text.splitlines()
        if line.startswith("| `") and line.endswith("|  |")
    ]
    assert not unexplained
