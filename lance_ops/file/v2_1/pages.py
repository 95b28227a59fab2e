"""Pages of 2.1 and 2.2 files, between the container and the layouts: open a page, read its rows."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.file.budget import Budget
from lance_ops.file.container import Page
from lance_ops.file.decoding_errors import reporting
from lance_ops.file.leaves import Leaf
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps
from lance_ops.file.v2_1.layouts import LeafRows, PageContext, PageLayout, layout_from_pb
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire import parse_message

__all__ = ["PAGE_LAYOUT_URL", "open_page", "read_pages"]

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"


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
