"""What a verb must do: say what it would do to a version, and do it.

A verb is a frozen dataclass whose fields are its options, each declared with an `Option`. So a plan can be stored as
JSON and made again, and the command line and Dagster take a verb's options from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, TypeAlias

from lance_ops.api import LanceDataset
from lance_ops.committers import open_root
from lance_ops.core.errors import DatasetNotFound, InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import REASON_PROPERTY, TOKEN
from lance_ops.verbs.extent import Extent
from lance_ops.verbs.options import options_of
from lance_ops.verbs.own_measures import OwnMeasure

__all__ = [
    "REASON_PROPERTY",
    "AbsentTable",
    "Execution",
    "Facts",
    "Measures",
    "Preview",
    "Section",
    "Target",
    "Verb",
    "VerbResult",
    "WhenMoved",
    "reason_properties",
    "required_reason_properties",
]

Facts: TypeAlias = Mapping[str, str | int | float | bool]
"""What a verb did, by name."""


class WhenMoved(Enum):
    """What becomes of a plan when the table has newer versions than the planned one."""

    JUDGED = "judged"
    """It is executed on the planned version, and the rules of commits judge the newer ones."""
    COMPARED = "compared"
    """It is executed on the newest version if `Verb.affects_same_rows` says that the affected rows are unchanged.
    Otherwise it is refused."""
    REFUSED = "refused"
    """It is refused, because the preview says nothing about what the newer versions hold."""
    BOUNDED = "bounded"
    """It is executed on the newest version within `Preview.extent`. The verb leaves out what is more, or refuses."""
    REPLANNED = "replanned"
    """`execute_plan` plans the verb again on the newest version. The preview may then differ from what is done."""

    @property
    def sentence(self) -> str:
        """What becomes of a plan, for people who look at its preview."""
        return _WHEN_MOVED[self]


_WHEN_MOVED = {
    WhenMoved.JUDGED: "It is executed on this version, and refused if newer versions contradict it.",
    WhenMoved.COMPARED: "It is executed on the newest version if that has the same rows for it, and refused otherwise.",
    WhenMoved.REFUSED: "It is refused when the table has a newer version.",
    WhenMoved.BOUNDED: (
        "It is executed on the newest version. A clean-up leaves what is beyond this preview; an erasure is refused if "
        "more rows would go."
    ),
    WhenMoved.REPLANNED: "It is planned again on the newest version, so what is done may differ from this preview.",
}


@dataclass(frozen=True)
class AbsentTable:
    """The place of a table that does not exist yet. Only a verb that `creates_table` is planned there, on version 0."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    version: ClassVar[int] = 0

    @classmethod
    def at(cls, uri: str, storage_options: Mapping[str, str] | None = None) -> AbsentTable:
        """Return the place that a URI names, with the URI as an opened dataset would spell it."""
        return cls(open_root(uri, storage_options).store.uri, dict(storage_options or {}))


Target: TypeAlias = LanceDataset | AbsentTable
"""What a verb is planned on: an opened version, or the place of a table that does not exist yet."""


@dataclass(frozen=True)
class Measures:
    """Sizes of a version: live rows, rows that are deleted and still stored, fragments, and bytes of data files."""

    rows: int
    deleted_rows: int
    fragments: int
    size_bytes: int

    @classmethod
    def of(cls, data: Target) -> Measures:
        """Measure a version from its manifest; a table that does not exist has no rows."""
        if isinstance(data, AbsentTable):
            return cls(0, 0, 0, 0)
        snapshot = data.snapshot
        return cls(snapshot.num_rows, snapshot.num_deleted_rows, len(snapshot.fragments), snapshot.size_bytes)


