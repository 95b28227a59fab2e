"""Read and write the parts of a protobuf message: varints and packed varints. Source: protobuf's wire format."""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import part

__all__ = ["are_equal", "read_packed", "read_varint", "varint_size", "write_varint"]

_LIMIT = 1 << 62


@part
def read_varint(data: Uint8Array, at: int, stop: int) -> tuple[int, int]:
    """Return a varint below 2^62 and the place after it; the place is -1 for any other bytes before `stop`."""
    number, shift = 0, 0
    while at < stop and shift < 63:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at if 0 <= number < _LIMIT else -1
        shift += 7
    return number, -1


@part
def read_packed(data: Uint8Array, at: int, stop: int, numbers: Int64Array, first: int, room: int) -> int:
    """Read packed varints into every second place of `numbers`, from `first` on.

    Returns how many there are; -1 if they are more than `room`, or if one of them is malformed.
    """
    count = 0
    while at < stop:
        number, at = read_varint(data, at, stop)
        if at < 0 or count == room:
            return -1
        numbers[first + 2 * count] = number
        count += 1
    return count


@part
def are_equal(data: Uint8Array, first: int, second: int, size: int) -> bool:
    """Return whether two ranges of this size, which lie in `data`, have the same bytes."""
    while size > 0 and data[first + size - 1] == data[second + size - 1]:
        size -= 1
    return size == 0


@part
def write_varint(out: Uint8Array, place: int, number: int) -> int:
    """Write a number, which is not negative, as a varint; return the place after it."""
    while number >= 0x80:
        out[place] = (number & 0x7F) | 0x80
        number >>= 7
        place += 1
    out[place] = number
    return place + 1


@part
def varint_size(number: int) -> int:
    """Return the bytes of a number, which is not negative, as a varint."""
    size = 1
    while number >= 0x80:
        number >>= 7
        size += 1
    return size
