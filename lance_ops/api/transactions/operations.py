"""`LanceOperation`: the operations that `LanceDataset.commit` takes and transactions return, under the reference's
names.

Each is a dataclass with the reference's fields in the reference's order; fields that only the wire format has follow as
keywords. It converts to an operation of `lance_ops.transactions` and back without loss.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, Self, TypeAlias
from uuid import UUID

from pyroaring import BitMap

from lance_ops import transactions as made
from lance_ops.api.base_paths import DatasetBasePath, declared_bases
from lance_ops.api.schemas import AnySchema, LanceSchema, schema_of
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.table import Fragment, IndexDetails, IndexFile, IndexMetadata
from lance_ops.transactions import Operation, UpdateMode
from lance_ops.writing import number_bases

__all__ = ["AnyOperation", "LanceOperation", "from_internal", "to_internal"]

_MODES = {
    "": UpdateMode.REWRITE_ROWS,
    "rewrite_rows": UpdateMode.REWRITE_ROWS,
    "rewrite_columns": UpdateMode.REWRITE_COLUMNS,
}


class LanceOperation:
    """The operations that the reference names. Fragments are `FragmentMetadata`; a sequence may be any iterable."""

    class BaseOperation(ABC):
        """The base class of all operations, also of those without a class here, which stay as `lance_ops.transactions`
        has them.

        The two conversions copy fields of equal names. Operations with other fields override them.
        """

        internal: ClassVar[type[Any]]

        @property
        def name(self) -> str:
            """The specification's name of this operation."""
            return type(self).__name__

        def to_internal(self) -> Operation:
            """Return the operation of `lance_ops.transactions` to commit."""
            operation: Operation = self.internal(**vars(self))
            return operation

        @classmethod
        def from_internal(cls, operation: Any) -> Self:
            """Return an operation of `lance_ops.transactions` in the public form."""
            return cls(**vars(operation))

    @dataclass(frozen=True)
    class Append(BaseOperation):
        """Add fragments of new rows."""

        fragments: Sequence[Fragment]

        internal = made.Append

        def __post_init__(self) -> None:
            _keep(self, "fragments")

    @dataclass(frozen=True)
    class Overwrite(BaseOperation):
        """Replace the table by these fragments, or create it. Fields of an Arrow schema get ids from 0."""

        new_schema: AnySchema
        fragments: Sequence[Fragment]
        initial_bases: Sequence[DatasetBasePath] | None = None
        _: KW_ONLY
        config_upsert_values: Mapping[str, str] = field(default_factory=dict)

        internal = made.Overwrite

        def __post_init__(self) -> None:
            _keep(self, "fragments")
            if self.initial_bases is not None:
                _keep(self, "initial_bases")

        def to_internal(self) -> made.Overwrite:
            bases = number_bases(declared_bases(self.initial_bases or (), None))
            return made.Overwrite(
                tuple(self.fragments), schema_of(self.new_schema), self.config_upsert_values, initial_bases=bases
            )

        @classmethod
        def from_internal(cls, operation: made.Overwrite) -> Self:
            return cls(
                LanceSchema(operation.schema),
                operation.fragments,
                tuple(map(DatasetBasePath.of, operation.initial_bases)) or None,
                config_upsert_values=operation.config_upsert_values,
            )

    @dataclass(frozen=True)
    class Delete(BaseOperation):
        """Give fragments larger deletion vectors, and drop fragments without live rows."""

        updated_fragments: Sequence[Fragment]
        deleted_fragment_ids: Sequence[int]
        predicate: str

        internal = made.Delete

        def __post_init__(self) -> None:
            _keep(self, "updated_fragments", "deleted_fragment_ids")

    @dataclass(frozen=True)
    class Update(BaseOperation):
        """Move rows with new values to new fragments, or write columns again in place.

        `update_mode` is `rewrite_rows` or `rewrite_columns`; the default is the latter if there are modified fields.
        The offsets of updated rows are one serialized Roaring bitmap for each fragment.
        """

        removed_fragment_ids: Sequence[int] = ()
        updated_fragments: Sequence[Fragment] = ()
        new_fragments: Sequence[Fragment] = ()
        fields_modified: Sequence[int] = ()
        fields_for_preserving_frag_bitmap: Sequence[int] = ()
        update_mode: str = ""
        updated_fragment_offsets: Mapping[int, bytes] | None = None
        _: KW_ONLY
        inserted_rows: bytes | None = None
        compacted_sstables: Sequence[bytes] = ()

        internal = made.Update

        def __post_init__(self) -> None:
            if self.update_mode not in _MODES:
                raise InvalidInput(f"update mode {self.update_mode!r} is none of rewrite_rows, rewrite_columns")
            _keep(self, "removed_fragment_ids", "updated_fragments", "new_fragments", "fields_modified")
            _keep(self, "fields_for_preserving_frag_bitmap", "compacted_sstables")

        def to_internal(self) -> made.Update:
            in_place = self.fields_modified and not self.update_mode
            offsets = (self.updated_fragment_offsets or {}).items()
            return made.Update(
                removed_fragment_ids=tuple(self.removed_fragment_ids),
                updated_fragments=tuple(self.updated_fragments),
                new_fragments=tuple(self.new_fragments),
                fields_modified=tuple(self.fields_modified),
                fields_for_preserving_frag_bitmap=tuple(self.fields_for_preserving_frag_bitmap),
                update_mode=UpdateMode.REWRITE_COLUMNS if in_place else _MODES[self.update_mode],
                updated_offsets={fragment_id: BitMap.deserialize(rows) for fragment_id, rows in offsets},
                inserted_rows=self.inserted_rows,
                compacted_sstables=tuple(self.compacted_sstables),
            )

        @classmethod
        def from_internal(cls, operation: made.Update) -> Self:
            offsets = {fragment_id: rows.serialize() for fragment_id, rows in operation.updated_offsets.items()}
            return cls(
                operation.removed_fragment_ids,
                operation.updated_fragments,
                operation.new_fragments,
                operation.fields_modified,
                operation.fields_for_preserving_frag_bitmap,
                operation.update_mode.name.lower(),
                offsets or None,
                inserted_rows=operation.inserted_rows,
                compacted_sstables=operation.compacted_sstables,
            )

    @dataclass(frozen=True)
    class Merge(BaseOperation):
        """Replace the list of fragments and the schema, as adding columns does."""

        fragments: Sequence[Fragment]
        schema: AnySchema
        preserves_nullability: bool = False

        internal = made.Merge

        def __post_init__(self) -> None:
            _keep(self, "fragments")

        def to_internal(self) -> made.Merge:
            return made.Merge(tuple(self.fragments), schema_of(self.schema), self.preserves_nullability)

        @classmethod
        def from_internal(cls, operation: made.Merge) -> Self:
            return cls(operation.fragments, LanceSchema(operation.schema), operation.preserves_nullability)

    @dataclass(frozen=True)
    class Project(BaseOperation):
        """Replace the fields of the schema."""

        schema: AnySchema
        preserves_nullability: bool = False

        internal = made.Project

        def to_internal(self) -> made.Project:
            return made.Project(schema_of(self.schema), self.preserves_nullability)

        @classmethod
        def from_internal(cls, operation: made.Project) -> Self:
            return cls(LanceSchema(operation.schema), operation.preserves_nullability)

    @dataclass(frozen=True)
    class Restore(BaseOperation):
        """Restore the whole content of an old version."""

        version: int

        internal = made.Restore

    @dataclass(frozen=True)
    class Clone(BaseOperation):
        """Create a dataset that names the files of another dataset's version.

        A deep clone is made by `deep_clone` instead.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

        internal = made.Clone

    DataReplacementGroup = made.DataReplacementGroup

    @dataclass(frozen=True)
    class DataReplacement(BaseOperation):
        """Replace one file of each fragment, or add a file for fields that were all null."""

        replacements: Sequence[made.DataReplacementGroup]

        internal = made.DataReplacement

        def __post_init__(self) -> None:
            _keep(self, "replacements")

    @dataclass(frozen=True)
    class CreateIndex(BaseOperation):
        """Add and remove segments of indices."""

        new_indices: Sequence[IndexMetadata]
        removed_indices: Sequence[IndexMetadata]

        internal = made.CreateIndex

        def __post_init__(self) -> None:
            _keep(self, "new_indices", "removed_indices")

    RewriteGroup = made.RewriteGroup

    @dataclass(frozen=True)
    class RewrittenIndex:
        """A segment with remapped addresses that replaces an old one. An empty type URL means no details."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int
        _: KW_ONLY
        files: Sequence[IndexFile] = ()

        def to_internal(self) -> made.RewrittenIndex:
            """Return the segment of `lance_ops.transactions` to commit."""
            url = self.new_details_type_url
            return made.RewrittenIndex(
                UUID(self.old_id),
                UUID(self.new_id),
                IndexDetails(url, self.new_details_value) if url else None,
                self.new_index_version,
                tuple(self.files),
            )

        @classmethod
        def from_internal(cls, index: made.RewrittenIndex) -> Self:
            """Return a segment of `lance_ops.transactions` in the public form."""
            details = index.details or IndexDetails("")
            old_id, new_id = str(index.old_id), str(index.new_id)
            return cls(old_id, new_id, details.type_url, details.value, index.index_version, files=index.files)

    @dataclass(frozen=True)
    class Rewrite(BaseOperation):
        """Replace fragments by others with the same rows, as compaction does."""

        groups: Sequence[made.RewriteGroup]
        rewritten_indices: Sequence[LanceOperation.RewrittenIndex]

        internal = made.Rewrite

        def __post_init__(self) -> None:
            _keep(self, "groups", "rewritten_indices")

        def to_internal(self) -> made.Rewrite:
            return made.Rewrite(tuple(self.groups), tuple(index.to_internal() for index in self.rewritten_indices))

        @classmethod
        def from_internal(cls, operation: made.Rewrite) -> Self:
            return cls(
                operation.groups, tuple(map(LanceOperation.RewrittenIndex.from_internal, operation.rewritten_indices))
            )

    UpdateMap = made.UpdateMap

    @dataclass(frozen=True)
    class UpdateConfig(BaseOperation):
        """Change the configuration and metadata maps of the manifest."""

        config_updates: made.UpdateMap | None = None
        table_metadata_updates: made.UpdateMap | None = None
        schema_metadata_updates: made.UpdateMap | None = None
        field_metadata_updates: Mapping[int, made.UpdateMap] | None = None

        internal = made.UpdateConfig

        def to_internal(self) -> made.UpdateConfig:
            return made.UpdateConfig(**{**vars(self), "field_metadata_updates": self.field_metadata_updates or {}})

        @classmethod
        def from_internal(cls, operation: made.UpdateConfig) -> Self:
            return cls(**{**vars(operation), "field_metadata_updates": operation.field_metadata_updates or None})


