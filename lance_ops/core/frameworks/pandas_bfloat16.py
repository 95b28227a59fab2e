"""Numbers of the type bfloat16 as an extension array of pandas. Importing this module needs pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.frameworks.bfloat16 import BFloat16, BFloat16Array, BFloat16Type, bfloat16_array, to_floats
from lance_ops.core.optional_packages import import_optional

__all__ = ["PandasBFloat16Array", "PandasBFloat16Type"]

pd: Any = import_optional("pandas", "bfloat16 in a data frame", "pandas")


@pd.api.extensions.register_extension_dtype
class PandasBFloat16Type(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]  # a base that is imported here
    """The dtype `lance.bfloat16`. A missing value is None."""

    name = "lance.bfloat16"
    names = None
    kind = "f"
    type = BFloat16
    na_value = None
    _is_numeric = True

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the class of its arrays."""
        return PandasBFloat16Array

    @classmethod
    def construct_from_string(cls, string: str) -> Self:
        """Return the dtype of that name; raise `TypeError` for another name, as pandas asks of it."""
        if string != cls.name:
            raise TypeError(f"Cannot construct a '{cls.__name__}' from '{string}'")
        return cls()

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> PandasBFloat16Array:
        return PandasBFloat16Array(array)


class PandasBFloat16Array(pd.api.extensions.ExtensionArray):  # type: ignore[misc]  # as above
    """Numbers and missing values. It cannot be changed in place."""

    dtype = PandasBFloat16Type()
    __hash__ = None  # type: ignore[assignment]  # as other arrays of pandas

    def __init__(self, data: BFloat16Array | pa.ChunkedArray) -> None:
        self.data = _joined(data)

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any]) -> Self:
        """Return the numbers of a numpy array of ml_dtypes' type `bfloat16`; raise `InvalidInput` for another type."""
        return cls(BFloat16Array.from_numpy(array))

    @classmethod
    def _from_sequence(cls, scalars: Iterable[Any], *, dtype: Any = None, copy: bool = False) -> Self:
        return cls(bfloat16_array([None if each is None or each is pd.NA else float(each) for each in scalars]))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Self]) -> Self:
        return cls(pa.chunked_array([each.data for each in to_concat], BFloat16Type()))

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, item: Any) -> Any:
        item = pd.api.indexers.check_array_indexer(self, item)
        if isinstance(item, (int, np.integer)):
            return self.data[int(item)].as_py()
        return type(self)(self.data.take(pa.array(np.arange(len(self))[item])))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, PandasBFloat16Array):
            return NotImplemented
        return self.to_numpy(np.float32) == other.to_numpy(np.float32)

    def isna(self) -> npt.NDArray[np.bool_]:
        """Return which values are missing."""
        missing: npt.NDArray[np.bool_] = self.data.is_null().to_numpy(zero_copy_only=False)
        return missing

    def take(self, indices: Sequence[int], *, allow_fill: bool = False, fill_value: Any = None) -> Self:
        """Return the values at these positions; with `allow_fill`, -1 is a missing value."""
        positions = np.asarray(indices, np.int64)
        if not allow_fill:
            return type(self)(self.data.take(pa.array(np.arange(len(self))[positions])))
        if len(positions) and (positions.min() < -1 or positions.max() >= len(self)):
            raise IndexError(f"positions are -1 to {len(self) - 1}, not {positions.min()} to {positions.max()}")
        return type(self)(self.data.take(pa.array(positions, mask=positions == -1)))

    def copy(self) -> Self:
        """Return an array of the same values, which cannot change."""
        return type(self)(self.data)

    @property
    def nbytes(self) -> int:
        """The bytes of its buffers."""
        size: int = self.data.nbytes
        return size

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> npt.NDArray[Any]:
        """Return the numbers as a numpy array.

        Without a `dtype` the array has ml_dtypes' type `bfloat16`, and a missing value raises `InvalidInput`. In an
        array of floats a missing value is NaN.
        """
        return self.data.to_numpy() if dtype is None else self.__array__(np.dtype(dtype))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if dtype is None or np.dtype(dtype) == np.dtype(object):
            found = np.empty(len(self), object)
            found[:] = self.data.to_pylist()
            return found
        floats: npt.NDArray[Any] = to_floats(self.data).to_numpy(zero_copy_only=False).astype(dtype)
        return floats

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:  # noqa: A002 # pyarrow's name
        return self.data


def _joined(data: BFloat16Array | pa.ChunkedArray) -> BFloat16Array:
    if not isinstance(data, pa.ChunkedArray):
        return data
    storage = (
        pa.concat_arrays([chunk.storage for chunk in data.chunks]) if data.num_chunks else pa.array([], pa.binary(2))
    )
    joined: BFloat16Array = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    return joined
