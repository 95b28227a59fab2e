"""Check the arguments of public functions by their annotations, so that an error names the wrong one before any work.

Without this, a wrong type or a number beyond 64 bits would fail somewhere below, with an error of another library. The
annotations are the only statement of what a function takes. Where they leave it open (`Any`, a protocol, the items of a
stream), the function itself checks.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from itertools import chain
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

import numpy as np

from lance_ops.core.errors import InvalidInput, WrongType

__all__ = ["check_arguments", "check_public_methods", "row_numbers"]

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)
N = TypeVar("N", np.int64, np.uint64)

_Fits: TypeAlias = Callable[[Any], bool]

_CHECKED_ITEMS = 1000
"""Longer lists are rows rather than names; the function that reads them checks their items."""

_SHOWN = 100  # characters of a value in an error

_HOLDS_SECRETS = re.compile("storage_options|store_params")

_MIN, _MAX = -(1 << 63), (1 << 63) - 1

_VERSIONS = frozenset({"read_version", "reference", "version"})
"""Arguments that name a version. The number of a detached version has the highest of 64 bits."""


def check_arguments(function: F) -> F:
    """Return the function with checked arguments.

    It then raises `WrongType` for an argument that its annotation does not allow, and `InvalidInput` for an integer of
    more than 64 bits.
    """

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        rules, refuse_none = _rules(function), _refuse_none(function)
        names, rest = _positional(function)
        others = [(rest, value) for value in args[len(names) :]] if rest is not None else ()
        for name, value in chain(zip(names, args, strict=False), others, kwargs.items()):
            if value is None and name not in refuse_none:
                continue  # most options of a scan are left out
            fits = rules.get(name)
            if fits is not None and not fits(value):
                raise _error(function, name, value)
        return function(*args, **kwargs)

    return typing.cast("F", checked)


def check_public_methods(kind: K) -> K:
    """Let all public methods that a class itself defines check their arguments; return the class."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            setattr(kind, name, check_arguments(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(check_arguments(member.__func__)))
    return kind


def row_numbers(given: Any, name: str, kind: type[N]) -> np.ndarray[tuple[int], np.dtype[N]]:
    """Return positions, ids or addresses of rows as an array of the integer type `kind`.

    Errors call the argument `name`. Raises `WrongType` for anything but a list of integers, and `InvalidInput` for a
    number that `kind` does not hold.
    """
    found = np.asarray(given)
    if found.dtype.kind == "f":  # numpy makes floats of signed integers beside unsigned ones of 64 bits
        found = np.asarray(given, object)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iuO"):
        raise WrongType(f"{name} must be a list of integers, not {_shown(given)}")
    if found.dtype == kind or not len(found):
        return found.astype(kind, copy=False)
    numbers = found.tolist() if found.dtype.kind == "O" else [int(found.min()), int(found.max())]
    if not all(isinstance(number, Integral) for number in numbers):
        raise WrongType(f"{name} must be a list of integers, not {_shown(given)}")
    limits = np.iinfo(kind)
    beyond = next((number for number in numbers if not limits.min <= number <= limits.max), None)
    if beyond is not None:
        raise InvalidInput(f"{name} must be {limits.min} to {limits.max}, not {beyond}")
    return found.astype(kind)


def _error(function: Callable[..., Any], name: str, value: Any) -> InvalidInput:
    place = f"{function.__qualname__}: {name}"
    if isinstance(value, Integral) and not _MIN <= int(value) <= _largest(name):
        return InvalidInput(f"{place} must fit into 64 bits, not {value}")
    hint = eval(function.__annotations__[name], vars(sys.modules[function.__module__]))
    wanted = re.sub(r"\b[a-z_.]+\.(?=[A-Za-z])", "", inspect.formatannotation(hint))
    shown = f"a {type(value).__name__}" if _HOLDS_SECRETS.search(name) else _shown(value)
    return WrongType(f"{place} must be {wanted}, not {shown}")


def _shown(value: Any) -> str:
    """Return a value for an error. The values of a mapping may be secrets, so only its keys are shown."""
    text = f"keys {list(value)}" if isinstance(value, Mapping) else repr(value)
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'} ({type(value).__name__})"


