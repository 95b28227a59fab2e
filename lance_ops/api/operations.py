"""`LanceOperation`: operations for `LanceDataset.commit`, under the reference's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from pyroaring import BitMap

from lance_ops import transactions as made
from lance_ops.api.base_paths import DatasetBasePath, declared_bases
from lance_ops.api.lance_schema import AnySchema, schema_of
from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot.write_targets import number_bases
from lance_ops.table import Fragment, IndexDetails, IndexMetadata
from lance_ops.transactions import Operation, UpdateMode

__all__ = ["LanceOperation"]

_MODES = {
    "": UpdateMode.REWRITE_ROWS,
    "rewrite_rows": UpdateMode.REWRITE_ROWS,
    "rewrite_columns": UpdateMode.REWRITE_COLUMNS,
}


class LanceOperation:
    """One function an operation; each returns a `lance_ops.transactions.Operation`. Fragments are `Fragment` values."""

    BaseOperation = Operation
    DataReplacementGroup = made.DataReplacementGroup
    Restore = made.Restore
    RewriteGroup = made.RewriteGroup
    UpdateMap = made.UpdateMap

    @staticmethod
    def Append(fragments: Iterable[Fragment]) -> made.Append:
        """Add fragments of new rows."""
        return made.Append(tuple(fragments))

    @staticmethod
    def Overwrite(
        new_schema: AnySchema, fragments: Iterable[Fragment], initial_bases: Sequence[DatasetBasePath] | None = None
    ) -> made.Overwrite:
        """Replace the table by these fragments, or create it; an Arrow schema's fields are numbered from 0."""
        bases = number_bases(declared_bases(initial_bases or (), None))
        return made.Overwrite(tuple(fragments), schema_of(new_schema), initial_bases=bases)

    @staticmethod
    def Delete(
        updated_fragments: Iterable[Fragment], deleted_fragment_ids: Iterable[int], predicate: str
    ) -> made.Delete:
        """Give fragments larger deletion vectors and drop those without a row left."""
        return made.Delete(tuple(updated_fragments), tuple(deleted_fragment_ids), predicate)

    @staticmethod
    def Update(
        removed_fragment_ids: Iterable[int] = (),
        updated_fragments: Iterable[Fragment] = (),
        new_fragments: Iterable[Fragment] = (),
        fields_modified: Iterable[int] = (),
        fields_for_preserving_frag_bitmap: Iterable[int] = (),
        update_mode: str = "",
        updated_fragment_offsets: Mapping[int, bytes] | None = None,
    ) -> made.Update:
        """Move rows with new values to new fragments, or write columns anew in place."""
        if update_mode not in _MODES:
            raise InvalidInput(f"update mode {update_mode!r} is none of rewrite_rows, rewrite_columns")
        offsets = {key: BitMap.deserialize(data) for key, data in (updated_fragment_offsets or {}).items()}
        fields, mode = tuple(fields_modified), _MODES[update_mode]
        return made.Update(
            removed_fragment_ids=tuple(removed_fragment_ids),
            updated_fragments=tuple(updated_fragments),
            new_fragments=tuple(new_fragments),
            fields_modified=fields,
            fields_for_preserving_frag_bitmap=tuple(fields_for_preserving_frag_bitmap),
            # Values in place are what modified fields mean, whether or not the mode is said.
            update_mode=UpdateMode.REWRITE_COLUMNS if fields and not update_mode else mode,
            updated_offsets=offsets,
        )

    @staticmethod
    def Merge(fragments: Iterable[Fragment], schema: AnySchema, preserves_nullability: bool = False) -> made.Merge:
        """State every fragment anew, with the files and the schema they have then."""
        return made.Merge(tuple(fragments), schema_of(schema), preserves_nullability)

    @staticmethod
    def Project(schema: AnySchema, preserves_nullability: bool = False) -> made.Project:
        """Exchange the fields of the schema."""
        return made.Project(schema_of(schema), preserves_nullability)

    @staticmethod
    def Clone(
        is_shallow: bool, ref_name: str | None, ref_version: int, ref_path: str, branch_name: str | None
    ) -> made.Clone:
        """Begin a dataset with the files of another's version; a deep one is no operation but `deep_clone`."""
        return made.Clone(is_shallow, ref_version, ref_path, ref_name, branch_name)

    @staticmethod
    def DataReplacement(replacements: Iterable[made.DataReplacementGroup]) -> made.DataReplacement:
        """Exchange one file of each fragment, or add one where its fields were all null."""
        return made.DataReplacement(tuple(replacements))

    @staticmethod
    def CreateIndex(new_indices: Iterable[IndexMetadata], removed_indices: Iterable[IndexMetadata]) -> made.CreateIndex:
        """Add and remove segments of indices."""
        return made.CreateIndex(tuple(new_indices), tuple(removed_indices))

    @staticmethod
    def Rewrite(groups: Iterable[made.RewriteGroup], rewritten_indices: Iterable[made.RewrittenIndex]) -> made.Rewrite:
        """Exchange fragments for others with the same rows."""
        return made.Rewrite(tuple(groups), tuple(rewritten_indices))

    @staticmethod
    def UpdateConfig(
        config_updates: made.UpdateMap | None = None,
        table_metadata_updates: made.UpdateMap | None = None,
        schema_metadata_updates: made.UpdateMap | None = None,
        field_metadata_updates: Mapping[int, made.UpdateMap] | None = None,
    ) -> made.UpdateConfig:
        """Update the manifest's maps."""
        return made.UpdateConfig(
            config_updates, table_metadata_updates, schema_metadata_updates, dict(field_metadata_updates or {})
        )

    @staticmethod
    def RewrittenIndex(
        old_id: str, new_id: str, new_details_type_url: str, new_details_value: bytes, new_index_version: int
    ) -> made.RewrittenIndex:
        """Put a segment remapped to the new addresses in the place of an old one."""
        details = IndexDetails(new_details_type_url, new_details_value)
        return made.RewrittenIndex(UUID(old_id), UUID(new_id), details, new_index_version)
