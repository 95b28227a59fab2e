"""Match paths of a landing folder against a declaration's `glob` and `key`, in time linear in the path's length.

The writer of a file chooses its name, which these patterns run over. An engine that backtracks takes exponential time
on some names, and one such name would hold up every tick of the sensor. Keys are therefore searched by RE2, which is a
part of Arrow, and globs are matched segment by segment without backtracking.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import ConfigError
from lance_ops.core.records import dataclass

__all__ = ["MAX_PATTERN_LENGTH", "KeyPattern", "PathGlob"]

MAX_PATTERN_LENGTH = 1000
_SPANNING = "**"
_GROUP = "key"
_PART = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?|\(", re.DOTALL)
"""An escape, a class, the start of a special group, or a group without a name."""


@dataclass(frozen=True)
class PathGlob:
    """A glob over paths: `*`, `?` and `[...]` stay within a segment, and a segment `**` spans any number of them.

    Raises `ConfigError` for a pattern that is too long or has `**` in a part of a segment.
    """

    pattern: str

    def __post_init__(self) -> None:
        _check_length(self.pattern)
        for segment in self.pattern.split("/"):
            if _SPANNING in segment and segment != _SPANNING:
                raise ConfigError(f"{segment!r}: ** must be a whole segment between slashes, such as **/*.parquet")

    def matches(self, path: str) -> bool:
        """Whether the whole path matches."""
        segments = path.split("/")
        first, *rest = self._blocks
        if not rest:
            return len(first) == len(segments) and _match_from(0, first, segments)
        *middle, last = rest
        end = len(segments) - len(last)
        if len(first) > end or not _match_from(0, first, segments) or not _match_from(end, last, segments):
            return False
        start = len(first)
        for block in middle:  # the leftmost place of each block leaves the most room for those after it
            while start + len(block) <= end and not _match_from(start, block, segments):
                start += 1
            start += len(block)
        return start <= end

    @cached_property
    def _blocks(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        """The segments between one `**` and the next. `fnmatch` makes each `*` a group that gives nothing back."""
        blocks: list[list[re.Pattern[str]]] = [[]]
        segments = self.pattern.split("/")
        if segments[-1] == _SPANNING:
            segments.append("*")  # a final `**` means everything beneath, so a file has at least one more segment
        for segment in segments:
            if segment == _SPANNING:
                blocks.append([])
            else:
                blocks[-1].append(re.compile(fnmatch.translate(segment)))
        return tuple(map(tuple, blocks))


@dataclass(frozen=True)
class KeyPattern:
    r"""A regular expression of RE2 whose group `key` is a batch's key.

    RE2 has neither look-around nor back-references, and its `\d` and `\w` are ASCII. Raises `ConfigError` for a
    pattern that RE2 does not take, or that has no such group.
    """

    pattern: str

    def __post_init__(self) -> None:
        _check_length(self.pattern)
        try:
            found = pc.extract_regex(pa.nulls(1, pa.string()), self._named)  # `pa.array` would import pandas
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            raise ConfigError(f"not a regular expression of RE2: {reason}") from error
        if found.type.get_field_index(_GROUP) < 0:
            raise ConfigError("needs a group named key: (?P<key>...)")

    def search(self, paths: Sequence[str]) -> list[str | None]:
        """Return the key in each path; None for a path without a match, or with an empty key."""
        found = pc.extract_regex(pa.array(paths, pa.large_string()), self._named)
        return [match[_GROUP] or None if match else None for match in found.to_pylist()]

    @cached_property
    def _named(self) -> str:
        """The pattern with `(?:` for each group without a name: Arrow takes only named groups."""
        return _PART.sub(lambda part: "(?:" if part[0] == "(" else part[0], self.pattern)


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ConfigError(f"the pattern has {len(pattern)} characters; it may have at most {MAX_PATTERN_LENGTH}")


def _match_from(start: int, block: Sequence[re.Pattern[str]], segments: Sequence[str]) -> bool:
    """Whether the segments from `start` on match the block; there must be as many."""
    return all(map(re.Pattern.match, block, segments[start:]))