@dataclass(frozen=True)
class Section:
    """A titled table of a preview; every cell is text for people."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Preview:
    """What a verb would do to a version.

    `after` is an estimate, and None where the verb cannot tell. `reads_bytes` and `writes_bytes` are the cost. A
    preview that `does_nothing` needs no execution. `extent` is the most that the execution of the stored plan may
    remove or rewrite.
    """

    summary: str
    before: Measures
    after: Measures | None = None
    reads_bytes: int = 0
    writes_bytes: int = 0
    sections: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    does_nothing: bool = False
    extent: Extent = field(default_factory=dict)


@dataclass(frozen=True)
class Execution:
    """What a verb is previewed and executed with: the table at the version to plan on, and a runner for tasks.

    `retries` is how often a verb may plan again after a conflict. It is 0 for a stored plan that is executed
    on its planned version. `raw_storage_options` are those of the files of a verb that `reads_landing`. `promised` is
    the extent that a stored plan's preview showed, and None if no preview was made. `token` names the work of the
    caller, such as a step of a run; see `Verb.carries_token`. `attempted_since` is when the first
    earlier attempt of this work began that may have done it, such as one that was killed; None if there is none.
    """

    target: Target
    runner: Runner
    retries: int = 0
    raw_storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    promised: Extent | None = None
    token: str | None = None
    attempted_since: datetime | None = None

    @property
    def data(self) -> LanceDataset:
        """The dataset. Raises `DatasetNotFound` if the table does not exist yet."""
        if isinstance(self.target, AbsentTable):
            raise DatasetNotFound(f"{self.target.uri}: no dataset is there")
        return self.target

    @property
    def token_properties(self) -> dict[str, str]:
        """The transaction properties that hold the token; they are empty without a token."""
        return {} if self.token is None else {TOKEN: self.token}


@dataclass(frozen=True)
class VerbResult:
    """What a verb did. `committed` is the last version that it committed, and None if it committed none.

    Another writer may have committed newer versions. `problem` says what is wrong although the verb was executed, such
    as damages that a verification found; it is empty if nothing is. `outcome` is what the verb's own function returned.
    """

    facts: Facts
    committed: Snapshot | None = None
    sections: tuple[Section, ...] = ()
    problem: str = ""
    outcome: Any = None


@dataclass(frozen=True)
class Verb(ABC):
    """Something that is done to a table, with its options."""

    name: ClassVar[str]
    """The verb's name in stored plans, in the command line and in Dagster."""
    summary: ClassVar[str]
    """What the verb does, as one sentence of a job's page or of a list."""
    command: ClassVar[str]
    """The command of `lance-ops` that does it without a stored plan, or the group of such commands."""
    when_moved: ClassVar[WhenMoved]
    opens_damaged: ClassVar[bool] = False
    """Whether the verb begins at the newest readable version if the newest version cannot be read."""
    creates_table: ClassVar[bool] = False
    """Whether the verb can also be planned where no table is yet."""
    reads_landing: ClassVar[bool] = False
    """Whether its files are read with the storage options of the landing folder; other verbs read without any."""
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = ()
    """What the verb changes besides the sizes of `Measures`."""
    carries_token: ClassVar[bool] = False
    """Whether the verb's only commit carries `Execution.token`. The caller finds by it whether the work was done: a
    second execution could change rows again."""
    only_reads: ClassVar[bool] = False
    """Whether the verb changes nothing, so that it need not wait for verbs that write."""

    def __post_init__(self) -> None:
        for option in options_of(type(self)).values():
            option.check(self.name, getattr(self, option.name))

    @property
    def sources(self) -> tuple[str, ...]:
        """The raw files and datasets that the verb reads. A plan is outdated when one of them has changed."""
        return ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that the verb imports, as `package.module:name`. A plan is outdated when a module changed."""
        return ()

    @property
    def when_moved_by_options(self) -> WhenMoved:
        """What becomes of a plan with these options: `when_moved`, unless they need more care."""
        return self.when_moved

    @abstractmethod
    def preview(self, work: Execution) -> Preview:
        """Say what the verb would do to the planned version.

        Raises what `execute` raises for options that make no sense.
        """

    def affects_same_rows(self, planned: LanceDataset, newest: LanceDataset, runner: Runner) -> bool:
        """Return whether the verb would affect the same rows, with the same values, in both versions.

        Only verbs that are `COMPARED` are asked.
        """
        return False

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return the result if the newest version, the target, holds what the verb would do; else None.

        A stored plan asks, and a verb whose work was attempted before. A run that died after its commit is then
        repeated without an error.
        """
        return None

    @abstractmethod
    def execute(self, work: Execution) -> VerbResult:
        """Do it, and say what was done."""


def reason_properties(reason: str) -> dict[str, str]:
    """Return the transaction properties that state the reason; none for an empty reason."""
    return {REASON_PROPERTY: reason} if reason.strip() else {}


def required_reason_properties(reason: str, why: str) -> dict[str, str]:
    """Return the transaction properties that state the reason; raise `InvalidInput` if it is empty.

    `why` says in the error what the reason must explain, such as "why the rows go".
    """
    if not reason.strip():
        raise InvalidInput(f"reason is empty: say {why}")
    return {REASON_PROPERTY: reason}