@cache
def _rules(function: Callable[..., Any]) -> dict[str, _Fits]:
    """Return the rule of each argument that can be checked."""
    names = vars(sys.modules[function.__module__])
    rules: dict[str, _Fits] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation is parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            continue
        try:
            hint = eval(parameter.annotation, names)
        except NameError:  # imported for a type checker only
            continue
        fits = _rule(hint, _largest(parameter.name))
        if fits is not None:
            rules[parameter.name] = fits
    return rules


@cache
def _positional(function: Callable[..., Any]) -> tuple[list[str], str | None]:
    """Return the names of the parameters before `*args`, and the name of `*args` (None if the function has none).

    Signatures are read when a function is first called: a cold process calls few of them.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters]
    rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    return (names, None) if rest is None else (names[: names.index(rest)], rest)


@cache
def _refuse_none(function: Callable[..., Any]) -> frozenset[str]:
    """Return the checked arguments that must not be None; an optional argument may be, whatever its annotation."""
    parameters = inspect.signature(function).parameters
    return frozenset(name for name, fits in _rules(function).items() if parameters[name].default and not fits(None))


def _largest(name: str) -> int:
    return (1 << 64) - 1 if name in _VERSIONS else _MAX


def _rule(hint: Any, largest: int = _MAX) -> _Fits | None:
    """Return what decides whether a value fits an annotation; None if every value does.

    No integer may exceed `largest`.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _any_of(tuple(_rule(each, largest) for each in arguments))
    if origin is typing.Literal:
        return lambda value: any(type(value) is type(each) and value == each for each in arguments)
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint is bool:
        return lambda value: isinstance(value, bool | np.bool_)
    if hint is int:
        return lambda value: isinstance(value, Integral) and _MIN <= int(value) <= largest
    if hint is float:
        return lambda value: isinstance(value, Real)
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return _tuple_of(tuple(_rule(each, largest) for each in arguments))
    if typing.is_typeddict(hint):
        return _entries_of({key: _rule(each) for key, each in typing.get_type_hints(hint).items()})
    kind = hint if origin is None else origin
    if not isinstance(kind, type) or kind in (object, Any) or getattr(kind, "_is_protocol", False):
        return None
    if issubclass(kind, Mapping):
        return _mapping_of(tuple(map(_rule, arguments)))
    if kind in (Sequence, Iterable, Collection, list):
        rule = _rule(arguments[0]) if arguments else None
        return _items_of(rule, has_length=kind is not Iterable, are_numbers=arguments[:1] == (int,))
    return lambda value: isinstance(value, kind)


def _any_of(rules: tuple[_Fits | None, ...]) -> _Fits | None:
    known = [rule for rule in rules if rule is not None]
    return (lambda value: any(rule(value) for rule in known)) if len(known) == len(rules) else None


def _tuple_of(rules: tuple[_Fits | None, ...]) -> _Fits:
    def fits(value: Any) -> bool:
        if not isinstance(value, tuple) or len(value) != len(rules):
            return False
        return all(rule is None or rule(item) for rule, item in zip(rules, value, strict=True))

    return fits


def _mapping_of(rules: tuple[_Fits | None, ...]) -> _Fits:
    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        pairs = zip(rules, (list(value), list(value.values())), strict=False)
        return all(rule is None or all(map(rule, items)) for rule, items in pairs)

    return fits


def _entries_of(rules: Mapping[str, _Fits | None]) -> _Fits:
    """Accept a mapping whose known keys have values that fit; the function checks which keys there are."""

    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(rule is None or key not in value or rule(value[key]) for key, rule in rules.items())

    return fits


def _items_of(rule: _Fits | None, *, has_length: bool, are_numbers: bool) -> _Fits:
    """Accept whatever has items, such as arrays and data frames' columns, but no text, bytes or mapping.

    Of items that must be integers and are Python's or an array's, the least and the greatest stand for all.
    """

    def fits(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            return False
        if has_length and not hasattr(value, "__len__"):
            return False
        is_short = hasattr(value, "__len__") and len(value) <= _CHECKED_ITEMS
        if rule is None or not is_short:
            return True
        is_array = type(value) is np.ndarray and value.ndim == 1  # a masked one hides values from min() and max()
        if are_numbers and is_array and value.dtype.kind in "iu":
            return not len(value) or (rule(value.min()) and rule(value.max()))
        if are_numbers and set(map(type, value)) == {int}:
            return rule(min(value)) and rule(max(value))
        return all(map(rule, value))

    return fits
