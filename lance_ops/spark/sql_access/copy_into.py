"""COPY INTO: ingest raw files, each at most once, by the option names that users of Spark know."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from lance_ops.core.errors import InvalidInput, ObjectNotFound, RawFileRefused, UnsupportedFeature
from lance_ops.core.redaction import public_uri
from lance_ops.core.schema import CaseRule, SchemaMode
from lance_ops.maintenance.ingest import (
    ExtraColumns,
    IngestBatch,
    IngestOptions,
    MissingColumns,
    RawReading,
    TextReading,
    failures_of_store,
    found_file,
    ingest,
    local_path,
    raw_format,
    remote_file_system,
)
from lance_ops.spark.sql_access.statement import Statement, read_switch

__all__ = ["COPY_STATEMENTS"]

_COPIED = "version bigint, files bigint, rows bigint"
_FORMATS = ("csv", "json", "parquet", "orc")
_JAVA_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_MAGIC = re.compile(r"[*?\[]")


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _strptime_format(pattern: str) -> tuple[str, ...]:
    """Return a pattern of Spark's dates in the words of C's `strptime`."""

    def field_of(letters: re.Match[str]) -> str:
        if letters[0] not in _JAVA_FIELDS:
            raise ValueError(letters[0])
        return _JAVA_FIELDS[letters[0]]

    if "'" in pattern or "%" in pattern:
        raise ValueError(pattern)
    return (re.sub(r"([A-Za-z])\1*", field_of, pattern),)


_Option = tuple[str, Callable[[str], Any]]
_OF_ALL_TEXT: dict[str, _Option] = {
    "encoding": ("encoding", str),
    "charset": ("encoding", str),
    "dateFormat": ("date_formats", _strptime_format),
    "timestampFormat": ("timestamp_formats", _strptime_format),
}
_OF_CSV: dict[str, _Option] = {
    "header": ("header", read_switch),
    "delimiter": ("delimiter", str),
    "sep": ("delimiter", str),
    "quote": ("quote", str),
    "escape": ("escape", str),
    "nullValue": ("null_values", _one),
    "decimal_point": ("decimal_point", str),
    "thousands": ("thousands", str),
    "skip_lines": ("skip_lines", int),
}
_OPTIONS_BY_FORMAT: dict[str, dict[str, _Option]] = {"csv": _OF_CSV | _OF_ALL_TEXT, "json": _OF_ALL_TEXT}
"""By format, the field of `TextReading` that an option means, and what reads its value. Most are Spark's."""


def _merged_schema(text: str) -> SchemaMode:
    return SchemaMode.ADD if read_switch(text) else SchemaMode.ERROR


_OF_COPY: dict[str, _Option] = {
    "mergeSchema": ("schema_mode", _merged_schema),
    "schema_mode": ("schema_mode", SchemaMode),
    "missing_columns": ("missing_columns", MissingColumns),
    "extra_columns": ("extra_columns", ExtraColumns),
}
"""The field of `IngestOptions` that a copy option means, and what reads its value."""

_VALUES: dict[Callable[[str], Any], str] = {
    int: "a whole number",
    read_switch: "true or false",
    _merged_schema: "true or false",
    _strptime_format: f"a pattern of {', '.join(_JAVA_FIELDS)} and signs",
}


def _copy_into(statement: Statement) -> DataFrame | None:
    """COPY INTO t FROM 'uri' [FILEFORMAT = format] [FORMAT_OPTIONS (…)] [COPY_OPTIONS (…)].

    The URI may be a pattern, or a folder. Each file is a batch whose key is its name, as in the verb `ingest_files`.
    """
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    reader.expect("FROM")
    if reader.peek("("):
        raise UnsupportedFeature("COPY INTO … FROM (SELECT …) (write INSERT INTO t SELECT …)")
    source = statement.tables.at(reader.literal("a URI in quotes")).location
    kind, of_format, of_copy = None, dict[str, str](), dict[str, str]()
    while not reader.ended:
        if reader.accept("FILEFORMAT"):
            reader.expect("=")
            kind = _format(reader.name("a format"))
        elif reader.accept("FORMAT_OPTIONS"):
            of_format |= statement.properties()
        elif reader.accept("COPY_OPTIONS"):
            of_copy |= statement.properties()
        else:
            raise reader.error("FILEFORMAT, FORMAT_OPTIONS or COPY_OPTIONS")
    opened = statement.tables.open(table)
    found = _matching_files(source, kind, statement.raw_storage_options)
    options = IngestOptions(
        reading=RawReading(text=_text_reading(of_format, _formats([*found], kind))),
        case_sensitive=statement.case_rule is CaseRule.SENSITIVE,
        **_parsed("copy option", of_copy, _OF_COPY),
    )
    done = ingest(
        opened.uri,
        _batches(found, statement.raw_storage_options),
        storage_options=opened.snapshot.storage_options,
        raw_storage_options=statement.raw_storage_options,
        options=options,
        runner=statement.runner,
    )
    return statement.result(_COPIED, [(done.version, len(done.ingested), done.num_rows)])


def _format(name: str) -> str:
    if name.lower() not in _FORMATS:
        raise InvalidInput(f"COPY INTO has no FILEFORMAT {name!r}: there are {', '.join(_FORMATS).upper()}")
    return name.lower()


def _formats(uris: Sequence[str], stated: str | None) -> set[str]:
    """Return the formats of files, which their endings tell; raise `InvalidInput` for one that is not as stated."""
    found = {raw_format(uri)[0]: uri for uri in reversed(uris)}
    for kind, uri in found.items():
        if stated not in (None, kind):
            raise InvalidInput(f"COPY INTO: {public_uri(uri)} is {kind.upper()} by its ending, not {stated.upper()}")
    return set(found)


