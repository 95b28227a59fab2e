"""What the options of a verb are called, hold, and mean: declared once, for JSON, command line, Dagster and pages.

    rows: Annotated[int | None, Option("Refuse when more rows match.", at_least=0)] = None

The types are `str`, `int`, `float`, `bool`, a `Literal` of texts, tuples of `str` or of `int`, and mappings of `str` to
`str`, each of them perhaps with None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["DeclaredOption", "Option", "options_of"]


@dataclass(frozen=True)
class Option:
    """What stands beside an option's type: a description for people, and the limits of a number."""

    description: str
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a verb. `kinds` are the types that its value may have, without None."""

    name: str
    kinds: tuple[Any, ...]
    is_nullable: bool
    is_required: bool
    default: Any
    described: Option

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that the option allows, if it allows only some."""
        return tuple(choice for kind in self.kinds if get_origin(kind) is Literal for choice in get_args(kind))

    @property
    def kind_name(self) -> str:
        """The type for people, such as `int` or `create|move|delete`."""
        return "|".join(self.choices) or " or ".join(_KIND_NAMES[kind] for kind in self.kinds)

    def check(self, verb: str, value: object) -> None:
        """Raise `InvalidInput` for a value of another type, or beyond a limit."""
        if value is None and self.is_nullable:
            return
        if not any(_fits(value, kind) for kind in self.kinds):
            allowed = f": it is one of {', '.join(self.choices)}" if self.choices else ""
            raise InvalidInput(f"{verb}: option {self.name} cannot be {value!r}{allowed}")
        lowest, highest = self.described.at_least, self.described.at_most
        if isinstance(value, (int, float)):
            if lowest is not None and not value >= lowest:
                raise InvalidInput(f"{verb}: option {self.name} is at least {lowest:g}, not {value}")
            if highest is not None and not value <= highest:
                raise InvalidInput(f"{verb}: option {self.name} is at most {highest:g}, not {value}")


@cache
def options_of(verb: type[Any]) -> Mapping[str, DeclaredOption]:
    """Return the options of a verb by name, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    found = {}
    for field in fields(verb):
        hint = hints[field.name]
        described = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Option)), None)
        assert described is not None, f"{verb.__name__}.{field.name} is not Annotated with an Option"
        kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        found[field.name] = DeclaredOption(
            field.name,
            tuple(each for each in kinds if each is not type(None)),
            type(None) in kinds,
            default is MISSING,
            None if default is MISSING else default,
            described,
        )
    return found


def _fits(value: object, kind: Any) -> bool:
    match get_origin(kind) or kind:
        case origin if origin is Literal:
            return value in get_args(kind)
        case origin if origin is tuple:
            return isinstance(value, tuple) and all(type(each) is get_args(kind)[0] for each in value)
        case origin if origin is Mapping:
            return isinstance(value, Mapping) and all(
                isinstance(key, str) and isinstance(each, str) for key, each in value.items()
            )
        case origin if origin is float:
            return type(value) in (int, float)
    return type(value) is kind


_KIND_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true|false",
    tuple[str, ...]: "texts",
    tuple[int, ...]: "integers",
    Mapping[str, str]: "name=text pairs",
}
