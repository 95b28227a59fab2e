"""Turn errors of decoding into errors that name the file and the place in it.

Encodings and layouts do not know which file their bytes come from. The reader that calls them adds the name.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.encodings import CorruptValues

__all__ = ["naming_place"]

_DECODING_ERRORS = (ValueError, IndexError, ArithmeticError, MemoryError, pa.ArrowException)


def naming_place(path: str, place: str) -> AbstractContextManager[None]:
    """Raise decoding errors of the block as `CorruptFile` or `UnsupportedFeature` with the file and the place.

    Every count and offset is checked where it is used. If a check is missing, the numpy or Arrow error that follows is
    still caused by the file's bytes, so it becomes a `CorruptFile` too.
    """
    return _NamingPlace(path, place)


class _NamingPlace(AbstractContextManager[None]):
    """A class, since a generator-based context manager costs more, several times in each read."""

    __slots__ = ("_path", "_place")

    def __init__(self, path: str, place: str) -> None:
        self._path = path
        self._place = place

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, CorruptValues):
            raise CorruptFile(self._path, self._place, str(error)) from error
        if isinstance(error, UnsupportedFeature):
            raise type(error)(error.feature, f"{self._path}: {error.where or self._place}") from error
        if isinstance(error, _DECODING_ERRORS) and not isinstance(error, CorruptFile):
            reason = f"cannot be decoded: {type(error).__name__}: {error}"
            raise CorruptFile(self._path, self._place, reason) from error
