from __future__ import annotations

from pathlib import Path

import pytest

from lance_ops.dagster.declaration.config_files import load_dataset
from lance_ops.dagster.declaration.documents import MAX_BYTES, MAX_NODES, parse_document
from lance_ops.errors import ConfigError

pytestmark = pytest.mark.dagster


def bomb(levels: int) -> str:
    """Ten aliases of the line before on each line: 10 ** levels texts."""
    lines = ["a0: &a0 [lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels + 1)]
    return "\n".join(lines)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\nuri: " + "[" * 100_000, "line 2: values may be nested at most 20 deep"),
        ("name: a\n" + "".join(" " * n + f"k{n}:\n" for n in range(500)), "values may be nested at most 20 deep"),
        ("- " * 10_000 + "a", "values may be nested at most 20 deep"),
        (bomb(9), "more than 10,000 values, aliases included"),
        ("[" + "a, " * 20_000 + "]", "line 1: more than 10,000 values"),
        ("name: &n [*n]", "line 1: name.0: an alias stands within its own value"),
        ("raw:\n  uri: x\n  {a: b}: c", "line 3: raw: a key must be a text"),
        ("raw:\n  ? [1, 2]\n  : c", "line 2: raw: a key must be a text"),
        ("name: a\nraw:\n  uri: x\n  uri: y", "line 4: key raw.uri is given twice"),
        ("name: 2024-99-99", "line 1: name: cannot be read as a value of type timestamp"),
        ("owners: [a, !!int b]", "line 1: owners.1: cannot be read as a value of type int"),
        ("name: " + "9" * 5000, "line 1: name: cannot be read as a value of type int"),
        ("name: !!python/object/apply:os.system [x]", "line 1: could not determine a constructor"),
        ("name: *missing", "line 1: found undefined alias"),
        ("name: a\n---\nname: b", "line 2: but found another document"),
        ("name: \x00", "unacceptable character"),
        ("x" * (MAX_BYTES + 1), "a declaration may have at most 1,048,576 bytes"),
    ],
)
def test_a_hostile_document_is_refused_with_its_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)


def test_bytes_that_are_not_utf_8_are_refused_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match=r"d\.yaml: not UTF-8: byte 6"):
        load_dataset(path)


def test_a_value_that_cannot_be_read_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document("password: !!int hunter2")
    assert "hunter2" not in str(caught.value)


def test_aliases_and_merges_of_a_plain_document_are_read() -> None:
    text = "base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}\nagain: *base"
    assert parse_document(text)["other"] == {"a": 1, "b": 3}
    assert parse_document("") is None


def test_a_document_at_the_limits_is_read() -> None:
    assert len(parse_document("[" + ", ".join(["1"] * (MAX_NODES - 1)) + "]")) == MAX_NODES - 1
    assert parse_document("[" * 20 + "1" + "]" * 20)
