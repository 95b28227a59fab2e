"""Erase a subject's rows from every retained version, tag and branch, and prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from lance_ops.core.errors import ErasureNotProven, InvalidInput, UnsafePath, UnsupportedFeature
from lance_ops.core.file_names import MAIN_BRANCH
from lance_ops.core.records import dataclass
from lance_ops.maintenance.erasure import (
    Cause,
    ErasureOptions,
    Holdings,
    Subject,
    check_permitted,
    erase,
    plan_erasure,
)
from lance_ops.refs import branch_of
from lance_ops.verbs.contract import Execution, Facts, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.extent import Extent, check_within
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import TAGS, VERSIONS, OwnMeasure
from lance_ops.verbs.rows.by_keys import read_distinct_keys
from lance_ops.verbs.sections import shortened_section

__all__ = ["Erase"]

_REMOVED_FOR_GOOD = (
    "Versions that hold the rows, also those committed after this preview, are removed for good, and cannot be read or "
    "restored."
)


@dataclass(frozen=True)
class Erase(Verb):
    """Whose rows to erase, as for `DeleteRows`, why, and what may go with them; see `ErasureOptions`.

    A stored plan holds the predicate. Name the subject in a file of keys if the plan must not.
    """

    name: ClassVar[str] = "erase"
    summary: ClassVar[str] = "Erase rows from every version, tag and branch, and prove it."
    command: ClassVar[str] = "erase"
    when_moved: ClassVar[WhenMoved] = WhenMoved.BOUNDED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (VERSIONS, TAGS)

    predicate: Annotated[
        str | None, Option("A SQL condition. It stays in the plan and in the run's configuration.")
    ] = None
    reason: Annotated[
        str, Option("Required. Why the rows go. The report and the transaction keep it: do not name the subject.")
    ] = ""
    key_files: Annotated[
        tuple[str, ...],
        Option("Instead: raw files, or one dataset (.lance), that hold the keys of the rows."),
    ] = ()
    on: Annotated[tuple[str, ...], Option("The columns of the key, in both.")] = ()
    remove_tags: Annotated[bool, Option("Remove the tags on versions that hold the rows.")] = False
    rewrite_branches: Annotated[bool, Option("Erase on other branches, too.")] = False
    delete_unverified: Annotated[
        bool,
        Option(
            "Also delete files younger than seven days that no version names. Only safe while no other process writes."
        ),
    ] = False
    at_most_rows: Annotated[int | None, Option("Refuse when more rows match.", at_least=0)] = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of keys."""
        return self.key_files

    def preview(self, work: Execution) -> Preview:
        """Show what holds the rows; no row is shown, because a preview is kept."""
        data = work.data
        options = self._options()
        found = plan_erasure(data.snapshot, self._subject(work), work.runner)
        before, num_rows = Measures.of(data), found.main.num_live_rows
        try:
            warnings = [_left_alone(root) for root in sorted(check_permitted(found, options))]
        except (InvalidInput, UnsafePath, UnsupportedFeature) as error:
            warnings = [f"It would be refused: {error}"]
        rewritten = [
            fragment
            for branch in found.branches
            for fragment in branch.head.fragments
            if fragment.id in branch.tainted_fragments
        ]
        size = sum(file.file_size_bytes for fragment in rewritten for file in fragment.files)
        return Preview(
            f"erase {found.num_live_rows:,} rows, and what holds them",
            before,
            replace(before, rows=before.rows - num_rows, deleted_rows=0),
            reads_bytes=size,
            writes_bytes=size,
            sections=tuple(_sections(found)),
            warnings=(*warnings, _REMOVED_FOR_GOOD),
            facts={
                "matching_rows": found.num_live_rows,
                "rewritten_fragments": len(rewritten),
                "versions_removed_for_texts": found.num_removed_for(Cause.TRANSACTION, Cause.METADATA),
                "versions_removed_for_indices": found.num_removed_for(Cause.INDEX),
            },
            does_nothing=found.is_clean,
            extent=_extent(found),
        )

    def execute(self, work: Execution) -> VerbResult:
        """Erase and prove; raise `ErasureNotProven` with what is left. The report is kept in any case.

        Raises `PlanOutdated` before any change if more rows or tags would go than a preview showed, or versions that it
        did not show although they were there.
        """
        data = work.data

        def approve(found: Holdings) -> None:
            if work.promised is not None:
                check_within(data.uri, work.promised, _what_goes(found, _heads(work.promised)))

        report = erase(data.snapshot, self._subject(work), self._options(), work.runner, approve)
        page = f"{report.uri}/{report.html_path}"
        if not report.is_proven:
            left = "; ".join(report.unproven[:5])
            raise ErasureNotProven(
                f"{report.uri}: erasure {report.id} is not proven: {left}; all of it is in {page}",
                retry_may_help=report.waits_for_writers,
            )
        facts: Facts = {
            "erased_rows": report.erased_rows,
            "rewritten_fragments": report.rewritten_fragments,
            "removed_versions": len(report.removed_versions),
            "remaining_files": len(report.files),
            "is_proven": True,
            **({"left_alone": "; ".join(map(_left_alone, report.also_held_by))} if report.also_held_by else {}),
            "report": page,
            "report_json": f"{report.uri}/{report.json_path}",
        }
        made = report.committed_versions.get(branch_of(data.snapshot) or MAIN_BRANCH)
        return VerbResult(facts, None if made is None else data.snapshot.at(made), outcome=report)

    def _subject(self, work: Execution) -> Subject:
        if (self.predicate is None) == (not self.key_files) or bool(self.key_files) != bool(self.on):
            raise InvalidInput("say whose rows to erase: give either predicate, or key_files with on")
        if self.predicate is not None:
            return Subject(self.predicate)
        return Subject.of_keys(read_distinct_keys(work.data, work.runner, self.key_files, self.on))

    def _options(self) -> ErasureOptions:
        return ErasureOptions(
            self.reason, self.remove_tags, self.rewrite_branches, self.delete_unverified, self.at_most_rows
        )