def _text_reading(given: Mapping[str, str], formats: set[str]) -> TextReading:
    """Return how text is read; raise `InvalidInput` for an option that no format of the files has."""
    known = {name: option for kind in sorted(formats) for name, option in _OPTIONS_BY_FORMAT.get(kind, {}).items()}
    return TextReading(**_parsed("format option", given, known, f" for {' and '.join(sorted(formats)).upper()}"))


def _parsed(what: str, given: Mapping[str, str], known: Mapping[str, _Option], of: str = "") -> dict[str, Any]:
    """Return the values of options by the fields that they mean; raise `InvalidInput` naming one that means none."""
    spelled = {name.lower(): name for name in known}
    found: dict[str, Any] = {}
    for key, text in given.items():
        if key.lower() not in spelled:
            raise InvalidInput(f"COPY INTO has no {what} {key!r}{of}: there are {', '.join(known) or 'none'}")
        name, parse = known[spelled[key.lower()]]
        if name in found:
            raise InvalidInput(f"COPY INTO: the {what} {key!r} is given twice, under two names")
        policies = [str(each.value) for each in parse] if isinstance(parse, type) and issubclass(parse, Enum) else []
        try:
            found[name] = parse(text.lower() if policies else text)
        except ValueError:
            wanted = " or ".join(policies) or _VALUES[parse]
            raise InvalidInput(f"COPY INTO: the {what} {key!r} is {wanted}, not {text!r}") from None
    return found


_Found: TypeAlias = Mapping[str, Mapping[str, Any] | None]
"""What a listing of a store stated of each file, by URI; None for a file that was not listed there."""


def _batches(found: _Found, storage_options: Mapping[str, str]) -> list[IngestBatch]:
    """Return a batch for each file; raise `InvalidInput` for two files of one name."""
    by_name: dict[str, str] = {}
    for uri in found:
        other = by_name.setdefault(uri.rpartition("/")[2], uri)
        if other != uri:
            raise InvalidInput(
                f"COPY INTO: {public_uri(other)} and {public_uri(uri)} have one name, by which a file is ingested "
                "once: rename one"
            )
    files = {name: found_file(uri, storage_options, entry=found[uri]) for name, uri in by_name.items()}
    return [IngestBatch(name, (file,)) for name, file in files.items()]


def _matching_files(source: str, kind: str | None, storage_options: Mapping[str, str]) -> _Found:
    """Return the files that a URI names or a pattern matches, but for hidden ones, as in Spark.

    A file is hidden if its name is, or the name of a folder beneath the pattern's part without signs: a job keeps its
    uncommitted files in such a folder. Of a folder these are its own files, of the format if one is stated. Raises
    `InvalidInput` if there is none.
    """
    path = local_path(source)
    is_folder = os.path.isdir(path) if path is not None else _is_remote_folder(source, storage_options)
    if is_folder:
        above = (path or source).rstrip("/")
        source, path = f"{source.rstrip('/')}/*", None if path is None else f"{glob.escape(above)}/*"
    elif not _MAGIC.search(source) or (path is not None and os.path.exists(path)):
        return {source: None}
    else:
        above = _folder_above(path or source)
    if path is not None:
        found: _Found = {name: None for name in glob.glob(path, recursive=True) if os.path.isfile(name)}
    else:
        found = _matching_remote_files(source, storage_options)
    pattern = "*" if is_folder else (path or source).removeprefix(above)
    shown = sorted(uri for uri in found if not _is_hidden(uri.removeprefix(above), pattern))
    if is_folder and kind is not None:
        shown = [uri for uri in shown if _has_format(uri, kind)]
    if not shown:
        raise InvalidInput(f"COPY INTO: no file matches {public_uri(source)}")
    return {uri: found[uri] for uri in shown}


def _folder_above(pattern: str) -> str:
    """Return the last folder of a pattern before its first sign of a pattern."""
    return _MAGIC.split(pattern, maxsplit=1)[0].rpartition("/")[0]


def _is_hidden(path: str, pattern: str) -> bool:
    """Return whether a name in the path is hidden, as `_temporary` or `.staging`, unless the pattern has it.

    The folder `_year=2026` of a partition is not.
    """
    named = [name for name in pattern.split("/") if name.startswith(("_", "."))]
    hidden = (name for name in path.split("/") if name.startswith(".") or (name.startswith("_") and "=" not in name))
    return any(not any(fnmatchcase(name, each) for each in named) for name in hidden)


def _has_format(uri: str, kind: str) -> bool:
    try:
        return raw_format(uri)[0] == kind
    except RawFileRefused:  # of an ending that no format has
        return False


def _is_remote_folder(uri: str, storage_options: Mapping[str, str]) -> bool:
    if _MAGIC.search(uri):
        return False
    try:
        with failures_of_store(uri, storage_options):
            filesystem, path = remote_file_system(uri, storage_options)
            # Unlike `isdir`, which lists, this call needs no other right for a file than that to read it.
            return bool(filesystem.info(path.rstrip("/")).get("type") == "directory")
    except ObjectNotFound:  # whoever reads the file is told
        return False


def _matching_remote_files(pattern: str, storage_options: Mapping[str, str]) -> _Found:
    """Return URIs that begin as the pattern does, up to its last folder without a sign of a pattern."""
    folder = _folder_above(pattern)
    with failures_of_store(pattern, storage_options):
        filesystem, path = remote_file_system(pattern, storage_options)
        above = remote_file_system(folder, storage_options)[1].rstrip("/")
        listed = filesystem.glob(path, detail=True)
        return {folder + name[len(above) :]: info for name, info in listed.items() if info.get("type") != "directory"}


COPY_STATEMENTS = ((("COPY", "INTO"), _copy_into),)
"""Which words begin a statement, and what executes it."""
