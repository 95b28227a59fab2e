"""`LanceFragment`, and fragments written without a commit, under the reference's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.fragments.data_file import DataFile
    from lance_ops.api.fragments.fragment import FragmentSession, LanceFragment
    from lance_ops.api.fragments.row_id_sequence import RowIdSequence
    from lance_ops.api.fragments.uncommitted_fragments import write_fragments

__all__ = [
    "DataFile",
    "FragmentSession",
    "LanceFragment",
    "RowIdSequence",
    "write_fragments",
]

_MODULES = {
    "DataFile": "data_file",
    "FragmentSession": "fragment",
    "LanceFragment": "fragment",
    "RowIdSequence": "row_id_sequence",
    "write_fragments": "uncommitted_fragments",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
