"""Names and messages of a hostile table reach a terminal as escapes, and a program through `--json` as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import lance_ops
from lance_ops.cli import app
from lance_ops.cli.output import escaped
from lance_ops.table import Manifest
from tests.security.forging import forged

CLEAR, TITLE, OVERRIDE, C1 = "\x1b[2J", "\x1b]0;owned\x07", "\u202egnpexe", "\x9b31m"
HOSTILE = f"a{CLEAR}b{TITLE}c{OVERRIDE}d{C1}\r\x08\x7f\u2028e"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def hostile(dataset_uri: str) -> str:
    """Return a table with hostile names of columns, batches, indices, files and configuration."""
    rows = pa.table({HOSTILE: [1, 2, 3], "x": [4, 5, 6]})
    made = lance_ops.write_dataset(
        rows, dataset_uri, transaction_properties={f"lance_ops.batch.{HOSTILE}": "t", "__lance_commit_message": HOSTILE}
    )
    made.create_scalar_index("x", "BTREE")
    made.update_config({HOSTILE: HOSTILE})
    made.insert(rows, transaction_properties={f"lance_ops.batch.2{HOSTILE}": "t"})
    made.tags.create("v1")
    made.create_branch("dev")

    def change(manifest: Manifest) -> Manifest:
        fragment = manifest.fragments[1]
        missing = replace(fragment, files=(replace(fragment.files[0], path=f"{HOSTILE}.lance"),))
        return replace(
            manifest,
            indices=tuple(replace(index, name=HOSTILE) for index in manifest.indices),
            fragments=manifest.fragments.with_changes({fragment.id: missing}),
        )

    forged(made, change)
    return dataset_uri


COMMANDS = {
    "inspect": ("inspect",),
    "versions": ("versions",),
    "health": ("health",),
    "verify": ("verify",),
    "repair": ("repair", "--dry-run"),
    "compact": ("compact", "--dry-run"),
    "cleanup": ("cleanup", "--dry-run"),
    "reindex": ("reindex",),
    "delete": ("delete", "--where", f'"{HOSTILE}" = 1', "--yes"),
    "tags": ("tags", "list"),
    "branches": ("branches", "list"),
}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_command_prints_a_control_character(hostile: str, command: str) -> None:
    words = COMMANDS[command]
    at = 2 if words[0] in ("tags", "branches") else 1
    result = run(*words[:at], hostile, *words[at:])
    assert result.output
    unseen = {char for char in result.output if not char.isprintable()} - {"\n"}
    assert unseen == set()


def test_people_see_the_escapes(hostile: str) -> None:
    shown = run("inspect", hostile).output
    assert r"a\x1b[2Jb\x1b]0;owned\x07c" in shown and r"\u202egnpexe" in shown
    assert r"\x1b[2J" in run("verify", hostile).output


def test_programs_get_the_names_as_they_are(hostile: str) -> None:
    printed = run("inspect", hostile, "--json").output
    assert printed.isascii() and not {"\x1b", "\x07", "\r", "\x7f"} & set(printed)
    facts = json.loads(printed)
    assert facts["schema"][0]["name"] == HOSTILE
    assert [index["name"] for index in facts["indices"]] == [HOSTILE]


@pytest.mark.parametrize("folder", ["_refs/tags", "_refs/branches"])
def test_a_reference_with_a_hostile_name_is_refused_in_a_plain_line(dataset_uri: str, folder: str) -> None:
    made = lance_ops.write_dataset(pa.table({"x": [1]}), dataset_uri)
    (Path(dataset_uri) / folder).mkdir(parents=True, exist_ok=True)
    made.snapshot.store.put(f"{folder}/{CLEAR}.json", b'{"version": 1, "manifestSize": 1, "parentVersion": 1}')
    for command in (("tags", "list"), ("branches", "list"), ("inspect",)):
        result = run(*command, dataset_uri)
        assert {char for char in result.output if not char.isprintable()} <= {"\n"}


def test_text_that_can_be_seen_is_printed_as_it_is() -> None:
    assert escaped("Grüße 列 100% …") == "Grüße 列 100% …"
    assert escaped("a\tb\u00a0c\ud800") == r"a\tb\xa0c\ud800"
