"""Numbers of 16 bits with the exponent of a 32-bit float, as Arrow's extension type `lance.bfloat16`.

A value is stored as the upper half of the 32-bit float, in two bytes, little-endian. A number becomes a 32-bit float
first, as in the reference. Both steps round to the nearest value, ties to the even one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.optional_packages import import_optional

__all__ = ["BFloat16", "BFloat16Array", "BFloat16Scalar", "BFloat16Type", "bfloat16_array", "from_floats", "to_floats"]

_NAME = "lance.bfloat16"
_STORAGE = pa.binary(2)
_SHOWN_AT_EACH_END = 10


class BFloat16:
    """One number, rounded when it is made. It compares with numbers of its own kind."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]  # as in the reference

    def __init__(self, value: float) -> None:
        self._value = float(_widened(_rounded(np.asarray([value], np.float64)))[0])

    @classmethod
    def from_bytes(cls, data: bytes) -> BFloat16:
        """Return the number stored in two bytes; raise `InvalidInput` for another length."""
        if len(data) != 2:
            raise InvalidInput(f"a BFloat16 has 2 bytes, not {len(data)}")
        return cls(float(_widened(np.frombuffer(data, "<u2"))[0]))

    def as_float(self) -> float:
        """Return the number as a float, exactly."""
        return self._value

    def __float__(self) -> float:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat16) and self._value == other._value

    def __lt__(self, other: object) -> bool:
        return self._value < other._value if isinstance(other, BFloat16) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._value <= other._value if isinstance(other, BFloat16) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._value > other._value if isinstance(other, BFloat16) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._value >= other._value if isinstance(other, BFloat16) else NotImplemented

    def __repr__(self) -> str:
        if np.isnan(self._value):
            return "NaN"
        return np.format_float_positional(np.float32(self._value), trim="-")


class BFloat16Type(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """Arrow's extension type of bfloat16 numbers."""

    def __init__(self) -> None:
        super().__init__(_STORAGE, _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BFloat16Type:
        return cls()

    def __arrow_ext_class__(self) -> type[BFloat16Array]:
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type[BFloat16Scalar]:
        return BFloat16Scalar

    def to_pandas_dtype(self) -> Any:
        """Return the dtype `lance.bfloat16` of pandas."""
        # pandas is optional, and its classes must be there when an extension is defined
        return import_module("lance_ops.core.frameworks.pandas_bfloat16").PandasBFloat16Type()

    def __reduce__(self) -> tuple[type[BFloat16Type], tuple[()]]:
        return BFloat16Type, ()


class BFloat16Scalar(pa.ExtensionScalar):  # type: ignore[misc]  # as above
    """One value of an array. It equals a `BFloat16`, another scalar, and ml_dtypes' bfloat16 of the same value."""

    __hash__ = None  # type: ignore[assignment]  # as a `BFloat16`

    def as_py(self, **kwargs: Any) -> BFloat16 | None:
        """Return the number, or None."""
        return None if self.value is None else BFloat16.from_bytes(self.value.as_py())

    def __eq__(self, other: object) -> bool:
        mine = self.as_py()
        if isinstance(other, BFloat16Scalar):
            return bool(mine == other.as_py())
        if getattr(getattr(other, "dtype", None), "name", None) == "bfloat16":  # ml_dtypes is optional
            return mine is not None and mine.as_float() == float(other)  # type: ignore[arg-type]
        return mine is not None and mine == other


class BFloat16Array(pa.ExtensionArray):  # type: ignore[misc]  # as above
    """An Arrow array of bfloat16 numbers; `bfloat16_array` and `lance_ops.arrow.cast` make one."""

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any]) -> BFloat16Array:
        """Return the numbers of a numpy array of ml_dtypes' type `bfloat16`; raise `InvalidInput` for another type."""
        if array.dtype.name != "bfloat16":
            raise InvalidInput(f"an array of bfloat16 is needed, not of {array.dtype.name}: see lance_ops.arrow.cast")
        return _stored(np.ascontiguousarray(array).view(np.uint16), np.zeros(len(array), np.bool_))

    def to_numpy(self, zero_copy_only: bool = False) -> npt.NDArray[Any]:
        """Return the numbers as a numpy array of ml_dtypes' type `bfloat16`.

        Raises `InvalidInput` if there are nulls, and `MissingPackage` without ml_dtypes.
        """
        if self.null_count:
            raise InvalidInput(f"{self.null_count} nulls have no value in numpy: fill or drop them first")
        dtype = import_optional("ml_dtypes", "numpy's bfloat16", None).bfloat16
        return _bits(self).view(dtype)

    def __str__(self) -> str:
        if len(self) <= 2 * _SHOWN_AT_EACH_END:
            return f"[\n{_lines(self)}\n]"
        return f"[\n{_lines(self[:_SHOWN_AT_EACH_END])},\n...\n{_lines(self[-_SHOWN_AT_EACH_END:])}\n]"

    def __repr__(self) -> str:
        return f"<lance_ops.arrow.BFloat16Array object at 0x{id(self):016x}>\n{self}"


def bfloat16_array(values: Sequence[float | None]) -> BFloat16Array:
    """Return numbers and nulls as an array, rounded to bfloat16."""
    return from_floats(pa.array(values, pa.float64()))


def from_floats(values: pa.Array) -> BFloat16Array:
    """Return an array of floats rounded to bfloat16; nulls stay."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return _stored(_rounded(values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)), missing)


def to_floats(values: BFloat16Array) -> pa.Array:
    """Return the numbers as 32-bit floats, exactly."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(_widened(_bits(values)), pa.float32(), mask=missing)


def _lines(values: BFloat16Array) -> str:
    return ",\n".join(f"  {value}" for value in values)


def _rounded(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    with np.errstate(over="ignore", invalid="ignore"):  # too large a number is infinite, and a NaN stays one
        wide = values.astype(np.float32).view(np.uint32)
    nearest = (wide + (np.uint32(0x7FFF) + ((wide >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
    quiet = (wide >> np.uint32(16)) | np.uint32(0x40)  # rounding would turn some NaNs into infinity
    return np.where(np.isnan(values), quiet, nearest).astype(np.uint16)


def _widened(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _bits(values: BFloat16Array) -> npt.NDArray[np.uint16]:
    storage = values.storage
    return np.frombuffer(storage.buffers()[1] or b"", "<u2", len(storage), 2 * storage.offset)


def _stored(bits: npt.NDArray[np.uint16], missing: npt.NDArray[np.bool_]) -> BFloat16Array:
    validity = pa.array(~missing).buffers()[1] if missing.any() else None
    storage = pa.Array.from_buffers(_STORAGE, len(bits), [validity, pa.py_buffer(bits.astype("<u2"))])
    made: BFloat16Array = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    return made
