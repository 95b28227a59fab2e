"""Every option of `alter_columns`, alone and with others, does what it does in the reference."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop.same_change import Difference, check_change

pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(6), pa.int32()),
            "v": [0.0, 1.0, None, 3.0, 4.0, 5.0],
            "f": pa.array(range(6)),
            "s": list("abcdef"),
            "p": pa.array([{"x": i, "y": str(i), "q": {"z": i}} if i != 3 else None for i in range(6)]),
            "l": pa.array([[i, i + 1] for i in range(6)]),
        }
    )


def strict_rows() -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int32(), False), pa.field("k", pa.int64(), False)])
    return pa.table([[1, 2, 3, 4], [5, 6, 7, 8]], schema=schema)


def full_rows() -> pa.Table:
    """Return rows without nulls and lists, as files of 2.0 and before hold them."""
    structs = pa.array([{"x": i, "y": str(i)} for i in range(6)])
    return rows().select(["id", "f", "s"]).append_column("p", structs)


Alterations = list[dict[str, Any]]

INT8, INT16, INT32, INT64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
OPTIONS: dict[str, dict[str, Alterations]] = {
    "path": {
        "of a field": [{"path": "p.x", "name": "w"}],
        "of a field of a field": [{"path": "p.q.z", "name": "w"}],
        "of an item": [{"path": "l.item", "name": "w"}],
        "in back quotes": [{"path": "`v`", "name": "w"}],
        "in another case": [{"path": "V", "name": "w"}],
        "unknown": [{"path": "nope", "name": "w"}],
        "unknown field": [{"path": "p.nope", "name": "w"}],
        "left out": [{"name": "w"}],
        "alone": [{"path": "v"}],
        "with an unknown key": [{"path": "v", "name": "w", "colour": 1}],
        "no alteration": [],
    },
    "name": {
        "new": [{"path": "v", "name": "w"}],
        "of a struct": [{"path": "p", "name": "w"}],
        "the same": [{"path": "v", "name": "v"}],
        "in another case": [{"path": "v", "name": "V"}],
        "taken": [{"path": "v", "name": "id"}],
        "with a dot": [{"path": "v", "name": "a.b"}],
        "exchanged": [{"path": "v", "name": "id"}, {"path": "id", "name": "v"}],
        "exchanged in a struct": [{"path": "p.x", "name": "y"}, {"path": "p.y", "name": "x"}],
        "handed on": [{"path": "v", "name": "id"}, {"path": "id", "name": "was_id"}],
        "of a name that is new": [{"path": "v", "name": "w"}, {"path": "w", "name": "x"}],
        "twice": [{"path": "v", "name": "w"}, {"path": "v", "name": "u"}],
        "struct, then field": [{"path": "p", "name": "w"}, {"path": "p.x", "name": "xx"}],
        "field, then struct": [{"path": "p.x", "name": "xx"}, {"path": "p", "name": "w"}],
        "three levels": [
            {"path": "p.q.z", "name": "zz"},
            {"path": "p", "name": "pp"},
            {"path": "p.q", "name": "qq"},
        ],
        "empty": [{"path": "v", "name": ""}],
        "of a row column": [{"path": "v", "name": "_rowid"}],
        "taken in the struct": [{"path": "p.x", "name": "y"}],
        "is None": [{"path": "v", "name": None, "nullable": True}],
        "is a number": [{"path": "v", "name": 1}],
    },
    "nullable": {
        "allowed again": [{"path": "f", "nullable": True}],
        "forbidden": [{"path": "f", "nullable": False}],
        "forbidden of several": [{"path": "f", "nullable": False}, {"path": "id", "nullable": False}],
        "forbidden despite nulls": [{"path": "v", "nullable": False}],
        "forbidden of one of two with nulls": [{"path": "f", "nullable": False}, {"path": "v", "nullable": False}],
        "forbidden of a struct despite nulls": [{"path": "p", "nullable": False}],
        "forbidden of a field in null structs": [{"path": "p.x", "nullable": False}],
        "forbidden and renamed": [{"path": "f", "nullable": False, "name": "g"}],
        "forbidden and cast": [{"path": "f", "nullable": False, "data_type": INT32}],
        "forbidden beside a cast": [{"path": "f", "nullable": False}, {"path": "id", "data_type": INT64}],
        "allowed and cast": [{"path": "id", "nullable": True, "data_type": INT64}],
        "twice": [{"path": "f", "nullable": False}, {"path": "f", "nullable": True}],
        "and name, as two alterations": [{"path": "v", "name": "w"}, {"path": "v", "nullable": True}],
        "a number": [{"path": "f", "nullable": 1}],
    },
    "data_type": {
        "narrower": [{"path": "f", "data_type": INT32}],
        "too narrow": [{"path": "f", "data_type": INT8}, {"path": "v", "data_type": pa.float16()}],
        "wider": [{"path": "id", "data_type": INT64}],
        "the same": [{"path": "f", "data_type": INT64}],
        "of several": [{"path": "f", "data_type": INT32}, {"path": "id", "data_type": INT64}],
        "beside a new name": [{"path": "f", "data_type": INT32}, {"path": "s", "name": "t"}],
        "with a new name": [{"path": "f", "data_type": INT32, "name": "g"}],
        "with every option": [{"path": "f", "data_type": INT32, "name": "g", "nullable": True}],
        "of another kind": [{"path": "s", "data_type": INT32}],
        "of a field": [{"path": "p.x", "data_type": INT32}],
        "of a field with a new name": [{"path": "p.x", "data_type": INT32, "name": "xx"}],
        "of a field of a field": [{"path": "p.q.z", "data_type": INT32}],
        "of two fields": [{"path": "p.x", "data_type": INT32}, {"path": "p.y", "data_type": pa.large_string()}],
        "of a field beside a column": [{"path": "p.x", "data_type": INT8}, {"path": "f", "data_type": INT16}],
        "of a field, then a new name of its struct": [{"path": "p.x", "data_type": INT32}, {"path": "p", "name": "w"}],
        "of a struct's new name, then of its field": [{"path": "p", "name": "w"}, {"path": "p.q.z", "data_type": INT8}],
        "of a field beside a renamed one": [{"path": "p.x", "data_type": INT8}, {"path": "p.y", "name": "yy"}],
        "of items": [{"path": "l.item", "data_type": INT32}],
        "of a list": [{"path": "l", "data_type": pa.list_(INT32)}],
        "of a list to large": [{"path": "l", "data_type": pa.large_list(INT64)}],
        "of a list to fixed-size": [{"path": "l", "data_type": pa.list_(INT64, 2)}],
        "of a list whose item is renamed": [
            {"path": "l.item", "name": "g"},
            {"path": "l", "data_type": pa.list_(INT32)},
        ],
        "of a list and of its item": [
            {"path": "l.item", "data_type": INT16},
            {"path": "l", "data_type": pa.list_(INT32)},
        ],
        "of a list before its item is renamed": [
            {"path": "l", "data_type": pa.list_(INT32)},
            {"path": "l.item", "name": "g"},
        ],
        "of a struct": [{"path": "p", "data_type": pa.struct([("x", INT32)])}],
        "after a new name, as two alterations": [{"path": "f", "name": "g"}, {"path": "f", "data_type": INT32}],
        "before a new name, as two alterations": [{"path": "f", "data_type": INT32}, {"path": "f", "name": "g"}],
        "twice": [{"path": "f", "data_type": INT32}, {"path": "f", "data_type": INT16}],
        "by its name": [{"path": "f", "data_type": "int32"}],
    },
}
STRICT: dict[str, Alterations] = {
    "allowed": [{"path": "k", "nullable": True}],
    "allowed and cast": [{"path": "k", "nullable": True, "data_type": INT16}],
    "kept by a cast": [{"path": "k", "data_type": INT16}],
    "kept by a cast and a new name": [{"path": "k", "data_type": INT16, "name": "z"}],
    "stated again with a cast": [{"path": "k", "nullable": False, "data_type": INT16}],
}
OLD: dict[str, Alterations] = {
    "cast": [{"path": "f", "data_type": INT32, "name": "g"}],
    "rename": [{"path": "p.x", "name": "g"}, {"path": "p", "name": "q"}],
    "forbid": [{"path": "f", "nullable": False}],
    "cast a field": [{"path": "p.x", "data_type": INT32}],
}
NAMES = Difference("A new or renamed column cannot have the name", ours_succeeds=False, theirs_succeeds=True)
ONE_ALTERATION = "Several alterations of one column are one"
GIVEN_NAME = ["id", "v", "g", "s", "p", "l"]
KNOWN = {
    ("name", "empty"): NAMES,
    ("name", "of a row column"): NAMES,
    ("name", "taken in the struct"): NAMES,
    ("name", "is None"): Difference("`None` leaves a property as it is", rows=rows()),
    ("nullable", "forbidden of a field in null structs"): Difference(
        "a null of an enclosing struct is no null", rows=rows()
    ),
    ("data_type", "before a new name, as two alterations"): Difference(
        ONE_ALTERATION, rows=rows().rename_columns(GIVEN_NAME)
    ),
    ("data_type", "twice"): Difference(ONE_ALTERATION, rows=rows()),
    ("data_type", "the same"): Difference("A cast to the type that the column has", theirs_succeeds=True),
    ("nullable", "twice"): Difference(ONE_ALTERATION, theirs_succeeds=True),
}


def test_every_key_of_an_alteration_has_cases() -> None:
    assert set(OPTIONS) == set(import_module("lance.dataset").AlterColumn.__annotations__)


@pytest.mark.parametrize(("option", "case"), [(option, case) for option in OPTIONS for case in OPTIONS[option]])
def test_alterations_do_the_same(tmp_path: Path, option: str, case: str) -> None:
    alterations = OPTIONS[option][case]
    check_change(tmp_path, rows(), lambda d, _: d.alter_columns(*alterations), KNOWN.get((option, case)))


@pytest.mark.parametrize("case", STRICT)
def test_alterations_of_a_column_without_nulls_do_the_same(tmp_path: Path, case: str) -> None:
    check_change(tmp_path, strict_rows(), lambda d, _: d.alter_columns(*STRICT[case]))


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("case", OLD)
def test_alterations_of_tables_of_older_versions_do_the_same(tmp_path: Path, case: str, version: str) -> None:
    unread = Difference("some fields of a struct of a table of version 2.0", ours_succeeds=False, theirs_succeeds=True)
    known = unread if (case, version) == ("cast a field", "2.0") else None
    change = lambda d, _: d.alter_columns(*OLD[case])  # noqa: E731 # a name keeps the line short
    check_change(tmp_path, full_rows(), change, known, data_storage_version=version)