def _extent(found: Holdings) -> Extent:
    """Return what would go, and the newest version of each branch, so that newer ones can be told."""
    heads = tuple(f"{branch.name}/{branch.head.version}" for branch in found.branches)
    return {**_what_goes(found, {}), "heads": heads}


def _what_goes(found: Holdings, heads: Mapping[str, int]) -> Extent:
    """Return the rows, versions and tags that would go; of a branch in `heads` only versions up to that head.

    Every commit makes a newer version that names the same files. It goes, too, but no row more goes with it.
    """
    return {
        "rows": found.num_live_rows,
        "versions": tuple(
            f"{branch.name}/{version}"
            for branch in found.branches
            for version in sorted(branch.holding)
            if version <= heads.get(branch.name, version)
        ),
        "tags": tuple(sorted(found.tags)),
    }


def _heads(extent: Extent) -> dict[str, int]:
    """Return the newest version that each branch had at the preview; a branch made since has none."""
    match extent:
        case {"heads": tuple() as heads}:
            return {branch: int(version) for branch, _, version in (head.rpartition("/") for head in heads)}
    raise InvalidInput("the plan does not say which versions its erasure may remove: make it again")


def _left_alone(root: str) -> str:
    return f"{root} is another dataset, whose files store the rows: erase them there, too"


def _sections(found: Holdings) -> list[Section]:
    versions = [
        (branch.name, str(version), str(why))
        for branch in found.branches
        for version, why in sorted(branch.holding.items(), reverse=True)
    ]
    tags = [(name, branch, str(version)) for name, (branch, version) in found.tags.items()]
    return [
        shortened_section("Versions that hold the rows", ("branch", "version", "why"), versions),
        *([Section("Tags on them", ("tag", "branch", "version"), tuple(tags))] if tags else []),
    ]
