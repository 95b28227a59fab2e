"""`dataclass` as in the standard library, without compiling methods while a module loads.

The standard decorator compiles up to seven methods of each class. A cold process loads 150 such classes, and makes
values of half of them. This decorator compiles `__init__` when the first value is made. The other methods are closures
over the names of the fields (ADR 25).

Type checkers see the standard decorator; `field`, `fields`, `replace`, `asdict` and pickles are those of the standard
library. `InitVar` and the options `init`, `order`, `unsafe_hash` and `kw_only` are not supported. Bases with fields
must come from this decorator too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


class _LateInit:
    """A placeholder for a class's `__init__`, until the first value is made or a caller asks for the signature."""

    def __init__(self, cls: type[Any], frozen: bool, slots: bool) -> None:
        self._cls, self._frozen, self._slots = cls, frozen, slots

    def __get__(self, instance: object, owner: type) -> Any:
        init: Any = _written_init(self._cls, self._frozen, self._slots)
        if vars(self._cls)["__init__"] is self:
            self._cls.__init__ = init
        return init.__get__(instance, owner)


class _FromFactory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FROM_FACTORY = _FromFactory()


def _written_init(cls: type[Any], frozen: bool, slots: bool) -> Callable[..., None]:
    """Compile `__init__`. The text holds names of fields alone; defaults and factories are names of its namespace."""
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"__set": object.__setattr__, "__factory": _FROM_FACTORY}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body = []
    for each in fields:
        name, default, factory = each.name, f"__default_{each.name}", f"__factory_{each.name}"
        has_default = each.default is not dataclasses.MISSING
        has_factory = each.default_factory is not dataclasses.MISSING
        names |= {default: each.default, factory: each.default_factory}
        value = name
        if each.init:
            written_default = f"={default}" if has_default else "=__factory" if has_factory else ""
            parameters[bool(each.kw_only)].append(f"{name}{written_default}")
            if has_factory:
                value = f"{factory}() if {name} is __factory else {name}"
        elif has_factory:
            value = f"{factory}()"
        elif has_default and slots:  # without slots, the class has the default
            value = default
        else:
            continue
        body.append(f"__set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    keywords = ["*", *parameters[True]] if parameters[True] else []
    text = f"def __init__({', '.join(['self', *parameters[False], *keywords])}):\n  " + "\n  ".join(body or ["pass"])
    exec(text, names)  # the text is made of the names of fields
    init: Callable[..., None] = names["__init__"]
    init.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return init


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _compare(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any, object], bool]:
    values = _values_of([each.name for each in fields if each.compare])

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807 # it becomes the class's
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any], int]:
    values = _values_of([each.name for each in fields if (each.compare if each.hash is None else each.hash)])

    def __hash__(self: Any) -> int:  # noqa: N807 # it becomes the class's
        return hash(values(self))

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _forbid_changes(cls: Any, fields: tuple[dataclasses.Field[Any], ...]) -> None:
    names = frozenset(each.name for each in fields)

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807 # it becomes the class's
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807 # it becomes the class's
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _record(cls: type[Any], *, frozen: bool, eq: bool, repr: bool, slots: bool) -> Any:  # noqa: A002 # the standard's
    own = vars(cls).copy()
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(made)
    if "__init__" not in own:
        made.__init__ = _LateInit(made, frozen, slots)
    if repr and "__repr__" not in own:
        made.__repr__ = _repr
    if eq and "__eq__" not in own:
        made.__eq__ = _compare(fields)
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if eq and not has_hash:
        made.__hash__ = _hash(fields) if frozen else None
    if frozen:
        _forbid_changes(made, fields)
        if slots:
            made.__getstate__ = own.get("__getstate__", _state)
            made.__setstate__ = own.get("__setstate__", _set_state)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False):  # noqa: A002 # the standard's names
        """Make a class whose annotated attributes are fields, as `dataclasses.dataclass` does."""
        make = partial(_record, frozen=frozen, eq=eq, repr=repr, slots=slots)
        return make if cls is None else make(cls)
