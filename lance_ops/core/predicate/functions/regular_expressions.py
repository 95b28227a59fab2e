r"""Regular expressions with the meaning that they have in the reference, evaluated by RE2.

The reference's syntax is that of Rust's `regex`, which differs from RE2's in little: `\d`, `\w` and `\s` match all of
Unicode, and character classes may be nested and intersected. This module spells the classes out for RE2. It refuses
nested classes, and `\S` or `\W` inside a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import UnsupportedFeature

__all__ = ["FLAGS", "re2_pattern", "regexp_match"]

FLAGS = frozenset("imsU")
"""The flags that RE2 and the reference share.

`i` ignores case, and `m` lets `^` and `$` match at each line. `s` lets `.` match the end of a line, and `U` swaps
greedy and lazy.
"""

_UNICODE_CLASSES = {
    "d": r"\p{Nd}",
    "s": r"\t-\r\x{85}\p{Z}",
    "w": r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{200c}\x{200d}",
}


@lru_cache(maxsize=256)
def re2_pattern(pattern: str) -> str:
    r"""Return a pattern in RE2's syntax.

    Raises `UnsupportedFeature` for a nested class, and for `\S` or `\W` in a class.
    """
    return "".join(token for token, _ in _tokens(pattern))


def regexp_match(text: Any, pattern: pa.Scalar, flags: pa.Scalar | None = None) -> Any:
    """Return for each text the list of the texts that the groups of its first match hold; null where nothing matches.

    For a pattern without groups, the list holds the whole match. A group that the match did not use adds no item.
    """
    letters = flags.as_py() if flags is not None and flags.is_valid else ""
    rows = pa.array([text.as_py()], text.type) if isinstance(text, pa.Scalar) else text
    if not pattern.is_valid or pa.types.is_null(rows.type):
        result = pa.nulls(len(rows), pa.list_(pa.string()))
    else:
        named, num_groups = _with_named_groups(pattern.as_py())
        prefix = f"(?{letters})" if letters else ""
        result = _matched_parts(pc.cast(rows, pa.string()), prefix + named, num_groups)
    return result[0] if isinstance(text, pa.Scalar) else result


def _matched_parts(text: pa.Array, pattern: str, num_groups: int) -> pa.Array:
    values = pc.extract_regex(text, pattern)
    spans = pc.extract_regex_span(text, pattern)
    parts = [pc.struct_field(values, [group]) for group in range(num_groups)]
    in_match = [
        pc.is_valid(pc.struct_field(spans, [group])).to_numpy(zero_copy_only=False) for group in range(num_groups)
    ]
    taken = np.array(in_match).T.reshape(len(text), num_groups)
    by_row = np.arange(num_groups * len(text)).reshape(num_groups, len(text)).T
    items = pa.concat_arrays(parts).take(pa.array(by_row[taken]))
    matched = pc.is_valid(values).to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(taken.sum(axis=1))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=pa.array(~matched))


def _with_named_groups(pattern: str) -> tuple[str, int]:
    """Name every group of a pattern, or the whole pattern if it has none, because Arrow extracts named groups."""
    parts, num_groups = [], 0
    for token, is_group in _tokens(pattern):
        parts.append(f"(?P<g{num_groups}>" if is_group else token)
        num_groups += is_group
    joined = "".join(parts)
    return (joined, num_groups) if num_groups else (f"(?P<g0>{joined})", 1)


def _tokens(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a pattern in RE2's syntax, and whether a part opens a group that captures."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            yield _escape(pattern[at + 1 : at + 2], in_class=False), False
            at += 2
        elif char == "[":
            token, at = _class(pattern, at)
            yield token, False
        elif char == "(" and pattern[at + 1 : at + 2] != "?":
            yield "(", True
            at += 1
        elif char == "(" and (name := _group_name(pattern, at)):
            yield f"(?P<{name}>", True
            at = pattern.index(">", at) + 1
        else:
            yield char, False
            at += 1


def _group_name(pattern: str, start: int) -> str:
    """Return the name of the group that opens at `start`; an empty text for a group that does not capture."""
    opening = pattern[start : start + 4]
    is_named = opening.startswith("(?P<") or (opening.startswith("(?<") and opening[3:] not in ("=", "!"))
    return pattern[pattern.index("<", start) + 1 : pattern.index(">", start)] if is_named and ">" in pattern else ""


def _class(pattern: str, start: int) -> tuple[str, int]:
    """Return the class in brackets that begins at `start`, and the position after it."""
    at = start + 1
    parts = ["["]
    if pattern.startswith("^", at):
        parts.append("^")
        at += 1
    first = at
    while at < len(pattern):
        char = pattern[at]
        if char == "]" and at > first:
            return "".join([*parts, "]"]), at + 1
        if char == "\\":
            parts.append(_escape(pattern[at + 1 : at + 2], in_class=True))
            at += 2
        elif pattern.startswith("[:", at) and ":]" in pattern[at:]:
            end = pattern.index(":]", at) + 2
            parts.append(pattern[at:end])
            at = end
        elif char == "[" or pattern[at : at + 2] in ("&&", "--", "~~"):
            raise UnsupportedFeature(f"nested character class of regular expression {pattern!r} in a filter")
        else:
            parts.append(char)
            at += 1
    return "".join(parts), at


def _escape(char: str, *, in_class: bool) -> str:
    inside = _UNICODE_CLASSES.get(char.lower()) if char else None
    if inside is None:
        return "\\" + char
    if char.islower():
        return inside if in_class else f"[{inside}]"
    if in_class and char != "D":
        raise UnsupportedFeature(f"\\{char} within a character class of a regular expression in a filter")
    return r"\P{Nd}" if char == "D" else f"[^{inside}]"
