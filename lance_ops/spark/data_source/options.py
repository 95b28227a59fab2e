"""Parse the options of `format("lance")`, which Spark passes as text.

Spark converts the keys to lower case. An unknown option is an error, because an ignored `verison` would read wrong
rows.

    path                              the dataset's URI
    version | timestamp | tag         read that version, or the one that was newest at that moment (ISO 8601; without a
                                      zone it is UTC); without any, the one that is newest at `load`. Spark's names of
                                      the first two, `versionAsOf` and `timestampAsOf`, are known too
    branch                            read that branch; with `version` or `timestamp`, that version of it
    filter                            SQL over the table's columns; answered here, with indices, before rows reach Spark
    columns                           names, separated by commas or as a JSON list: no others are read
    push_filters                      `true` takes filters from the query, too: see `pushing_reader.PushingReader` first
    blob_handling                     `all_binary` reads blobs as bytes; `blobs_descriptions`, the default, as
                                      descriptions of where their bytes are. Blobs of files before 2.2 are bytes anyway
    with_row_id, with_row_address     `true` adds `_rowid`, `_rowaddr` (as bigint)
    with_fragment_id                  `true` adds `_fragid` (as int)
    with_version_columns              `true` adds `_row_created_at_version`, `_row_last_updated_at_version` (as bigint)
    case_sensitive                    `true` matches names as Spark does with `spark.sql.caseSensitive`; `false` is the
                                      default here and there
    num_partitions                    at most this many Spark tasks for a scan; fragments are cut to reach the number
    rows_needed                       the query needs no more rows, whichever they are; a task may still give this many.
                                      `table(…).limit` sets it, and has Spark count the rows, too
    replace_where, replaceWhere       with mode `overwrite`: only the rows that match this SQL are replaced; the rows to
                                      write must match it, too
    schema_mode                       what a write does with columns or types that the table lacks: `error`; `add` adds
                                      columns and widens types; `overwrite`, with mode `overwrite`, takes the frame's
    merge_schema, mergeSchema         `true` is `schema_mode` `add`, `false` is `error`
    overwrite_schema, overwriteSchema     `true` is `schema_mode` `overwrite`, `false` is `error`
    batch                             a write under this name happens once: replays of it are no-ops
    query                             the same for a stream: its name, with each micro-batch's number; without one, the
                                      id that Spark gives the query and keeps in its checkpoint
    starting_version                  a stream reads what this version and later ones append; without it, all rows of
                                      the newest version first
    max_rows_per_trigger | max_fragments_per_trigger                  the most that a stream reads in a micro-batch, but
                                      at least one fragment
    read_change_feed, readChangeFeed  `true` streams changes instead of rows, see `change_stream`
    max_versions_per_trigger          the most that a stream of changes reads in a micro-batch
    skip_changes                      `true` passes over versions that deleted or changed rows, at which a stream stops,
                                      and so over the rows that they inserted
    data_storage_version, enable_stable_row_ids,
    max_rows_per_file, max_bytes_per_file                             as in `lance_ops.write_dataset`
    config.<key>                      a key of the table's configuration, which the version gets that creates or
                                      overwrites the table
    storage_options.<key>             for the object store; Spark may show them in plans, `private_format` does not
    <column>.arrow.fixed-size-list.size, <column>.arrow.float16, <column>.arrow.bfloat16, <column>.lance.encoding
                                      types of a new table, and which of its columns hold blobs, see `types`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from datetime import datetime
from typing import Any

from lance_ops import refs
from lance_ops.committers import open_root
from lance_ops.core.errors import DatasetNotFound, InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.core.versions import FileVersion
from lance_ops.reading import ROW_ADDRESS, ROW_ID, VERSION_COLUMNS
from lance_ops.snapshot import Snapshot, snapshot_as_of
from lance_ops.spark.data_source.option_texts import (
    ParseText,
    known_options_hint,
    option_name_and_spelling,
    parse_blob_handling,
    parse_file_version,
    parse_flag,
    parse_moment,
    parse_names,
    parse_number,
    parse_schema_mode,
    plain_text,
    similar_option,
)
from lance_ops.spark.translation import FRAGMENT_ID, CaseRule, is_hint
from lance_ops.writing import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, FragmentLimits

__all__ = ["SourceOptions", "options_of_properties"]

_STORAGE = "storage_options."
_CONFIG = "config."
_CATALOGS_OWN = frozenset(["owner", "provider"])
_NO_CATALOG = (
    "Spark's catalog cannot hold tables of a Python source; .save(path) writes one, and "
    "lance_ops.spark.create_view(spark, name, path) gives it a name"
)
_HINTS = (".arrow.", ".lance.")
_SPARKS_OWN = frozenset(["checkpointlocation"])
_ONE_VERSION = "both name a version"
_ONE_SCHEMA = "both say what becomes of the schema"
_SCHEMA_SWITCHES = {"merge_schema": SchemaMode.ADD, "overwrite_schema": SchemaMode.OVERWRITE}
_CONTRADICTIONS = (
    ("version", "timestamp", _ONE_VERSION),
    ("version", "tag", _ONE_VERSION),
    ("timestamp", "tag", _ONE_VERSION),
    ("branch", "tag", _ONE_VERSION),
    ("max_rows_per_trigger", "max_fragments_per_trigger", "are both limits"),
    ("schema_mode", "merge_schema", _ONE_SCHEMA),
    ("schema_mode", "overwrite_schema", _ONE_SCHEMA),
    ("merge_schema", "overwrite_schema", _ONE_SCHEMA),
    ("batch", "replace_where", "contradict each other, since a replacement may be repeated as it is"),
)


_PARSE, _READS = "parse", "reads"


def _option(parse: ParseText, *, default: Any = None, reads: bool = False) -> Any:
    """Return the field of an option. `parse` returns the value of its text. A write refuses an option that `reads`.

    A field that this function does not make has no option of its name.
    """
    return field(default=default, metadata={_PARSE: parse, _READS: reads})


@dataclass(frozen=True)
class SourceOptions:
    """The parsed options; `repr` does not show the secrets in `storage_options`."""

    path: str = _option(plain_text, default=MISSING)
    version: int | None = _option(parse_number, reads=True)
    timestamp: datetime | None = _option(parse_moment, reads=True)
    tag: str | None = _option(plain_text, reads=True)
    branch: str | None = _option(plain_text, reads=True)
    filter: str | None = _option(plain_text, reads=True)
    columns: tuple[str, ...] | None = _option(parse_names, reads=True)
    blob_handling: str | None = _option(parse_blob_handling, reads=True)
    with_row_id: bool = _option(parse_flag, default=False, reads=True)
    with_row_address: bool = _option(parse_flag, default=False, reads=True)
    with_fragment_id: bool = _option(parse_flag, default=False, reads=True)
    with_version_columns: bool = _option(parse_flag, default=False, reads=True)
    case_sensitive: bool = _option(parse_flag, default=False)
    push_filters: bool = _option(parse_flag, default=False, reads=True)
    num_partitions: int | None = _option(parse_number, reads=True)
    rows_needed: int | None = _option(parse_number, reads=True)
    replace_where: str | None = _option(plain_text)
    schema_mode: SchemaMode | None = _option(parse_schema_mode)
    batch: str | None = _option(plain_text)
    query: str | None = _option(plain_text)
    starting_version: int | None = _option(parse_number, reads=True)
    max_rows_per_trigger: int | None = _option(parse_number, reads=True)
    max_fragments_per_trigger: int | None = _option(parse_number, reads=True)
    skip_changes: bool = _option(parse_flag, default=False, reads=True)
    read_change_feed: bool = _option(parse_flag, default=False, reads=True)
    max_versions_per_trigger: int | None = _option(parse_number, reads=True)
    data_storage_version: FileVersion | None = _option(parse_file_version)
    enable_stable_row_ids: bool = _option(parse_flag, default=False)
    max_rows_per_file: int = _option(parse_number, default=MAX_ROWS_PER_FILE)
    max_bytes_per_file: int = _option(parse_number, default=MAX_BYTES_PER_FILE)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    type_hints: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The user's spelling of each option."""
    made_at_ns: int | None = None
    """When the version that `with_found_version` found was committed: `open` refuses one of another moment."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read Spark's options; raise `InvalidInput` naming one that is unknown, missing or malformed."""
        if {key.lower() for key in options} >= _CATALOGS_OWN:
            raise InvalidInput(f"CREATE TABLE … USING lance: {_NO_CATALOG}")
        values: dict[str, Any] = {}
        storage_options: dict[str, str] = {}
        hints: dict[str, str] = {}
        config: dict[str, str] = {}
        given: dict[str, str] = {}
        for key, text in options.items():
            name, shown = option_name_and_spelling(key)
            if name.startswith(_CONFIG) and not is_hint(name):
                config[key[len(_CONFIG) :]] = text  # keys of a configuration that differ in case are two
                continue
            if name in given:
                raise InvalidInput(f"options {given[name]!r} and {shown!r} are the same: give one")
            given[name] = shown
            if name in _SPARKS_OWN:
                continue
            if name.startswith(_STORAGE):
                storage_options[name.removeprefix(_STORAGE)] = text
            elif is_hint(name):
                hints[name] = text
            elif name in _PARSERS:
                values[name] = _PARSERS[name](shown, text)
            else:
                raise InvalidInput(f"format('lance') has no option {key!r}: {known_options_hint(name, _PARSERS)}")
        if not values.get("path"):
            raise InvalidInput(
                "format('lance') needs the dataset's path: .load(path), .save(path) or option 'path'. A table of "
                f"Spark's catalog (saveAsTable, writeTo, CREATE TABLE … USING lance) passes none: {_NO_CATALOG}"
            )
        for one, other, reason in _CONTRADICTIONS:
            if one in given and other in given:
                raise InvalidInput(f"options {given[one]!r} and {given[other]!r} {reason}: give one")
        for name in _SCHEMA_SWITCHES.keys() & values.keys():
            values["schema_mode"] = _SCHEMA_SWITCHES[name] if values.pop(name) else SchemaMode.ERROR
        return cls(**values, storage_options=storage_options, type_hints=hints, config=config, given=given)

    def spelling(self, name: str) -> str:
        """Return how the user wrote an option, for errors."""
        return self.given.get(name, name)

    @property
    def limits(self) -> FragmentLimits:
        """The limits at which a written fragment is full."""
        return FragmentLimits(self.max_rows_per_file, self.max_bytes_per_file)

    @property
    def case_rule(self) -> CaseRule:
        """The rule by which names of Spark are matched with the table's."""
        return CaseRule(self.case_sensitive)

    @property
    def blobs_as_bytes(self) -> bool:
        """Whether a read gives the bytes of blobs."""
        return self.blob_handling == "all_binary"

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The row columns to add."""
        asked = (
            (ROW_ID, self.with_row_id),
            (ROW_ADDRESS, self.with_row_address),
            (FRAGMENT_ID, self.with_fragment_id),
            *((name, self.with_version_columns) for name in VERSION_COLUMNS),
        )
        return tuple(name for name, is_asked in asked if is_asked)

    def open(self) -> Snapshot:
        """Open the requested version, by default the newest.

        Raises `VersionNotFound` if `with_found_version` made these options, and the dataset was removed and made again
        since.
        """
        return self._opened().check_made_at(self.made_at_ns)

    def _opened(self) -> Snapshot:
        if self.branch is None and self.tag is None and self.timestamp is None:
            return Snapshot.open(self.path, self.version, self.storage_options)
        snapshot = Snapshot.open(self.path, storage_options=self.storage_options)
        if self.tag is not None:
            tag = refs.read_tag(refs.reference_store(snapshot), self.tag)
            return refs.open_branch(snapshot, tag.branch, tag.version)
        if self.branch is not None:
            snapshot = refs.open_branch(snapshot, self.branch, self.version)
        return snapshot if self.timestamp is None else snapshot_as_of(snapshot, self.timestamp)

    def with_full_uri(self) -> SourceOptions:
        """Return the options with a URI that means the same in every process.

        A relative path begins in this process's folder.
        """
        root = open_root(self.path, self.storage_options)
        return replace(self, path=root.store.uri, storage_options=root.storage_options)

    def with_found_version(self) -> SourceOptions:
        """Return the options that name the version which `open` finds now by its number."""
        snapshot = self.open()
        branch = self.branch if self.tag is None else refs.branch_of(snapshot)
        made_at = snapshot.manifest.timestamp_ns
        return replace(self, version=snapshot.version, timestamp=None, tag=None, branch=branch, made_at_ns=made_at)

    def open_to_write(self) -> Snapshot | None:
        """Open the newest version for a write, or return None if no dataset exists.

        Raises `InvalidInput` for an option that a write would ignore. A stream of writes replaces `query` by `batch`.
        """
        for name in _FOR_READING:
            if getattr(self, name) not in (None, False):
                raise InvalidInput(
                    f"option {self.spelling(name)!r} is for reading: a write always goes on top of the newest version "
                    "(to write to a branch, give the branch's own path)"
                )
        if self.query is not None:
            raise InvalidInput("option 'query' is for a stream: option 'batch' names the write of a DataFrame")
        try:
            return Snapshot.open(self.path, storage_options=self.storage_options)
        except DatasetNotFound:
            return None


_PARSERS: dict[str, ParseText] = {
    **{each.name: each.metadata[_PARSE] for each in fields(SourceOptions) if _PARSE in each.metadata},
    **dict.fromkeys(_SCHEMA_SWITCHES, parse_flag),
}
"""What parses the text of each option, without those that hold a column's name or another key."""
_FOR_READING = tuple(each.name for each in fields(SourceOptions) if each.metadata.get(_READS))


def options_of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table as options of the write that makes it.

    A property is such an option, or else a key of the table's configuration. Raises `InvalidInput` for a key that
    resembles an option or a hint on a column's type: an option that is written wrong would be ignored.
    """
    for_writing = {*_PARSERS, "storage_options"} - {*_FOR_READING}
    options = {}
    for key, value in properties.items():
        name, _ = option_name_and_spelling(key)
        if name in _PARSERS or name.startswith((_STORAGE, _CONFIG)) or is_hint(name):
            options[key] = value
            continue
        near = similar_option(name, for_writing)
        if near or any(hint in name[1:] for hint in _HINTS):
            meant = f"did you mean {near!r}?" if near else "it resembles a hint on a column's type."
            raise InvalidInput(
                f"format('lance') has no option {key!r}: {meant} A key of the table's configuration that resembles an "
                f"option is written {_CONFIG}{key}"
            )
        options[_CONFIG + key] = value
    return options
