"""Bring raw files into a table, each batch exactly once, by a plan that names the very files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa

from lance_ops.api import json_to_schema
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, LanceOpsError, PlanOutdated
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.core.schema import SchemaMode, arrow_type_of
from lance_ops.maintenance import ingested_batches
from lance_ops.maintenance.ingest import (
    BadBatches,
    ChangedBatches,
    ExtraColumns,
    HistoryColumns,
    IngestBatch,
    IngestMode,
    IngestOptions,
    IngestResult,
    IngestSurvey,
    MissingColumns,
    RawFile,
    RawLimits,
    RawReading,
    TextReading,
    found_file,
    ingest,
    survey_ingest,
)
from lance_ops.snapshot import Snapshot
from lance_ops.verbs.contract import (
    AbsentTable,
    Execution,
    Measures,
    Preview,
    Section,
    Target,
    Verb,
    VerbResult,
    WhenMoved,
)
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.ingestion_page import ingestion_facts, ingestion_problem, ingestion_sections
from lance_ops.verbs.sections import MOST_LINES, column_changes, shortened_section
from lance_ops.writing import FragmentLimits

__all__ = ["IngestFiles", "IngestedFiles", "declared_schema"]

_TEXT = TextReading()


@dataclass(frozen=True)
class IngestedFiles:
    """The outcome of `IngestFiles`: the batches as their files were when they were read, and what became of them."""

    batches: tuple[IngestBatch, ...]
    result: IngestResult


@dataclass(frozen=True)
class IngestFiles(Verb):
    """Which raw files come in, as which batches, and by which policies; see `IngestOptions`.

    Each file is a batch whose key is its name, unless `batch` or `batches` say otherwise. A stored plan is refused when
    one of the files has changed since. With schema mode `overwrite` it is also refused when the table has newer
    versions, because it would remove their rows.
    """

    name: ClassVar[str] = "ingest_files"
    summary: ClassVar[str] = "Bring raw files in, each batch exactly once."
    command: ClassVar[str] = "ingest"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    creates_table: ClassVar[bool] = True
    reads_landing: ClassVar[bool] = True

    files: Annotated[
        tuple[str, ...], Option("Parquet, ORC, Arrow, CSV or JSON; paths or URIs that name one file each.")
    ] = ()
    batch: Annotated[
        str | None, Option("The key of one batch that all files are; default: a batch each, by the file's name.")
    ] = None
    batches: Annotated[
        Mapping[str, str], Option("The key of a file's batch by file, where it is not the file's name.")
    ] = field(default_factory=dict)
    only: Annotated[tuple[str, ...], Option("The keys of the batches to ingest; none means all.")] = ()
    beneath: Annotated[
        str | None, Option("The folder that local files must be in, without links; default: links are followed.")
    ] = None
    table_schema: Annotated[
        str | None,
        Option('Columns as JSON, such as {"id": "string", "day": "date32:day"}, instead of the files\' own.'),
    ] = None
    columns: Annotated[
        Mapping[str, str], Option("A type by column, where the files' own is not the table's; it leads text files.")
    ] = field(default_factory=dict)
    schema_mode: Annotated[
        Literal["error", "add", "overwrite"],
        Option("What to do with columns that the table lacks: refuse them, add them and widen types, or begin anew."),
    ] = "error"
    missing_columns: Annotated[
        Literal["fill", "refuse"], Option("What to do with a file that lacks a column: nulls, or refuse it.")
    ] = "fill"
    extra_columns: Annotated[
        Literal["refuse", "ignore"], Option("With schema_mode error: what to do with a column that the table lacks.")
    ] = "refuse"
    case_sensitive: Annotated[bool, Option("Match names of columns by case, too.")] = False
    batch_column: Annotated[str | None, Option("A text column for the key of each row's batch.")] = None
    changed: Annotated[
        Literal["refuse", "replace"],
        Option("What to do with a batch that changed after it was ingested; replace needs batch_column."),
    ] = "refuse"
    bad: Annotated[
        Literal["refuse", "set_aside"],
        Option("What to do if a batch is not read or does not fit: ingest none, or the others."),
    ] = "refuse"
    mode: Annotated[
        Literal["append", "upsert", "scd2"],
        Option("Append rows, merge them by key, or keep the history of each key (scd2)."),
    ] = "append"
    on: Annotated[tuple[str, ...], Option("The columns of the key of mode upsert and scd2.")] = ()
    valid_from: Annotated[str, Option("With mode scd2, the files' column of when a row begins.")] = "valid_from"
    valid_to: Annotated[str, Option("With mode scd2, the table's column of when a row ends.")] = "valid_to"
    current: Annotated[str, Option("With mode scd2, the table's column of whether a row has no end.")] = "current"
    delimiter: Annotated[str, Option("The text between the cells of CSV.")] = _TEXT.delimiter
    quote: Annotated[str, Option("The text around cells of CSV; empty: none.")] = _TEXT.quote
    escape: Annotated[str, Option("The text before quotes in cells of CSV; empty: quotes are doubled.")] = ""
    header: Annotated[bool, Option("Whether CSV begins with the names of its columns.")] = _TEXT.header
    encoding: Annotated[str, Option("The encoding of CSV and JSON.")] = _TEXT.encoding
    null_values: Annotated[tuple[str, ...] | None, Option("Cells of CSV that are null.")] = None
    empty_as_null: Annotated[bool, Option("Read empty cells of text columns as null, too.")] = False
    date_formats: Annotated[tuple[str, ...], Option("Forms of dates, such as %d.%m.%Y, besides ISO 8601.")] = ()
    timestamp_formats: Annotated[tuple[str, ...], Option("Forms of timestamps, besides ISO 8601.")] = ()
    decimal_point: Annotated[str, Option("The character between whole part and fraction of numbers in CSV.")] = (
        _TEXT.decimal_point
    )
    thousands: Annotated[str, Option("The character between groups of three digits in CSV; empty: none.")] = (
        _TEXT.thousands
    )
    skip_lines: Annotated[
        int, Option("The number of lines to skip at the beginning of CSV, before its header.", at_least=0)
    ] = _TEXT.skip_lines
    distinct_names: Annotated[
        bool, Option("Number the repeated and empty names of CSV's header; otherwise the file is refused.")
    ] = _TEXT.distinct_names
    data_storage_version: Annotated[str, Option("The file version of a new table.")] = (
        IngestOptions.data_storage_version
    )
    stable_row_ids: Annotated[bool, Option("Give the rows of a new table stable ids.")] = False
    max_rows_per_file: Annotated[int, Option("A fragment has at most this many rows.", at_least=1)] = (
        FragmentLimits.max_rows_per_file
    )
    limits: Annotated[
        Mapping[str, str], Option("What a file may hold and cost, such as rows=1000000 or seconds=30.")
    ] = field(default_factory=dict)
    isolated: Annotated[bool, Option("Decode files in a process of their own, which a hostile file may end.")] = True

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of the batches."""
        only = set(self.only)
        return tuple(file for file in self.files if not only or self._key(file) in only)

    @property
    def when_moved_by_options(self) -> WhenMoved:
        """Refuse a plan that begins the table anew: the preview did not count the rows of newer versions."""
        return WhenMoved.REFUSED if self.schema_mode == "overwrite" else self.when_moved

    def preview(self, work: Execution) -> Preview:
        """Look at each file of new batches, and say what the policies do to it and to the table's schema."""
        if not self.files:
            return Preview("no file is named, so nothing is ingested", Measures.of(work.target), does_nothing=True)
        survey = survey_ingest(
            work.target.uri,
            self.found_batches(work.raw_storage_options),
            options=self.options(),
            version=work.target.version,
            **_stores(work),
        )
        plan, before = survey.plan, Measures.of(work.target)
        accepted = [each for each in survey.files if each.key not in survey.refused]
        size = sum(each.file.size_bytes for each in accepted)
        num_batches = len({each.key for each in accepted})
        rows = "" if survey.num_rows is None else f", {survey.num_rows:,} rows"
        skipped = plan.skipped if plan else ()
        nothing = not accepted or (self.bad == "refuse" and bool(survey.refused))
        return Preview(
            f"ingest {len(accepted):,} files of {num_batches:,} batches{rows}" if accepted else "no batch is ingested",
            before,
            None if nothing else self._after(before, survey),
            reads_bytes=size,
            writes_bytes=size,
            sections=tuple(self._sections(work.target, survey)),
            warnings=tuple(self._warnings(survey)),
            facts={
                "batches": num_batches,
                "files": len(accepted),
                "tasks": len(plan.tasks) if plan else 0,
                "skipped_batches": len(skipped),
                "refused_batches": len(survey.refused),
            },
            does_nothing=nothing,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Ingest the batches as one version; those that the table holds are left out.

        A stored plan is executed on its version. Batches that are set aside are the result's problem.
        """
        if not self.files:
            done = IngestResult(None, 0, 0, (), ())
            return VerbResult(ingestion_facts(done), outcome=IngestedFiles((), done))
        version = None if work.retries else work.target.version
        batches = self.found_batches(work.raw_storage_options)
        try:
            done = ingest(work.target.uri, batches, options=self.options(), version=version, **_stores(work))
        except DatasetAlreadyExists as error:
            raise PlanOutdated(f"{work.target.uri}: the dataset was created since the plan: plan again") from error
        outcome = IngestedFiles(tuple(batches), done)
        stored = _stores(work)["storage_options"]
        committed = None if done.version is None else Snapshot.open(work.target.uri, done.version, stored)
        return VerbResult(
            ingestion_facts(done), committed, ingestion_sections(done), ingestion_problem(done, len(batches)), outcome
        )

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return all batches as skipped if the newest version holds them with the same content."""
        if not self.files or isinstance(work.target, AbsentTable):
            return None
        batches = self.found_batches(work.raw_storage_options)
        held = ingested_batches(work.target.snapshot)
        if any(batch.key not in held or held[batch.key].token != batch.token for batch in batches):
            return None
        done = IngestResult(None, 0, 0, (), tuple(batch.key for batch in batches))
        return VerbResult(ingestion_facts(done), outcome=IngestedFiles(tuple(batches), done))

    def options(self) -> IngestOptions:
        """Return the policies as `maintenance.ingest` takes them."""
        text = TextReading(**{each.name: getattr(self, each.name) for each in fields(TextReading)})
        return IngestOptions(
            schema=None if self.table_schema is None else declared_schema(self.table_schema),
            column_types={name: arrow_type_of(kind, (), name) for name, kind in self.columns.items()},
            data_storage_version=self.data_storage_version,
            enable_stable_row_ids=self.stable_row_ids,
            limits=FragmentLimits(self.max_rows_per_file),
            reading=RawReading(_limits(self.limits), self.isolated, text),
            schema_mode=SchemaMode(self.schema_mode),
            missing_columns=MissingColumns(self.missing_columns),
            extra_columns=ExtraColumns(self.extra_columns),
            case_sensitive=self.case_sensitive,
            batch_column=self.batch_column,
            changed_batches=ChangedBatches(self.changed),
            bad_batches=BadBatches(self.bad),
            mode=IngestMode(self.mode),
            keys=self.on,
            history=HistoryColumns(self.valid_from, self.valid_to, self.current),
        )

    def found_batches(self, raw_storage_options: Mapping[str, str]) -> list[IngestBatch]:
        """Return the files as they are now, by the keys of their batches.

        Raises `InvalidInput` for a file that is given twice, and for two files of one name without a key for either.
        """
        self._check_keys()
        grouped: dict[str, list[RawFile]] = {}
        found: set[str] = set()
        for file in self.sources:
            raw = found_file(file, raw_storage_options, self.beneath)
            if raw.uri in found:
                raise InvalidInput(f"files names {public_uri(raw.uri)} twice")
            found.add(raw.uri)
            grouped.setdefault(self._key(file), []).append(raw)
        lacking = [key for key in self.only if key not in grouped]
        if lacking:
            raise InvalidInput(f"only names {lacking[0]!r}, which is the key of no batch of these files")
        return [IngestBatch(key, tuple(files)) for key, files in grouped.items()]

    def _check_keys(self) -> None:
        if self.batch is not None and self.batches:
            raise InvalidInput("give either batch, the key of one batch, or batches, the keys by file")
        unknown = self.batches.keys() - set(self.files)
        if unknown:
            raise InvalidInput(f"batches names {min(unknown)!r}, which is not in files")
        named: dict[str, str] = {}
        for file in self.sources:
            if self.batch is None and file not in self.batches:
                other = named.setdefault(self._key(file), file)
                if other != file:
                    both = f"{public_uri(other)} and {public_uri(file)}"
                    raise InvalidInput(f"{both} have one name: give batch, or batches, the keys by file")

    def _key(self, file: str) -> str:
        return self.batch or self.batches.get(file) or file.rpartition("/")[2]

    def _after(self, before: Measures, survey: IngestSurvey) -> Measures | None:
        """Estimate the sizes afterwards; None if footers do not state the rows, or if rows are merged or replaced."""
        plan, num_rows = survey.plan, survey.num_rows
        if plan is None or num_rows is None or self.mode != "append" or plan.replaced:
            return None
        rows = {each.file.uri: each.num_rows or 0 for each in survey.files if each.key not in survey.refused}
        by_task = [
            sum(rows.get(part.file.uri, 0) * part.size_bytes // max(part.file.size_bytes, 1) for part in task.parts)
            for task in plan.tasks
        ]
        added = sum(-(-count // self.max_rows_per_file) for count in by_task)
        size = sum(each.file.size_bytes for each in survey.files if each.key not in survey.refused)
        begun = Measures(0, 0, 0, 0) if plan.overwrites else before
        return replace(
            begun, rows=begun.rows + num_rows, fragments=begun.fragments + added, size_bytes=begun.size_bytes + size
        )

    def _warnings(self, survey: IngestSurvey) -> list[str]:
        warnings = []
        if survey.refused:
            first = next(iter(survey.refused.values()))
            aside = f"{len(survey.refused)} batches would be set aside"
            warnings.append(f"{'It would be refused' if self.bad == 'refuse' else aside}: {first}")
        if survey.num_rows is None:
            warnings.append("Text files do not state their rows. Values that do not fit are found when they are read.")
        if survey.plan and survey.plan.replaced:
            named = ", ".join(survey.plan.replaced[:MOST_LINES])
            warnings.append(f"The rows of these batches are exchanged: {named}.")
        return warnings

    def _sections(self, target: Target, survey: IngestSurvey) -> list[Section]:
        lines: list[tuple[str, ...]] = [
            (
                public_uri(each.file.uri),
                each.key,
                f"{each.file.size_bytes:,}",
                "" if each.num_rows is None else f"{each.num_rows:,}",
                each.file.token,
                self._fate(each.refused) or "; ".join(each.effects) or "fits",
            )
            for each in sorted(survey.files, key=lambda each: not each.refused)
        ]
        skipped = survey.plan.skipped if survey.plan else ()
        lines += [("", key, "", "", "", "skipped: the table holds it") for key in skipped]
        header: tuple[str, ...] = ("file", "batch", "bytes", "rows", "token", "what happens")
        found = [shortened_section("Files", header, lines)] if lines else []
        if survey.plan and survey.plan.batches:
            before = None if isinstance(target, AbsentTable) else target.snapshot.schema
            columns = column_changes(before, survey.plan.schema)
            header = ("column", "type", "change")
            found.append(shortened_section("Columns afterwards", header, columns))
        return found

    def _fate(self, reason: str) -> str:
        return reason and f"{'quarantined' if self.bad == 'set_aside' else 'refused'}: {reason}"


def _stores(work: Execution) -> dict[str, Any]:
    """Return the runner, and the options of both stores."""
    target = work.target
    options = target.storage_options if isinstance(target, AbsentTable) else target.snapshot.storage_options
    return {
        "storage_options": dict(options),
        "raw_storage_options": work.raw_storage_options,
        "runner": work.runner,
    }


def _limits(given: Mapping[str, str]) -> RawLimits:
    """Return the limits with those given; raise `InvalidInput` for an unknown one, or a text that is no number."""
    known = vars(RawLimits())
    found: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise InvalidInput(f"limits has no {name!r}: it has {', '.join(known)}")
        try:
            found[name] = float(text) if name == "seconds" else int(text)
        except ValueError:
            raise InvalidInput(f"limits: {name} is a number, not {text!r}") from None
    return replace(RawLimits(), **found)


def declared_schema(text: str) -> pa.Schema:
    """Parse a schema as `schema_to_json` writes it, or an object of names and logical types."""
    try:
        declared = json.loads(text)
        if not isinstance(declared, dict):
            raise InvalidInput("table_schema is not a JSON object of names and types")
        if isinstance(declared.get("fields"), list):
            return json_to_schema(declared)
        return pa.schema([(name, arrow_type_of(str(kind), (), name)) for name, kind in declared.items()])
    except LanceOpsError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"table_schema is not a JSON object of names and types: {error}") from error
