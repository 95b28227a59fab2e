"""Texts that callers state in a version: literals of deletions, and values of properties, config and metadata.

A version is taken to state a sought value only if a whole text equals it. Names of columns, keys, uuids, paths, and the
values of the library and of the format do not count: a short value stands in them by chance. The proof names the files
with a text that only contains a sought value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.table import Manifest
from lance_ops.transactions import COMMIT_MESSAGE, REASON_PROPERTY, CommittedVersion, UpdateConfig

__all__ = ["StatedTexts", "stated_texts"]

_WRITTEN_BY_CALLERS = frozenset({COMMIT_MESSAGE, REASON_PROPERTY})
_RESERVED_PREFIXES = ("lance", "__lance", "arrow:")
"""Keys of the library, of the format and of Arrow begin so."""
_LITERAL = re.compile(r"""[xX]'((?:[0-9a-fA-F]{2})*)'|'([^']*(?:''[^']*)*)'|"([^"]*(?:""[^"]*)*)\"""")
"""Bytes, a text, or what is either a text or a column's name."""


@dataclass(frozen=True)
class StatedTexts:
    """The texts that a version's transaction states, and those that its config and metadata state."""

    by_transaction: frozenset[bytes]
    by_metadata: frozenset[bytes]


def stated_texts(version: CommittedVersion) -> StatedTexts:
    """Return what a version states; without its transaction, what its config and metadata state."""
    return StatedTexts(
        frozenset(_of_transaction(version)), frozenset(_encoded(text) for text in _of_metadata(version.manifest))
    )


def _of_transaction(version: CommittedVersion) -> Iterator[bytes]:
    stored = version.stored_transaction
    if stored is None:
        return
    yield from map(_encoded, _chosen_values(stored.properties))
    yield from _literals(stored.delete_predicate, version.manifest.schema)
    if stored.operation_type is UpdateConfig and isinstance(update := stored.decoded.operation, UpdateConfig):
        maps = (update.config_updates, update.table_metadata_updates, update.schema_metadata_updates)
        for each in (*maps, *update.field_metadata_updates.values()):
            if each is not None:
                yield from map(_encoded, _chosen_values(each.updates))


def _of_metadata(manifest: Manifest) -> Iterator[str]:
    schema = manifest.schema
    maps = (manifest.config, manifest.table_metadata, schema.metadata, *(field.metadata for field in schema.walk()))
    for each in maps:
        yield from _chosen_values(each)


def _chosen_values(texts: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the values that callers chose."""
    for key, value in texts.items():
        if value and (key in _WRITTEN_BY_CALLERS or not key.lower().startswith(_RESERVED_PREFIXES)):
            yield value


def _literals(predicate: str, schema: Schema) -> Iterator[bytes]:
    """Yield the literals of a SQL condition, or of an expression of pyarrow as text."""
    names = {field.name for field in schema.walk()}
    for found in _LITERAL.finditer(predicate):
        hexadecimal, text, text_or_name = found.groups()
        if hexadecimal is not None:
            yield bytes.fromhex(hexadecimal)
        elif text is not None:
            yield _encoded(text.replace("''", "'"))
        elif text_or_name not in names:
            yield _encoded(text_or_name.replace('""', '"'))


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
