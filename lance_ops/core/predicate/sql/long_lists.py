"""Take long lists of plain literals out of SQL text, so that a parser does not make a node of each.

`x IN (1, 2, …)` and `x = 1 OR x = 2 OR …` become `x IN ('…')`. The text in the quotes is a name of the list that occurs
nowhere else, and the values become one Arrow array. Plain literals are integers and numbers of up to 18 digits before
and after the point, and text in single quotes without a quote inside. Any other list, and text whose quotes or comments
this module does not understand, is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import scalar
from lance_ops.core.cached_property import cached_property
from lance_ops.core.predicate.binding import ListedValues, build, number_literal
from lance_ops.core.predicate.tree import Expression, Literal
from lance_ops.core.records import dataclass

__all__ = ["LEAST_ITEMS", "TakenOut", "take_out_long_lists"]

LEAST_ITEMS = 64
"""Shorter lists are left to the parser."""

_SPACE = r"[ \t\r\n]"
_NUMBER, _TEXT = r"-?[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+", r"'[^'\"]*+'"
_MORE = LEAST_ITEMS - 1


def _list_of(item: str) -> str:
    return rf"{item}(?:{_SPACE}*+,{_SPACE}*+{item}){{{_MORE},}}+"


def _chain_of(item: str, name: str) -> str:
    return rf"{item}(?:{_SPACE}++(?i:OR){_SPACE}++(?P={name}){_SPACE}*+={_SPACE}*+{item}){{{_MORE},}}+"


_COLUMN = r"(?:[A-Za-z_][A-Za-z0-9_.]*+|`[^`'\"]++`)"
_TOKENS = re.compile(
    rf"(?P<listed>(?i:IN){_SPACE}*+\({_SPACE}*+(?P<items>{_list_of(_NUMBER)}|{_list_of(_TEXT)}){_SPACE}*+\))"
    rf"|(?P<chain>(?P<column>{_COLUMN}){_SPACE}*+={_SPACE}*+"
    rf"(?P<equals>{_chain_of(_NUMBER, 'column')}|{_chain_of(_TEXT, 'column')})"
    rf"(?P<ends>(?={_SPACE}*+(?:\)|\Z|(?i:OR)\b)))?+)"
    r"|(?P<quoted>'[^'\"]*+'(?!['\"])|`[^`]++`(?!`))"
    r"|(?P<unclear>['\"`]|--|/\*|\{[{%#])"
    r"|(?P<word>\w++)"
    rf"|(?P<space>{_SPACE}++)"
    r"|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Items:
    """A list by its text, in which each item is a number or each is a text."""

    text: str

    @property
    def values(self) -> pa.Array:
        """The items as one array of int64, float64 or text."""
        if self._is_text:
            return pa.array(self._parts, pa.string())
        kind = np.float64 if "." in self.text else np.int64
        return pa.array(np.fromstring(_COMMAS.sub(",", self.text), kind, sep=","))

    def literals(self) -> Sequence[Expression]:
        """Return the literals that the parser would make."""
        if self._is_text:
            return [Literal(scalar(part)) for part in self._parts]
        return [_number(part) for part in self._parts]

    @property
    def _is_text(self) -> bool:
        return self.text.startswith("'")

    @cached_property
    def _parts(self) -> list[str]:
        return _TEXTS.findall(self.text) if self._is_text else _NUMBERS.findall(self.text)


_TEXTS, _NUMBERS = re.compile(r"'([^']*+)'"), re.compile(_NUMBER)
"""The items of lists. In a chain the column stands between them, so `_items_of_chain` makes a list of it first."""
_QUOTED = re.compile(_TEXT)
_COMMAS = re.compile(rf"{_SPACE}*+,{_SPACE}*+")


def _number(text: str) -> Expression:
    return build.minus(number_literal(text[1:])) if text.startswith("-") else number_literal(text)


@dataclass(frozen=True)
class TakenOut:
    """SQL text without its long lists, and the lists by their names."""

    text: str
    lists: Mapping[str, ListedValues]


def take_out_long_lists(text: str) -> TakenOut:
    """Return the text with each long list replaced by its name; the same text if there is none."""
    lists: dict[str, ListedValues] = {}
    kept: list[str] = []
    before = ""
    for found in _TOKENS.finditer(text):
        match found.lastgroup:
            case "unclear":
                return TakenOut(text, {})
            case "space":
                kept.append(found[0])
                continue
            case "listed" if before not in (".", ""):
                kept.append(f"IN ({_keep(lists, found['items'], text)})")
            case "chain" if found["ends"] is not None and before.upper() in ("", "(", "OR"):
                items = _items_of_chain(found["equals"], found["column"])
                kept.append(f"{found['column']} IN ({_keep(lists, items, text)})")
            case _:
                kept.append(found[0])
        before = found[0] if found.lastgroup in ("word", "other") else ")"
    return TakenOut("".join(kept), lists)


def _items_of_chain(equals: str, column: str) -> str:
    if equals.startswith("'"):
        return ",".join(_QUOTED.findall(equals))
    return re.sub(rf"{_SPACE}++(?i:OR){_SPACE}++{re.escape(column)}{_SPACE}*+={_SPACE}*+", ",", equals)


def _keep(lists: dict[str, ListedValues], items: str, text: str) -> str:
    """Keep a list under a new name that occurs nowhere in the text; return the name as a text literal."""
    kept = _Items(items)
    name = f"list {len(lists) + 1}"
    while name in text:
        name += "+"
    lists[name] = ListedValues(kept.values, kept.literals)
    return f"'{name}'"
