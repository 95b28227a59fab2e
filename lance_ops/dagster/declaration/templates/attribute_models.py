"""Let a template of Dagster, `{{ ... }}`, stand for every value of a component's attributes.

Dagster validates attributes before it renders their templates. A text then stands where the declared model has a
number, a choice or a section. `with_templates` makes the model of what is written. The declared model validates the
rendered values.

Models that Dagster derives from a `dg.Resolvable` do not serve. A bound such as `ge=1` raises `TypeError` for a
template, no template may be an item of a list of choices, and the path in an error contains the names of a union's
types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

__all__ = ["templates_in", "with_rendered", "with_templates"]

_TEMPLATE = r"\{[{%]"


@cache
def with_templates(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model with the same keys, in which a template may stand for each value.

    A section without templates must be valid by `model`. In one with a template, only the keys and the
    values without a template are checked.
    """
    fields: dict[str, Any] = {
        name: (_or_template(field.rebuild_annotation()), _described_as(field))
        for name, field in model.model_fields.items()
    }

    class Written(BaseModel):
        model_config = ConfigDict(extra="forbid")

        @model_validator(mode="before")
        @classmethod
        def _valid_unless_templates(cls, written: Any) -> Any:
            if not any(templates_in(written)):
                model.model_validate(written)
            return written

    return create_model(model.__name__, __base__=Written, __doc__=model.__doc__, **fields)


def templates_in(written: object, *key: str | int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each text that holds a template, with its key; `key` leads to `written`."""
    if isinstance(written, str) and re.search(_TEMPLATE, written):
        yield key, written
    for name, item in _items(written):
        yield from templates_in(item, *key, name)


def with_rendered(written: Any, rendered: Any) -> Any:
    """Return `written`, with its templates exchanged for what stands at their places in `rendered`.

    Dagster renders every text as a template, and so makes a number of the text `"5"`.
    """
    if isinstance(written, str):
        return rendered if re.search(_TEMPLATE, written) else written
    if isinstance(written, dict):
        return {key: with_rendered(item, rendered[key]) for key, item in written.items()}
    if isinstance(written, list | tuple):
        return type(written)(with_rendered(*pair) for pair in zip(written, rendered, strict=True))
    return written


class _TemplateInSchema:
    """Lets the JSON schema accept a template, without a choice between schemas, so that errors name the wrong key."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"if": {"type": "string", "pattern": _TEMPLATE}, "else": handler(core_schema)}


def _unless_template(written: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return written if isinstance(written, str) and re.search(_TEMPLATE, written) else validate(written)


def _or_template(kind: Any) -> Any:
    """Return the type of what may be written for a value of the type `kind`."""
    if kind in (str, str | None):  # a template is a text
        return kind
    return Annotated[_with_inner(kind), WrapValidator(_unless_template), _TemplateInSchema()]


def _with_inner(kind: Any) -> Any:
    """Return the type `kind` with templates allowed within it, such as for the items of a list."""
    origin, args = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return with_templates(kind)
    if origin is Annotated:
        inner = _with_inner(args[0])
        # A validator is written for the declared types, so it waits for the rendered values.
        kept = (each for each in args[1:] if inner == args[0] or not isinstance(each, AfterValidator))
        return reduce(lambda made, each: Annotated[made, each], kept, inner)
    if origin in (Union, UnionType):
        return reduce(or_, map(_with_inner, args))
    if origin in (tuple, dict):
        return origin[tuple(arg if arg is Ellipsis else _or_template(arg) for arg in args)]
    return kind


def _described_as(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True)
    return Field(default=default, description=field.description, repr=field.repr)


def _items(written: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(written, dict):
        yield from written.items()
    elif isinstance(written, list | tuple):
        yield from enumerate(written)
