"""Arrays of images: their URIs, their encoded bytes, or their pixels, under the reference's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.images.image_arrays import (
        EncodedImageArray,
        EncodedImageScalar,
        EncodedImageType,
        FixedShapeImageTensorArray,
        FixedShapeImageTensorScalar,
        FixedShapeImageTensorType,
        ImageArray,
        ImageScalar,
        ImageURIArray,
        ImageURIScalar,
        ImageURIType,
    )

__all__ = [
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
]

_MODULES = {
    "EncodedImageArray": "image_arrays",
    "EncodedImageScalar": "image_arrays",
    "EncodedImageType": "image_arrays",
    "FixedShapeImageTensorArray": "image_arrays",
    "FixedShapeImageTensorScalar": "image_arrays",
    "FixedShapeImageTensorType": "image_arrays",
    "ImageArray": "image_arrays",
    "ImageScalar": "image_arrays",
    "ImageURIArray": "image_arrays",
    "ImageURIScalar": "image_arrays",
    "ImageURIType": "image_arrays",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
