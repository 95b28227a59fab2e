"""The three extension types of images and their arrays.

    lance.arrow.image_uri                  string or large_string: one URI for each image
    lance.arrow.encoded_image              binary or large_binary: the bytes of one file for each image
    lance.arrow.fixed_shape_image_tensor   fixed_size_list of numbers: pixels; parameters `{"shape": [...]}` as JSON

The types are not registered with Arrow, because a process may register only one type of a name, and importing the
reference registers its own. A column of an unregistered type is read as its storage; `ImageArray.from_array` makes
images of URIs or bytes again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from math import prod
from os import PathLike
from typing import Any, TypeAlias, TypeVar

import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.api.images.image_files import read_images
from lance_ops.api.images.pixels import encode_png, pixels_of
from lance_ops.core.arrow import is_text
from lance_ops.core.errors import InvalidInput, WrongType

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

Decoder: TypeAlias = Callable[[pa.Array], "npt.NDArray[Any] | pa.FixedShapeTensorArray"]
"""Makes pixels of encoded images: an array of the shape (images, …)."""

Encoder: TypeAlias = Callable[["npt.NDArray[Any]"], pa.Array]
"""Makes one encoded image of each item of an array of pixels."""

_FIRST_BYTES = 30

A = TypeVar("A", bound="ImageArray")


class ImageURIType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """The type of URIs of images; raises `WrongType` for a storage type that is no string."""

    def __init__(self, storage_type: pa.DataType = pa.string()) -> None:  # noqa: B008 # types are immutable
        if not is_text(storage_type):
            raise WrongType(f"storage_type must be string or large_string, not {storage_type}")
        super().__init__(storage_type, "lance.arrow.image_uri")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> ImageURIType:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[ImageURIArray]:
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type[ImageURIScalar]:
        return ImageURIScalar

    def __reduce__(self) -> tuple[type[ImageURIType], tuple[pa.DataType]]:
        return ImageURIType, (self.storage_type,)


class EncodedImageType(pa.ExtensionType):  # type: ignore[misc]  # as above
    """The type of encoded images, in any format; raises `WrongType` for a storage type that is not binary."""

    def __init__(self, storage_type: pa.DataType = pa.binary()) -> None:  # noqa: B008 # as above
        if not (pt.is_binary(storage_type) or pt.is_large_binary(storage_type)):
            raise WrongType(f"storage_type must be binary or large_binary, not {storage_type}")
        super().__init__(storage_type, "lance.arrow.encoded_image")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> EncodedImageType:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[EncodedImageArray]:
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type[EncodedImageScalar]:
        return EncodedImageScalar

    def __reduce__(self) -> tuple[type[EncodedImageType], tuple[pa.DataType]]:
        return EncodedImageType, (self.storage_type,)


class FixedShapeImageTensorType(pa.ExtensionType):  # type: ignore[misc]  # as above
    """The type of images as pixels of one type, all of one shape. Raises `InvalidInput` for an empty shape."""

    def __init__(self, arrow_type: pa.DataType, shape: Iterable[int]) -> None:
        self.arrow_type = arrow_type
        self.shape = tuple(shape)
        if not self.shape:
            raise InvalidInput("the shape of an image has at least one dimension")
        super().__init__(pa.list_(arrow_type, prod(self.shape)), "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"shape": self.shape}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> FixedShapeImageTensorType:
        return cls(storage_type.value_type, json.loads(serialized)["shape"])

    def __arrow_ext_class__(self) -> type[FixedShapeImageTensorArray]:
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type[FixedShapeImageTensorScalar]:
        return FixedShapeImageTensorScalar

    def __reduce__(self) -> tuple[type[FixedShapeImageTensorType], tuple[pa.DataType, tuple[int, ...]]]:
        return FixedShapeImageTensorType, (self.arrow_type, self.shape)


class ImageScalar(pa.ExtensionScalar):  # type: ignore[misc]  # as above
    """One image of an array."""

    def as_py(self, **kwargs: Any) -> Any:
        """Return its URI, its bytes or its pixels in a flat list; None for a null."""
        return None if self.value is None else self.value.as_py(**kwargs)


class ImageURIScalar(ImageScalar):
    """The URI of one image."""


class EncodedImageScalar(ImageScalar):
    """The bytes of one image."""


class FixedShapeImageTensorScalar(ImageScalar):
    """The pixels of one image."""


class ImageArray(pa.ExtensionArray):  # type: ignore[misc]  # as above
    """Images in one of the three forms."""

    @classmethod
    def from_array(cls, images: Any) -> ImageArray:
        """Return strings as URIs, binary values as encoded images, and pyarrow's tensors as pixels.

        A chunked array is joined, an array of images is returned as it is, and any other iterable holds URIs. Raises
        `WrongType` for anything else.
        """
        if isinstance(images, pa.ChunkedArray):
            images = images.combine_chunks()
        match images:
            case ImageArray():
                made: ImageArray = images
                return made
            case pa.StringArray() | pa.LargeStringArray():
                return _stored(ImageURIArray, ImageURIType(images.type), images)
            case pa.BinaryArray() | pa.LargeBinaryArray():
                return _stored(EncodedImageArray, EncodedImageType(images.type), images)
            case pa.FixedShapeTensorArray():
                return _tensors(images)
            case pa.Array() | str() | bytes():
                pass
            case Iterable():
                return ImageURIArray.from_uris(images)
        kind = images.type if isinstance(images, pa.Array) else type(images).__name__
        raise WrongType(f"images are URIs, encoded images or tensors, not {kind}")

    def __repr__(self) -> str:
        return f"<lance_ops.arrow.{type(self).__name__} object at 0x{id(self):016x}>\n{self.to_pylist()!r}"


class ImageURIArray(ImageArray):
    """URIs of images: paths, `file:`, `http(s)://`, and those of object stores."""

    @classmethod
    def from_uris(cls, uris: pa.Array | Iterable[str | PathLike[str] | None]) -> ImageURIArray:
        """Return an array of these URIs or paths; raise `WrongType` for anything else. None stays null."""
        if isinstance(uris, pa.StringArray | pa.LargeStringArray):
            return _stored(ImageURIArray, ImageURIType(uris.type), uris)
        if isinstance(uris, str | bytes | pa.Array) or not isinstance(uris, Iterable):
            raise WrongType(f"uris must be strings or paths, not {type(uris).__name__}")
        texts = [None if uri is None else str(uri) for uri in uris]
        return _stored(ImageURIArray, ImageURIType(), pa.array(texts, pa.string()))

    def read_uris(self, storage_type: pa.DataType = pa.binary()) -> EncodedImageArray:  # noqa: B008 # as above
        """Read the files into memory and return them as encoded images; a null stays null.

        Every URI is read that the array names, also local files and servers, with the rights of this process: check the
        URIs of a table whose writers you do not trust. For more than 2 GiB pass `pa.large_binary()`.

        Raises `StoreError` naming the URI that cannot be read, `ObjectNotFound` if nothing is there, and `InvalidInput`
        if the storage type cannot hold the bytes.
        """
        images = pa.array(read_images(self.storage.to_pylist()), storage_type)
        if isinstance(images, pa.ChunkedArray):
            raise InvalidInput("the images have more than 2 GiB: pass storage_type=pa.large_binary()")
        return _stored(EncodedImageArray, EncodedImageType(storage_type), images)


class EncodedImageArray(ImageArray):
    """Images as the bytes of their files, in any format."""

    def to_tensor(self, decoder: Decoder | None = None) -> FixedShapeImageTensorArray:
        """Decode the images, which have one shape, and return their pixels.

        `decoder` takes the array of bytes and returns a numpy array of the shape (images, …), or a
        `pyarrow.FixedShapeTensorArray`. By default Pillow decodes, which needs the extra `images`. It raises
        `InvalidInput` for no image, for a null, for bytes that are no image, and for images of several shapes or types.
        """
        made = (pixels_of if decoder is None else decoder)(self.storage)
        is_tensor = isinstance(made, pa.FixedShapeTensorArray)
        return _tensors(made if is_tensor else pa.FixedShapeTensorArray.from_numpy_ndarray(made))

    def __repr__(self) -> str:
        first = next((image for image in self.to_pylist() if image is not None), b"")[:_FIRST_BYTES]
        return f"<lance_ops.arrow.EncodedImageArray object at 0x{id(self):016x}>\n{len(self)} images: {first!r}…"


class FixedShapeImageTensorArray(ImageArray):
    """Images as pixels, all of one shape."""

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the pixels as an array of the shape (images, …); raise `InvalidInput` for a null."""
        if self.null_count:
            raise InvalidInput(f"{self.null_count} images are null, and have no pixels: drop them first")
        tensor = pa.fixed_shape_tensor(self.type.arrow_type, self.type.shape)
        pixels: npt.NDArray[Any] = pa.ExtensionArray.from_storage(tensor, self.storage).to_numpy_ndarray()
        return pixels

    def to_encoded(
        self,
        encoder: Encoder | None = None,
        storage_type: pa.DataType = pa.binary(),  # noqa: B008 # as above
    ) -> EncodedImageArray:
        """Encode each image, by default as a PNG file, which needs the extra `images`.

        `encoder` takes what `to_numpy` returns, and returns an array of bytes. Raises `InvalidInput` for pixels that
        PNG cannot hold.
        """
        encoded = pa.array(encode_png(self.to_numpy()), storage_type) if encoder is None else encoder(self.to_numpy())
        return _stored(EncodedImageArray, EncodedImageType(storage_type), encoded)


def _stored(array: type[A], kind: pa.ExtensionType, storage: pa.Array) -> A:
    made: A = array.from_storage(kind, storage)
    return made


def _tensors(pixels: pa.FixedShapeTensorArray) -> FixedShapeImageTensorArray:
    kind = FixedShapeImageTensorType(pixels.type.value_type, pixels.type.shape)
    return _stored(FixedShapeImageTensorArray, kind, pixels.storage)
