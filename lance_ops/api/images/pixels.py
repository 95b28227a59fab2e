"""Decode and encode images with Pillow."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.optional_packages import import_optional

__all__ = ["encode_png", "pixels_of"]


def pixels_of(images: pa.Array) -> npt.NDArray[Any]:
    """Return the pixels of encoded images, as an array of the shape (images, rows, columns, and perhaps channels).

    Raises `InvalidInput` for no image, a null, bytes that are no image, and images of several shapes or types.
    """
    pillow = import_optional("PIL.Image", "decoding an image", "images")
    decoded = [_decoded(pillow, data, at) for at, data in enumerate(images.to_pylist())]
    if not decoded:
        raise InvalidInput("there is no image to decode, so the shape of the pixels is not known")
    for at, pixels in enumerate(decoded):
        if (pixels.shape, pixels.dtype) != (decoded[0].shape, decoded[0].dtype):
            raise InvalidInput(
                f"image {at} has pixels {pixels.shape} of {pixels.dtype}, and image 0 has {decoded[0].shape} of "
                f"{decoded[0].dtype}: pass a decoder that makes them alike"
            )
    return np.stack(decoded)


def encode_png(images: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield each image as a PNG file; raise `InvalidInput` for pixels that Pillow cannot write."""
    pillow = import_optional("PIL.Image", "encoding an image", "images")
    for pixels in images:
        with io.BytesIO() as file:
            try:
                pillow.fromarray(pixels).save(file, format="PNG")
            except (TypeError, ValueError, OSError, KeyError) as error:
                raise InvalidInput(f"pixels {pixels.shape} of {pixels.dtype} do not become a PNG: {error}") from error
            yield file.getvalue()


def _decoded(pillow: Any, data: bytes | None, at: int) -> npt.NDArray[Any]:
    if data is None:
        raise InvalidInput(f"image {at} is null, and has no pixels: drop it first")
    try:
        with pillow.open(io.BytesIO(data)) as image:
            return np.asarray(image)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"image {at} cannot be decoded: {error}") from error
