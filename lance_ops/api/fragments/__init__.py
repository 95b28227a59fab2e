"""`LanceFragment`, and fragments written without a commit, under the reference's names."""

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
