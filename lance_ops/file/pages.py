"""Pages of 2.1 and 2.2 files between the container and their layouts.

Below this line nobody knows the file: what is wrong with a page's bytes is said here, with the file's name and the
place in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.encodings.contract import CorruptValues
from lance_ops.file.budget import Budget
from lance_ops.file.container import Page
from lance_ops.file.leaves import Leaf
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps
from lance_ops.file.v2_1.layouts.contract import LeafRows, PageContext, PageLayout
from lance_ops.file.v2_1.layouts.registry import layout_from_pb
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire.framing import parse_message

__all__ = ["PAGE_LAYOUT_URL", "open_page", "read_pages", "reporting"]

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"

_DECODING_ERRORS = (ValueError, IndexError, ArithmeticError, MemoryError, pa.ArrowException)


def open_page(page: Page, leaf: Leaf, size_bytes: int, path: str, place: str) -> PageLayout:
    """Parse a page's description. Raises `CorruptFile` and `UnsupportedFeature` with the file's name."""
    if page.type_url != PAGE_LAYOUT_URL:
        raise UnsupportedFeature(f"the page description {page.type_url!r}", f"{path}: {place}")
    described = parse_message(pb.PageLayout, page.encoding, path, place)
    with reporting(path, place):
        return layout_from_pb(described, PageContext(leaf, page.length, page.buffers, size_bytes))


def read_pages(
    layouts: Sequence[PageLayout],
    rows: Sequence[Rows],
    budget: Budget,
    path: str,
    place: str,
    begins: Sequence[int] = (),
) -> Steps[LeafRows]:
    """Read rows of an open page, or of several that are kin, naming the file in errors.

    Where their files are laid end to end, `begins` says for each where its file begins.
    """
    with reporting(path, place):
        found = yield from layouts[0].read_kin(layouts, rows, begins)
        budget.spend(found.values.nbytes)
        return found


def reporting(path: str, place: str) -> AbstractContextManager[None]:
    """Turn what is said about bytes into errors that name the file and the place.

    Every count and offset is checked where it is used. Should one slip through, the numpy or Arrow error it causes is
    a matter of the file's bytes still, and not of the caller's.
    """
    return _Reporting(path, place)


class _Reporting(AbstractContextManager[None]):
    """A class, since a generator costs more, several times in each read."""

    __slots__ = ("_path", "_place")

    def __init__(self, path: str, place: str) -> None:
        self._path = path
        self._place = place

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CorruptValues):
            raise CorruptFile(self._path, self._place, str(error)) from error
        if isinstance(error, UnsupportedFeature):
            raise type(error)(error.feature, f"{self._path}: {error.where or self._place}") from error
        if isinstance(error, _DECODING_ERRORS) and not isinstance(error, CorruptFile):
            reason = f"cannot be decoded: {type(error).__name__}: {error}"
            raise CorruptFile(self._path, self._place, reason) from error
