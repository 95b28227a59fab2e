"""The list of all page layouts of 2.1 and 2.2, and the look-up of the layout that a description names."""

from __future__ import annotations

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings import check
from lance_ops.file.v2_1.layouts.blob import BlobPage
from lance_ops.file.v2_1.layouts.constant import ConstantPage
from lance_ops.file.v2_1.layouts.contract import PageContext, PageLayout
from lance_ops.file.v2_1.layouts.full_zip import FullZipPage
from lance_ops.file.v2_1.layouts.mini_block import MiniBlockPage
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire import unknown_numbers

__all__ = ["ALL_LAYOUTS", "layout_from_pb"]

ALL_LAYOUTS: tuple[type[PageLayout], ...] = (MiniBlockPage, FullZipPage, ConstantPage, BlobPage)

_BY_MESSAGE = {layout.MESSAGE: layout for layout in ALL_LAYOUTS}


def layout_from_pb(described: pb.PageLayout, context: PageContext) -> PageLayout:
    """Read a page's description.

    Raises `UnsupportedFeature` for an unknown layout or encoding, and `CorruptValues` for a contradictory one.
    """
    message = described.WhichOneof("layout")
    if message is None:
        numbers = unknown_numbers(described)
        check(bool(numbers), "a page names no layout")
        raise UnsupportedFeature(f"page layout {numbers[0]}, of a later format version,")
    return _BY_MESSAGE[message].from_pb(getattr(described, message), context, layout_from_pb)
