"""Read the `lance-encoding:*` keys of a field's metadata, with which a user influences its encoding."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["NO_OPTIONS", "EncodingOptions"]

_PREFIX = "lance-encoding:"


@dataclass(frozen=True)
class EncodingOptions:
    """The encoding options of one field; None leaves the choice to `choose`."""

    compression: str | None = None
    """`none`, `lz4`, `zstd` or `fsst`."""
    compression_level: int | None = None
    rle_threshold: float | None = None
    """Run-length encoding is used when there are fewer runs than this share of the values."""
    dict_divisor: int | None = None
    """A dictionary has at most one entry for each this many values."""
    dict_size_ratio: float | None = None
    """A dictionary and its indices take at most this share of the values' bytes."""
    dict_values_compression: str | None = None
    """The compression of a dictionary's entries: `none`, `lz4` or `zstd`."""
    dict_values_compression_level: int | None = None
    byte_stream_split: str | None = None
    """`off`, `on` or `auto`."""
    structural_encoding: str | None = None
    """`miniblock` or `fullzip`."""
    minichunk_size: int | None = None
    """The most bytes of a mini-block chunk of strings or binary values, within what the page can state."""
    packed: bool = False

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> EncodingOptions:
        """Return the options in a field's metadata; `NO_OPTIONS` itself if none of its keys changes an option.

        Raises `InvalidInput` for a value that is not allowed.
        """
        if not any(key == "packed" or key.startswith(_PREFIX) for key in metadata):
            return NO_OPTIONS
        level, threshold = metadata.get(_PREFIX + "compression-level"), metadata.get(_PREFIX + "rle-threshold")
        divisor, ratio = metadata.get(_PREFIX + "dict-divisor"), metadata.get(_PREFIX + "dict-size-ratio")
        values_level = metadata.get(_PREFIX + "dict-values-compression-level")
        chunk = metadata.get(_PREFIX + "minichunk-size")
        options = cls(
            compression=_word(metadata, "compression", "none", "lz4", "zstd", "fsst"),
            compression_level=None if level is None else _level("compression-level", level),
            rle_threshold=None if threshold is None else _number("rle-threshold", threshold, 0, 1),
            dict_divisor=None if divisor is None else int(_number("dict-divisor", divisor, 1, 1 << 31)),
            dict_size_ratio=None if ratio is None else _number("dict-size-ratio", ratio, 0, 1),
            dict_values_compression=_word(metadata, "dict-values-compression", "none", "lz4", "zstd"),
            dict_values_compression_level=(
                None if values_level is None else _level("dict-values-compression-level", values_level)
            ),
            byte_stream_split=_word(metadata, "bss", "off", "on", "auto"),
            structural_encoding=_word(metadata, "structural-encoding", "miniblock", "fullzip"),
            minichunk_size=None if chunk is None else int(_number("minichunk-size", chunk, 0, 1 << 31)),
            packed=metadata.get(_PREFIX + "packed", metadata.get("packed", "")).lower() == "true",
        )
        return NO_OPTIONS if options == NO_OPTIONS else options


NO_OPTIONS = EncodingOptions()


def _word(metadata: Mapping[str, str], key: str, *allowed: str) -> str | None:
    text = metadata.get(_PREFIX + key)
    if text is None or text.lower() in allowed:
        return text if text is None else text.lower()
    raise InvalidInput(f"field metadata {_PREFIX}{key} is {text!r}; it may be {', '.join(allowed)}")


def _level(key: str, text: str) -> int:
    return int(_number(key, text, -(1 << 17), 22))


def _number(key: str, text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise InvalidInput(f"field metadata {_PREFIX}{key} is {text!r}; it is a number from {least} to {most}")
    return number
