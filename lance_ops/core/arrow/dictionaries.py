"""Turn plain values into a dictionary of any type of values."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["as_dictionary"]


def as_dictionary(values: pa.Array, wanted: pa.DictionaryType) -> pa.DictionaryArray:
    """Return plain values as a dictionary of this type. Arrow's own cast does so for text and bytes alone.

    Raises what Arrow raises for values of another kind, and for more different values than the indices can count.
    """
    encoded = values.cast(wanted.value_type).dictionary_encode()
    indices = encoded.indices.cast(wanted.index_type)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=wanted.ordered)
