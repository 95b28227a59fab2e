"""Pages of 2.1 and 2.2 files between the container and their layouts.

Below this line nobody knows the file: what is wrong with a page's bytes is said here, with the file's name and the
place in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.encodings.contract import CorruptValues
from lance_ops.file.budget import Budget
from lance_ops.file.columns import Leaf
from lance_ops.file.container import Page
from lance_ops.file.layouts.contract import LeafRows, PageContext, PageLayout
from lance_ops.file.layouts.registry import layout_from_pb
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire.framing import parse_message

__all__ = ["PAGE_LAYOUT_URL", "open_page", "read_pages", "reporting"]

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"


def open_page(page: Page, leaf: Leaf, size_bytes: int, path: str, place: str) -> PageLayout:
    """Parse a page's description. Raises `CorruptFile` and `UnsupportedFeature` with the file's name."""
    if page.type_url != PAGE_LAYOUT_URL:
        raise UnsupportedFeature(f"the page description {page.type_url!r}", f"{path}: {place}")
    described = parse_message(pb.PageLayout, page.encoding, path, place)
    with reporting(path, place):
        return layout_from_pb(described, PageContext(leaf, page.length, page.buffers, size_bytes))


def read_pages(
    layouts: Sequence[PageLayout], rows: Sequence[Rows], budget: Budget, path: str, place: str
) -> Steps[LeafRows]:
    """Read rows of an open page, or of several that are kin, naming the file in errors."""
    with reporting(path, place):
        found = yield from layouts[0].read_kin(layouts, rows)
        budget.spend(found.values.nbytes)
        return found


@contextmanager
def reporting(path: str, place: str) -> Iterator[None]:
    """Turn what is said about bytes into errors that name the file and the place.

    Every count and offset is checked where it is used. Should one slip through, the numpy or Arrow error it causes is
    a matter of the file's bytes still, and not of the caller's.
    """
    try:
        yield
    except CorruptValues as error:
        raise CorruptFile(path, place, str(error)) from error
    except UnsupportedFeature as error:
        raise type(error)(error.feature, f"{path}: {error.where or place}") from error
    except CorruptFile:
        raise
    except (ValueError, IndexError, ArithmeticError, MemoryError, pa.ArrowException) as error:
        raise CorruptFile(path, place, f"cannot be decoded: {type(error).__name__}: {error}") from error
