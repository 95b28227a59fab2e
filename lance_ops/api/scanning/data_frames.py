"""Turn rows into a pandas data frame whose blob columns hold the blobs themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops import blobs as stored_blobs
from lance_ops.api.scanning.blob_file import BlobFile
from lance_ops.api.scanning.projection import Projection
from lance_ops.core.errors import InvalidInput, MissingPackage
from lance_ops.reading import ROW_ADDRESS

__all__ = ["LAZY", "check_blob_mode", "data_frame"]

LAZY = "lazy"
_BYTES = "bytes"
_DESCRIPTIONS = "descriptions"
_BLOB_MODES = (LAZY, _BYTES, _DESCRIPTIONS)


def check_blob_mode(blob_mode: str) -> None:
    """Raise `InvalidInput` unless the mode is one of the reference's three: `lazy`, `bytes`, `descriptions`."""
    if blob_mode not in _BLOB_MODES:
        raise InvalidInput(f"blob_mode {blob_mode!r} is none of {', '.join(_BLOB_MODES)}")


def data_frame(rows: pa.Table, projection: Projection, blob_mode: str, **kwargs: Any) -> Any:
    """Return rows, read with their addresses, as a data frame. Blobs inside lists and structs stay descriptions."""
    answer = projection.apply(rows)
    try:
        frame = answer.to_pandas(**kwargs)
    except ImportError as error:
        raise MissingPackage("to_pandas", "pandas", "pandas", str(error)) from error
    blobs = {} if blob_mode == _DESCRIPTIONS else projection.blob_columns
    reader, addresses = stored_blobs.BlobReader(projection.snapshot), rows.column(ROW_ADDRESS).to_numpy()
    for name, field in blobs.items():
        places = reader.locate(field, answer.column(name).combine_chunks(), addresses)
        values = np.empty(len(places), dtype=object)
        if blob_mode == _BYTES:
            values[:] = reader.fetch(places)
        else:
            values[:] = [None if place is None else BlobFile(place) for place in places]
        frame[name] = values
    return frame
