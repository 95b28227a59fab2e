"""The invariants of a manifest, as named predicates that yield what breaks them.

Readers tolerate violations, because past releases left tables with some. `validate` reports the `violations`, and a
commit must not add any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ParamSpec

from pyroaring import BitMap

from lance_ops.core.errors import InvalidInput, LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema, schema_flaws
from lance_ops.core.versions import FileVersion
from lance_ops.table.fragments import TOMBSTONED_FIELD, Fragment
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.table.manifest.manifest import Manifest
from lance_ops.table.manifest.required_features import flags_with
from lance_ops.wire import metadata_to_pb, schema_from_pb, schema_to_pb

__all__ = ["ALL_INVARIANTS", "Violation", "check_adds_no_violation", "violations"]

P = ParamSpec("P")

_NO_COLUMN = -1
_MAX_SEARCHED = 64  # fragments; for more of them, decoding all fragments costs less than the search
_MIXED_FILE_VERSIONS = FeatureFlag.MIXED_FILE_VERSIONS.value
_FLAGS_ON_FRAGMENTS = FeatureFlag.STABLE_ROW_IDS.value | _MIXED_FILE_VERSIONS


@dataclass(frozen=True, slots=True)
class Violation:
    """The name of a broken invariant, and what breaks it."""

    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant.replace('_', ' ')}: {self.detail}"


def field_ids_are_unique(manifest: Manifest) -> Iterator[str]:
    yield from _repeated((node.id for node in manifest.schema.walk()), "field id")


def fragment_ids_are_unique(manifest: Manifest, fragment_ids: Iterable[int]) -> Iterator[str]:
    yield from _repeated(fragment_ids, "fragment")


def max_fragment_id_bounds_every_fragment(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    for fragment in fragments:
        if manifest.max_fragment_id is None or fragment.id > manifest.max_fragment_id:
            yield f"fragment {fragment.id} is above {manifest.max_fragment_id}"


def a_data_file_belongs_to_one_fragment(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    paths = (file.place for fragment in fragments for file in fragment.files)
    yield from _repeated(paths, "data file")


def a_field_lies_in_one_file_of_a_fragment(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    for fragment in fragments:
        field_ids = [field_id for file in fragment.files for field_id in file.fields if field_id != TOMBSTONED_FIELD]
        if len(set(field_ids)) != len(field_ids):
            yield from _repeated(field_ids, f"fragment {fragment.id}: field")


def column_indices_match_fields(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    for fragment in fragments:
        for file in fragment.files:
            columns = file.column_indices
            if columns and len(columns) != len(file.fields):
                yield f"{file.path}: {len(columns)} columns for {len(file.fields)} fields"
            if len(set(columns)) != len(columns) and any(
                count > 1 for column, count in Counter(columns).items() if column != _NO_COLUMN
            ):
                yield f"{file.path}: two fields in one column"


def fewer_rows_are_deleted_than_there_are(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    for fragment in fragments:
        deleted = fragment.deletion_file.num_deleted_rows if fragment.deletion_file else 0
        if fragment.physical_rows and deleted > fragment.physical_rows:
            yield f"fragment {fragment.id}: {deleted} of {fragment.physical_rows}"


def stable_row_ids_are_on_every_fragment(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    if not manifest.uses_stable_row_ids:
        return
    for fragment in fragments:
        if fragment.row_ids is None:
            yield f"fragment {fragment.id} has none"


def files_have_the_tables_version(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    default = FileVersion.from_manifest(manifest.data_format.version, f"version {manifest.version}")
    may_mix = manifest.reader_feature_flags & _MIXED_FILE_VERSIONS
    examples = {file.numbers: file.path for fragment in fragments for file in fragment.files}
    for numbers, path in examples.items():
        version = FileVersion.from_numbers(*numbers, where=path)
        if version is not default and (not may_mix or FileVersion.V0_1 in (version, default)):
            yield f"{path} is {version.value} in a table of {default.value}"


def base_ids_are_declared(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    declared = {base.id for base in manifest.base_paths}
    used = {file.base_id: file.path for fragment in fragments for file in fragment.files}
    used |= {f.deletion_file.base_id: f"deletions of {f.id}" for f in fragments if f.deletion_file}
    used |= {index.base_id: f"index {index.name!r}" for index in manifest.indices}
    for base_id, user in used.items():
        if base_id is not None and base_id not in declared:
            yield f"{user} is under base {base_id}, which is not declared"


def schema_is_within_limits(manifest: Manifest) -> Iterator[str]:
    if not manifest.schema.fields and len(manifest.fragments):
        yield "rows need at least one column"
    yield from schema_flaws(manifest.schema)
    message = Schema(tuple(map(_without_dictionaries, manifest.schema.fields)), manifest.schema.metadata)
    try:
        found = schema_from_pb(schema_to_pb(message), metadata_to_pb(message.metadata), f"version {manifest.version}")
    except (LanceOpsError, ValueError) as error:  # protobuf refuses text that is not UTF-8
        yield str(error)
        return
    if found != message:
        yield "the schema is read back differently"


def index_ids_are_unique(manifest: Manifest) -> Iterator[str]:
    yield from _repeated((index.uuid for index in manifest.indices), "index")


def indexed_fields_exist(manifest: Manifest) -> Iterator[str]:
    for index in manifest.indices:
        for field_id in index.fields:
            if manifest.schema.by_id(field_id) is None and not index.is_system:
                yield f"index {index.name!r} is on field {field_id}, which the schema lacks"


def a_fragment_is_in_one_segment_of_an_index(manifest: Manifest, fragment_ids: Iterable[int]) -> Iterator[str]:
    if not manifest.indices:
        return
    live = BitMap(fragment_id for fragment_id in fragment_ids if fragment_id < 1 << 32)
    seen: dict[str, BitMap] = {}
    for index in manifest.indices:
        covered = index.covers(live)
        twice = seen.setdefault(index.name, BitMap()) & covered
        if twice:
            yield f"index {index.name!r} covers fragments {list(twice)[:5]} twice"
        seen[index.name] |= covered


def flags_cover_every_feature_in_use(manifest: Manifest, fragments: Sequence[Fragment]) -> Iterator[str]:
    reader, writer = flags_with(manifest, fragments)
    missing = (reader & ~manifest.reader_feature_flags) | (writer & ~manifest.writer_feature_flags)
    if missing:
        yield f"not set: {FeatureFlag(missing)!r}"


_OF_SCHEMA_AND_INDICES: tuple[Callable[[Manifest], Iterator[str]], ...] = (
    field_ids_are_unique,
    index_ids_are_unique,
    indexed_fields_exist,
)

_OF_FRAGMENT_IDS: tuple[Callable[[Manifest, Iterable[int]], Iterator[str]], ...] = (
    fragment_ids_are_unique,
    a_fragment_is_in_one_segment_of_an_index,
)

_OF_EACH_FRAGMENT: tuple[Callable[[Manifest, Sequence[Fragment]], Iterator[str]], ...] = (
    max_fragment_id_bounds_every_fragment,
    a_data_file_belongs_to_one_fragment,
    a_field_lies_in_one_file_of_a_fragment,
    column_indices_match_fields,
    fewer_rows_are_deleted_than_there_are,
    stable_row_ids_are_on_every_fragment,
    files_have_the_tables_version,
    base_ids_are_declared,
    flags_cover_every_feature_in_use,
)
"""A fragment that satisfies these in one version does so in the next, if `_context` is the same for both."""

_OF_NEW_SCHEMAS = (schema_is_within_limits,)
"""Checked only where a schema changes: renames by the reference leave tables with names that are beyond the limits."""

ALL_INVARIANTS = (*_OF_SCHEMA_AND_INDICES, *_OF_FRAGMENT_IDS, *_OF_EACH_FRAGMENT)


def violations(manifest: Manifest) -> list[Violation]:
    """Return every violation of an invariant."""
    return [
        *_found(_OF_SCHEMA_AND_INDICES, manifest),
        *_found(_OF_FRAGMENT_IDS, manifest, manifest.fragments.ids),
        *_found(_OF_EACH_FRAGMENT, manifest, manifest.fragments),
    ]


def check_adds_no_violation(before: Manifest | None, after: Manifest) -> None:
    """Raise `InvalidInput` if a new version has violations that the version before it did not have."""
    new = _all_violations(after) if before is None else _violations_since(before, after)
    if new and before is not None:
        old = set(_all_violations(before))
        new = [violation for violation in new if violation not in old]
    if new:
        raise InvalidInput(f"version {after.version} would break invariants: " + "; ".join(map(str, new[:5])))


def _all_violations(manifest: Manifest) -> list[Violation]:
    return [*_found(_OF_NEW_SCHEMAS, manifest), *violations(manifest)]


def _violations_since(before: Manifest, after: Manifest) -> list[Violation]:
    """Return the violations of a new version; skip fragments that were carried over unchanged where possible."""
    changes = after.fragments.changes_since(before.fragments)
    checked: Sequence[Fragment] = changes.new
    if _context(before) != _context(after) or _may_share_files(after, changes.new):
        checked = after.fragments
    same_indices = after.indices == before.indices
    ids_are_fresh = same_indices and changes.ids_ascend_above(before.next_fragment_id - 1)
    ids = [fragment.id for fragment in changes.new] if ids_are_fresh else after.fragments.ids
    same_schema = after.schema is before.schema or after.schema == before.schema
    return [
        *([] if same_schema else _found(_OF_NEW_SCHEMAS, after)),
        *([] if same_indices and same_schema else _found(_OF_SCHEMA_AND_INDICES, after)),
        *_found(_OF_FRAGMENT_IDS, after, ids),
        *_found(_OF_EACH_FRAGMENT, after, checked),
    ]


def _found(checks: Iterable[Callable[P, Iterator[str]]], *args: P.args, **kwargs: P.kwargs) -> list[Violation]:
    return [Violation(check.__name__, detail) for check in checks for detail in check(*args, **kwargs)]


def _context(manifest: Manifest) -> tuple[object, ...]:
    """Return the parts of a manifest that the checks of each fragment depend on."""
    return manifest.data_format, manifest.base_paths, manifest.reader_feature_flags & _FLAGS_ON_FRAGMENTS


def _may_share_files(manifest: Manifest, changed: Sequence[Fragment]) -> bool:
    """Whether a changed fragment may share a file: search the encoded fragments for a second copy of each path."""
    if len(changed) > _MAX_SEARCHED:
        return True
    everything = manifest.fragments.section
    return any(everything.count(file.path.encode()) > 1 for fragment in changed for file in fragment.files)


def _without_dictionaries(field: Field) -> Field:
    return replace(field, dictionary=None, children=tuple(map(_without_dictionaries, field.children)))


def _repeated(values: Iterable[object], what: str) -> Iterator[str]:
    listed = list(values)
    if len(set(listed)) == len(listed):
        return
    for value, count in Counter(listed).items():
        if count > 1:
            yield f"{what} {value} occurs {count} times"
