"""The columns of a wide schema as ids, names and kinds: most callers never ask for most of the fields."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_ops.core.records import dataclass
from lance_ops.core.schema.field import Field

__all__ = ["PlainColumns"]


@dataclass(frozen=True, eq=False)
class PlainColumns:
    """Columns without children: the id and the name of each, and its kind.

    Columns of one kind differ in nothing but id and name. `samples` has a field of each kind, and `kinds` the number of
    each column's kind.
    """

    ids: Sequence[int]
    names: Sequence[str]
    kinds: Sequence[int]
    samples: Sequence[Field]

    def fields(self) -> tuple[Field, ...]:
        """Make the columns' fields."""
        columns = zip(map(self.samples.__getitem__, self.kinds), self.ids, self.names, strict=True)
        return tuple([sample.renamed(field_id, name) for sample, field_id, name in columns])

    def storage_schema(self) -> pa.Schema:
        """Return the Arrow schema of the storage types, without making the fields."""
        of_kinds = [sample.storage_kind for sample in self.samples]
        if all(nullable and metadata is None for _, nullable, metadata in of_kinds):
            # Arrow makes this schema in C++, without a field in Python for each column.
            empty = [pa.nulls(0, arrow_type) for arrow_type, _, _ in of_kinds]
            return pa.RecordBatch.from_arrays([empty[kind] for kind in self.kinds], [*self.names]).schema
        return pa.schema([pa.field(name, *of_kinds[kind]) for name, kind in zip(self.names, self.kinds, strict=True)])

    @property
    def name_extensions(self) -> bool:
        """Whether a column has an extension type."""
        return any(sample.names_extensions for sample in self.samples)
