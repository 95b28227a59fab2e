"""Open 2.1 and 2.2 pages from their descriptions, and read their rows."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.file.container import Page
from lance_ops.file.leaves import Leaf
from lance_ops.file.open_file import LeafPage
from lance_ops.file.page_reading import Budget, RowSelection, Steps, naming_place
from lance_ops.file.v2_1.layouts import (
    PAGE_LAYOUT_URL,
    JoinedPages,
    LeafRows,
    MiniBlockDescription,
    MiniBlockPage,
    PageContext,
    PageLayout,
    describe_mini_block,
    layout_from_pb,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire import parse_message

__all__ = ["describe_joinable", "open_page", "read_joined", "read_pages"]


def open_page(page: Page, leaf: Leaf, size_bytes: int, path: str, place: str) -> PageLayout:
    """Parse a page's description. Raises `CorruptFile` and `UnsupportedFeature` with the file's name."""
    if page.type_url != PAGE_LAYOUT_URL:
        raise UnsupportedFeature(f"the page description {page.type_url!r}", f"{path}: {place}")
    described = parse_message(pb.PageLayout, page.encoding, path, place)
    with naming_place(path, place):
        return layout_from_pb(described, PageContext(leaf, page.length, page.buffers, size_bytes))


def describe_joinable(type_url: str, encoding: bytes, leaf: Leaf, path: str, place: str) -> MiniBlockDescription | None:
    """Parse the description of a page for `JoinedPages`; None if they do not take such pages."""
    if type_url != PAGE_LAYOUT_URL:
        return None
    message = parse_message(pb.PageLayout, encoding, path, place)
    if message.WhichOneof("layout") != MiniBlockPage.MESSAGE:
        return None
    described = describe_mini_block(message.mini_block_layout, leaf)
    return described if JoinedPages.takes(described) else None


def read_joined(pages: JoinedPages, rows: RowSelection, budget: Budget, path: str, place: str) -> Steps[LeafRows]:
    """Read rows of joined pages; errors name the file."""
    with naming_place(path, place):
        found = yield from pages.read(rows)
        budget.spend(found.values.nbytes)
        return found


def read_pages(
    pages: Sequence[LeafPage],
    rows: Sequence[RowSelection],
    budget: Budget,
    path: str,
    place: str,
    file_starts: Sequence[int] = (),
) -> Steps[LeafRows]:
    """Read rows of pages with equal read keys, or of one page; errors name the file.

    If the pages come from several files laid end to end, `file_starts[i]` is where the file of page `i` begins.
    """
    with naming_place(path, place):
        found: LeafRows = yield from pages[0].read_group(pages, rows, file_starts)
        budget.spend(found.values.nbytes)
        return found
