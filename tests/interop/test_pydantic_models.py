"""Models of pydantic make the reference's schemas and tables."""

from __future__ import annotations

import datetime as dt
import enum
from importlib import import_module
from pathlib import Path
from typing import Any, Optional

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import DatasetAlreadyExists, InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
pytestmark = pytest.mark.interop

OURS, REFERENCE = import_module("lance_ops.pydantic"), import_module("lance.pydantic")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Inner(pydantic.BaseModel):  # type: ignore[misc, name-defined]  # found by importorskip
    number: int
    text: str | None = None


ANNOTATIONS: list[Any] = [
    int,
    float,
    str,
    bytes,
    bool,
    dt.date,
    dt.datetime,
    Optional[float],  # noqa: UP045 # the older spelling
    int | None,
    list[int],
    list[str | None],
    list[list[int]],
    list[float] | None,
    tuple[int, ...],
    Inner,
    Inner | None,
    list[Inner],
    Colour,
    Level,
    Mixed,
    Colour | None,
]

WITHOUT_ARROW_TYPE: list[Any] = [dict, Any, list, set[int], int | str, int | str | None, dict[str, int], complex]


def model_of(annotation: Any, **options: Any) -> Any:
    return pydantic.create_model("Made", value=(annotation, pydantic.Field(**options)))


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_annotations_have_the_reference_s_arrow_types(annotation: Any) -> None:
    model = model_of(annotation)
    assert OURS.pydantic_to_schema(model) == REFERENCE.pydantic_to_schema(model)


@pytest.mark.parametrize("options", [{}, {"json_schema_extra": {"tz": "UTC"}}, {"default": dt.datetime(2024, 1, 1)}])
def test_a_time_has_the_zone_that_the_field_names(options: dict[str, Any]) -> None:
    model = model_of(dt.datetime, **options)
    assert OURS.pydantic_to_schema(model) == REFERENCE.pydantic_to_schema(model)
    field = model.model_fields["value"]
    assert OURS.get_extras(field, "tz") == REFERENCE.get_extras(field, "tz")


@pytest.mark.parametrize("kind", ["Vector", "MultiVector"])
@pytest.mark.parametrize("arguments", [(3,), (2, pa.float64()), (4, pa.float16(), False), (2, pa.float32(), True)])
@pytest.mark.parametrize("is_optional", [False, True])
def test_vectors_have_the_reference_s_arrow_types(kind: str, arguments: Any, is_optional: bool) -> None:
    schemas = []
    for library in (OURS, REFERENCE):
        annotation = getattr(library, kind)(*arguments)
        schemas.append(library.pydantic_to_schema(model_of(annotation | None if is_optional else annotation)))
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("annotation", WITHOUT_ARROW_TYPE, ids=str)
def test_an_annotation_without_an_arrow_type_is_refused_by_its_field(annotation: Any) -> None:
    model = pydantic.create_model(
        "Strange", __config__=pydantic.ConfigDict(arbitrary_types_allowed=True), value=(annotation, ...)
    )
    with pytest.raises(TypeError, match="Strange.value"):
        OURS.pydantic_to_schema(model)
    with pytest.raises(TypeError):
        REFERENCE.pydantic_to_schema(model)


def test_a_vector_of_another_length_is_refused_by_pydantic() -> None:
    model = model_of(OURS.Vector(2))
    assert model(value=[1, 2]).model_dump() == {"value": [1.0, 2.0]}
    with pytest.raises(pydantic.ValidationError):
        model(value=[1, 2, 3])


def rows(library: Any) -> tuple[Any, list[Any]]:
    model = pydantic.create_model(
        "PlaneSeen",
        id=(int, ...),
        tail=(str | None, ...),
        at=(dt.datetime, pydantic.Field(json_schema_extra={"tz": "UTC"})),
        where=(library.Vector(2), ...),
        inner=(list[Inner] | None, None),
    )
    at = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    return model, [
        model(id=1, tail=None, at=at, where=[1, 2], inner=[Inner(number=5)]),
        model(id=2, tail="N1", at=at, where=[3.5, 4]),
    ]


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_instances_become_the_reference_s_table(tmp_path: Path, mode: str) -> None:
    tables = []
    for name, dataset, module in (("a", lance_ops.LanceDataset, OURS), ("b", lance.LanceDataset, REFERENCE)):
        model, data = rows(module)
        made = dataset.from_pydantic_model(model, data, tmp_path / name, mode, max_rows_per_file=1)
        assert len(made.get_fragments()) == 2
        tables.append(made.to_table())
    assert tables[0].schema == tables[1].schema
    assert tables[0].to_pylist() == tables[1].to_pylist()


def test_enums_are_stored_by_value(tmp_path: Path) -> None:
    model = pydantic.create_model("Painted", colour=(Colour, ...), level=(list[Level], ...), mixed=(Mixed | None, None))
    data = [model(colour=Colour.RED, level=[Level.LOW], mixed=Mixed.ONE), model(colour=Colour.BLUE, level=[])]
    made = lance_ops.LanceDataset.from_pydantic_model(model, data, tmp_path / "t")
    assert made.to_table().to_pylist() == [
        {"colour": "red", "level": [1], "mixed": "1"},
        {"colour": "blue", "level": [], "mixed": None},
    ]


def test_the_model_s_name_is_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, data = rows(OURS)
    lance_ops.LanceDataset.from_pydantic_model(model, data)
    assert [path.name for path in tmp_path.iterdir()] == ["plane_seen"]
    with pytest.raises(DatasetAlreadyExists):
        lance_ops.LanceDataset.from_pydantic_model(model, data)
    assert lance_ops.LanceDataset.from_pydantic_model(model, data, mode="append").count_rows() == 4


def test_data_that_is_no_list_of_the_model_is_refused(tmp_path: Path) -> None:
    model, data = rows(OURS)
    cases: list[tuple[Any, Any, type[Exception]]] = [
        (int, [1], TypeError),
        (model, tuple(data), TypeError),
        (model, [Inner(number=1)], TypeError),
        (model, [], InvalidInput),
    ]
    for model_class, given, error in cases:
        for library in (lance_ops, lance):
            with pytest.raises(ValueError if error is InvalidInput else error):
                library.LanceDataset.from_pydantic_model(model_class, given, tmp_path / "t")
    assert list(tmp_path.iterdir()) == []
