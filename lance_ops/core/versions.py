"""The versions of the file format, and their spellings in options, manifests and footers."""

from __future__ import annotations

from enum import Enum

from lance_ops.core.errors import InvalidInput, UnsupportedFeature

__all__ = ["FileVersion"]


class FileVersion(Enum):
    """A version of the file format. The value is the manifest's spelling, which also orders versions."""

    V0_1 = "0.1"
    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"

    @classmethod
    def parse(cls, text: str) -> FileVersion:
        """Parse a user's spelling: a number, an alias (`stable`, `legacy`) or an old name (`0.3` is 2.0).

        Raises `UnsupportedFeature` for versions that this library does not read (`2.3`, `next`), `InvalidInput` for any
        other text.
        """
        name = text.strip().lower()
        if name in ("2.3", "next"):
            raise UnsupportedFeature(f"file version {text!r} (unstable)")
        known = {"stable": cls.V2_2, "legacy": cls.V0_1, "0.3": cls.V2_0} | {version.value: version for version in cls}
        if name not in known:
            raise InvalidInput(f"file version {text!r} is unknown: use one of {', '.join(sorted(known))}")
        return known[name]

    @classmethod
    def from_manifest(cls, text: str, where: str) -> FileVersion:
        """Parse a manifest's spelling, which has no aliases; `where` names the manifest in the error."""
        version = _BY_SPELLING.get(text)
        if version is None:
            raise UnsupportedFeature(f"data storage version {text!r}", where)
        return version

    @classmethod
    def from_numbers(cls, major: int, minor: int, where: str) -> FileVersion:
        """Return the version of a footer's or a `DataFile`'s numbers.

        The footer of a 2.0 file states (0, 3), that of a 0.1 file (0, 0) to (0, 2).
        """
        version = _BY_NUMBERS.get((major, minor))
        if version is None:
            raise UnsupportedFeature(f"file version {major}.{minor}", where)
        return version

    @property
    def footer(self) -> tuple[int, int]:
        """The (major, minor) that a file's footer states."""
        return _NUMBERS[self][0]

    @property
    def data_file(self) -> tuple[int, int]:
        """The (major, minor) that a manifest's `DataFile` states."""
        return _NUMBERS[self][1]

    def __lt__(self, other: FileVersion) -> bool:
        return self._value_ < other._value_

    def __le__(self, other: FileVersion) -> bool:
        return self._value_ <= other._value_

    def __gt__(self, other: FileVersion) -> bool:
        return self._value_ > other._value_

    def __ge__(self, other: FileVersion) -> bool:
        return self._value_ >= other._value_


_NUMBERS: dict[FileVersion, tuple[tuple[int, int], ...]] = {
    FileVersion.V0_1: ((0, 2), (0, 2), (0, 1), (0, 0)),
    FileVersion.V2_0: ((0, 3), (2, 0)),
    FileVersion.V2_1: ((2, 1), (2, 1)),
    FileVersion.V2_2: ((2, 2), (2, 2)),
}

_BY_SPELLING = {version.value: version for version in FileVersion}
_BY_NUMBERS = {numbers: version for version, spellings in _NUMBERS.items() for numbers in spellings}
