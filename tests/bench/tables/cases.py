"""Which verbs are measured on which tables, and the names of the cases: `fragments/40/1%/scan`, `columns/2000/take`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.tables.tables import COLD, SOURCE, Table, copy_table
from tests.bench.tables.verbs import ALL_VERBS, Verb

__all__ = ["LARGE", "USUAL", "Case", "Sizes", "case_named", "cases_chosen"]

_BY_NAME = {verb.name: verb for verb in ALL_VERBS}
_BY_FRAGMENTS = [
    *["scan", "filter", "filter_one_column", "row_by_btree", "range_by_btree"],
    *["take", "count", "offset", "append"],
]
_COSTLY = ["delete", "update", "optimize_indices", "btree_on_strings", "compact", "clean_up"]
_BY_COLUMNS = ["open_schema", "scan", "take", "append"]
_BY_VERSIONS = ["open_latest", "open_numbered", "list_versions", "append"]
_COLD = ["scan", "filter", "take", "append"]


@dataclass(frozen=True)
class Sizes:
    """How large the tables of a run are. The costly verbs run at one number of fragments only."""

    fragments: tuple[int, ...]
    costly_fragments: int
    columns: tuple[int, ...]
    versions: tuple[int, ...]


USUAL = Sizes(
    fragments=(1, 40, 200, 1_000), costly_fragments=40, columns=(10, 100, 2_000, 10_000), versions=(1, 100, 2_000)
)
LARGE = replace(USUAL, fragments=(*USUAL.fragments, 10_000), versions=(*USUAL.versions, 50_000))


@dataclass(frozen=True)
class Case:
    """A verb on a table, whose folder is `root` in every method."""

    table: Table
    verb: Verb

    @property
    def name(self) -> str:
        return f"{self.table.name}/{self.verb.name}"

    def prepare(self, root: Path) -> None:
        """Do what the verb needs done before; the rounds copy the result."""
        if self.verb.before is not None:
            copy_table(root / SOURCE, root / self._copied)
            self.verb.before(str(root / self._copied))

    def start(self, root: Path, name: str, number: int) -> str:
        """Return the name of the table for a contender's round: the one all read, or a copy if the verb changes it."""
        if not self.verb.changes:
            return SOURCE
        files = f"{self.verb.name}-{name}-{number}"
        copy_table(root / self._copied, root / files)
        return files

    def clear(self, root: Path) -> None:
        """Remove the copies. It follows all rounds: who has a file mapped would pay for its removal within a round."""
        for copy in root.glob(f"{self.verb.name}-*"):
            shutil.rmtree(copy)

    @property
    def _copied(self) -> str:
        return SOURCE if self.verb.before is None else f"{self.verb.name}-source"


def case_named(name: str) -> Case:
    """Return the case that has this name, of any size."""
    axis, size, *share, verb = name.split("/")
    return Case(Table(axis, int(size), deleted=share == ["1%"]), _BY_NAME[verb])


def cases_chosen(sizes: Sizes, words: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases of these sizes that words choose; all of them if there are none.

    A word is parts of a case's name, divided by slashes: `columns`, `scan`, `fragments/40/scan`. A word that chooses
    nothing raises `SystemExit`.
    """
    cases = _all_cases(sizes)
    if not words:
        return cases
    wanted = {word: set(word.split("/")) for word in words}
    parts = {case: set(case.name.split("/")) for case in cases}
    vain = [word for word, its in wanted.items() if not any(its <= of_case for of_case in parts.values())]
    if vain:
        known = sorted(set[str]().union(*parts.values()))
        raise SystemExit(f"no case has {', '.join(vain)}; names of cases are made of {', '.join(known)}")
    return tuple(case for case in cases if any(its <= parts[case] for its in wanted.values()))


def _all_cases(sizes: Sizes) -> tuple[Case, ...]:
    def of(table: Table, verbs: Sequence[str]) -> list[Case]:
        return [Case(table, _BY_NAME[verb]) for verb in verbs]

    cases = []
    for size in sizes.fragments:
        for deleted in (False, True):
            costly = _COSTLY if size == sizes.costly_fragments else ()
            cases += of(Table("fragments", size, deleted), [*_BY_FRAGMENTS, *costly])
    for size in sizes.columns:
        cases += of(Table("columns", size), _BY_COLUMNS)
    for size in sizes.versions:
        cases += of(Table("versions", size), _BY_VERSIONS)
    return (*cases, *of(Table(COLD, 1), _COLD))
