"""The reference's `lance.hf`: columns that a Hugging Face dataset described when it was written."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.optional_packages import import_optional

__all__ = ["HuggingFaceConverter"]

_IMAGE = "Image"


class HuggingFaceConverter:
    """Converts columns by the description that Hugging Face keeps in a schema's metadata, under `huggingface`."""

    def __init__(self, ds_info: Mapping[str, Any]) -> None:
        self.ds_info = ds_info

    def to_pytorch(self, col: str, array: pa.Array) -> list[Any] | None:
        """Return the images of a column as Pillow opens them; None if the description does not name the column.

        An image is a struct that holds its encoded bytes. Needs the extra `images`. Raises `UnsupportedFeature` for a
        column of another kind, and `InvalidInput` for an image that only names a file: a table must not decide which
        files are read.
        """
        feature = self.ds_info.get("info", {}).get("features", {}).get(col)
        if feature is None:
            return None
        if feature.get("_type") != _IMAGE:
            raise UnsupportedFeature(f"a tensor of Hugging Face's {feature.get('_type')}", f"column {col!r}")
        return [None if row is None else _image(col, row) for row in array.to_pylist()]


def _image(col: str, row: Mapping[str, Any]) -> Any:
    image = import_optional("PIL.Image", "an image of Hugging Face", "images")
    if row.get("bytes") is None:
        raise InvalidInput(
            f"column {col!r} has an image without its bytes, of file {row.get('path')!r}: write the table with the "
            "bytes, or read the files in to_tensor_fn"
        )
    return image.open(io.BytesIO(row["bytes"]))