# An operation without a name in the reference is a bare `BaseOperation` there; here it keeps its own class.
LanceOperation.BaseOperation.register(Operation)  # type: ignore[type-abstract]  # an abstract class serves as well

AnyOperation: TypeAlias = LanceOperation.BaseOperation | Operation
"""An operation in the public form, or an operation of `lance_ops.transactions`."""

_NAMED: Mapping[type[Any], type[LanceOperation.BaseOperation]] = {
    kind.internal: kind
    for kind in (
        LanceOperation.Append,
        LanceOperation.Clone,
        LanceOperation.CreateIndex,
        LanceOperation.DataReplacement,
        LanceOperation.Delete,
        LanceOperation.Merge,
        LanceOperation.Overwrite,
        LanceOperation.Project,
        LanceOperation.Restore,
        LanceOperation.Rewrite,
        LanceOperation.Update,
        LanceOperation.UpdateConfig,
    )
}


def to_internal(operation: AnyOperation) -> Operation:
    """Return the operation that is committed."""
    return operation if isinstance(operation, Operation) else operation.to_internal()


def from_internal(operation: Operation) -> AnyOperation:
    """Return an operation in the public form; an operation without a name in the reference is returned unchanged."""
    named = _NAMED.get(type(operation))
    return operation if named is None else named.from_internal(operation)


def _keep(operation: LanceOperation.BaseOperation, *names: str) -> None:
    """Copy iterables into tuples, because a caller may change a list later, and an iterator can be read only once."""
    for name in names:
        object.__setattr__(operation, name, tuple(getattr(operation, name)))
