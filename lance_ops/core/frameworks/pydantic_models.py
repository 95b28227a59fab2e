"""Derive a table's schema from a model of pydantic, under the reference's names."""

from __future__ import annotations

import inspect
import types
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import date, datetime
from enum import Enum
from typing import Any, Union, get_args, get_origin

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, WrongType
from lance_ops.core.optional_packages import import_optional

__all__ = [
    "FixedSizeListMixin",
    "MultiVector",
    "Vector",
    "get_extras",
    "is_nullable",
    "pydantic_to_schema",
    "rows_of_models",
    "table_of_models",
]

_PLAIN: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
    float: pa.float64(),
    int: pa.int64(),
    str: pa.string(),
}


class FixedSizeListMixin(ABC):
    """Marks the annotations that `Vector` and `MultiVector` make."""

    @staticmethod
    @abstractmethod
    def dim() -> int:
        """Return the number of values in a vector."""

    @staticmethod
    @abstractmethod
    def value_arrow_type() -> pa.DataType:
        """Return the Arrow type of a value."""

    @staticmethod
    @abstractmethod
    def nullable() -> bool:
        """Return whether the column may hold nulls."""

    @staticmethod
    def is_multi_vector() -> bool:
        """Return whether a value is a list of vectors."""
        return False


def Vector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> type[FixedSizeListMixin]:  # noqa: N802, B008 # the reference's name and default
    """Return the annotation of a field that holds a vector of `dim` numbers."""
    return _vectors(dim, value_type, nullable, is_list=False)


def MultiVector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> type[FixedSizeListMixin]:  # noqa: N802, B008 # as above
    """Return the annotation of a field that holds a list of vectors of `dim` numbers each."""
    return _vectors(dim, value_type, nullable, is_list=True)


def pydantic_to_schema(model: type[Any]) -> pa.Schema:
    """Return the schema of a table whose rows are instances of the model.

    Optional fields are nullable. Nested models become structs, and enums of texts become dictionaries. A timestamp has
    the time zone of the field's `json_schema_extra={"tz": ...}`. Needs the extra `pydantic`. Raises `TypeError` naming
    the field of another type.
    """
    return pa.schema(_fields(model))


def table_of_models(model: type[Any], data: Any) -> pa.Table:
    """Return instances of a model as a table of the model's schema; raise as `rows_of_models` does."""
    rows = rows_of_models(model, data)
    return pa.Table.from_pylist(rows, pydantic_to_schema(model))


def rows_of_models(model: type[Any], data: Any) -> list[dict[str, Any]]:
    """Return instances of a model as dictionaries.

    Raises `InvalidInput` for an empty list, and `WrongType` unless `data` is a list of instances of exactly this model.
    """
    base = import_optional("pydantic", "a table of models", "pydantic").BaseModel
    if not (inspect.isclass(model) and issubclass(model, base)):
        raise WrongType(f"model_class must be a subclass of pydantic.BaseModel, not {model!r}")
    if not isinstance(data, list):
        raise WrongType(f"data must be a list of {model.__name__}, not a {type(data).__name__}")
    strange = next((item for item in data if type(item) is not model), None)
    if strange is not None:
        raise WrongType(f"data must hold instances of {model.__name__} only, not of {type(strange).__name__}")
    if not data:
        raise InvalidInput(f"data holds no instance of {model.__name__}")
    return [_plain(item.model_dump()) for item in data]


def get_extras(field: Any, key: str) -> Any:
    """Return an entry of a field's `json_schema_extra`, or None."""
    extras = field.json_schema_extra
    return extras.get(key) if isinstance(extras, dict) else None


def is_nullable(field: Any) -> bool:
    """Return whether a field may hold None, or is a nullable vector. A default value alone does not make it so."""
    annotation = field.annotation
    if inspect.isclass(annotation) and issubclass(annotation, FixedSizeListMixin):
        return annotation.nullable()
    return type(None) in _alternatives(annotation)


def _fields(model: type[Any]) -> Iterator[pa.Field]:
    for name, field in model.model_fields.items():
        try:
            yield pa.field(name, _arrow_type(field.annotation, field), is_nullable(field))
        except TypeError as error:
            raise TypeError(f"{model.__name__}.{name}: {error}") from error


def _arrow_type(annotation: Any, field: Any) -> pa.DataType:
    present = [each for each in _alternatives(annotation) if each is not type(None)]
    if present:
        if len(present) > 1:
            raise TypeError(f"a column has one type, and {annotation} names {len(present)}")
        annotation = present[0]
    if get_origin(annotation) in (list, tuple):
        return _list_type(annotation, field)
    if annotation is datetime:
        return pa.timestamp("us", get_extras(field, "tz"))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if inspect.isclass(annotation) and issubclass(annotation, FixedSizeListMixin):
        vector = pa.list_(annotation.value_arrow_type(), annotation.dim())
        return pa.list_(vector) if annotation.is_multi_vector() else vector
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return _enum_type(annotation, field)
    if hasattr(annotation, "model_fields"):
        return pa.struct(list(_fields(annotation)))
    raise TypeError(f"no Arrow type for {annotation}")


def _list_type(annotation: Any, field: Any) -> pa.DataType:
    items = get_args(annotation)
    if not items or len({each for each in items if each is not ...}) > 1:
        raise TypeError(f"{annotation} does not say the one type of its items")
    return pa.list_(pa.field("item", _arrow_type(items[0], field), True))


def _enum_type(annotation: type[Enum], field: Any) -> pa.DataType:
    kinds = {type(member.value) for member in annotation}
    if kinds == {str}:
        return pa.dictionary(pa.int32(), pa.string())
    return _arrow_type(kinds.pop(), field) if len(kinds) == 1 else pa.string()


def _plain(value: Any) -> Any:
    """Return a value with the values of enums in place of their members, as text if they are of several types."""
    match value:
        case Enum():
            kinds = {type(member.value) for member in type(value)}
            return value.value if len(kinds) == 1 else str(value.value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _vectors(dim: int, value_type: pa.DataType, nullable: bool, *, is_list: bool) -> type[FixedSizeListMixin]:
    core = import_optional("pydantic_core.core_schema", "Vector", "pydantic")
    vector = core.list_schema(core.float_schema(), min_length=dim, max_length=dim)
    body = {
        "dim": staticmethod(lambda: dim),
        "value_arrow_type": staticmethod(lambda: value_type),
        "nullable": staticmethod(lambda: nullable),
        "is_multi_vector": staticmethod(lambda: is_list),
        "__get_pydantic_core_schema__": classmethod(
            lambda cls, _source, _handler: core.list_schema(vector) if is_list else vector
        ),
    }
    name = f"{'MultiVector' if is_list else 'Vector'}({dim})"
    return types.new_class(name, (list, FixedSizeListMixin), exec_body=lambda namespace: namespace.update(body))
