"""Begin a dataset of its own with a version: with copies of its files, or with their names only."""

from __future__ import annotations

from typing import Annotated, ClassVar

from lance_ops import transactions
from lance_ops.api import LanceDataset
from lance_ops.core.errors import DatasetAlreadyExists
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot, history
from lance_ops.verbs.chosen_version import chosen_version
from lance_ops.verbs.contract import Execution, Measures, Preview, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option

__all__ = ["Clone"]


@dataclass(frozen=True)
class Clone(Verb):
    """Where the new dataset begins, and which version it begins with.

    The new dataset is written with the storage options of this one.
    """

    name: ClassVar[str] = "clone"
    summary: ClassVar[str] = "Copy a version into a dataset of its own, with its files or with their names."
    command: ClassVar[str] = "clone"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED

    target: Annotated[str, Option("The URI of the new dataset; none may be there.")]
    version: Annotated[int | None, Option("The version to copy; by default the newest.", at_least=1)] = None
    tag: Annotated[str | None, Option("Instead: the tag of the version to copy.")] = None
    shallow: Annotated[bool, Option("Read this dataset's files where they are, instead of copying them.")] = False

    def preview(self, work: Execution) -> Preview:
        """Show what would be copied."""
        data = work.data
        if Snapshot.open_if_exists(self.target, data.snapshot.storage_options) is not None:
            raise DatasetAlreadyExists(f"{self.target} holds a dataset already")
        source, size = self._source(data), Measures.of(data)
        copied = 0 if self.shallow else Measures.of(source).size_bytes
        what = "name the files of" if self.shallow else "copy"
        kept = f"Tag version {source.version} here: clean-up does not know of clones, and would remove their files."
        return Preview(
            f"{what} version {source.version} in {self.target}: {source.snapshot.num_rows:,} rows",
            size,
            size,
            reads_bytes=copied,
            writes_bytes=copied,
            warnings=(kept,) if self.shallow and self.tag is None else (),
            facts={"target": self.target, "cloned_version": source.version, "copied_bytes": copied},
        )

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return that the dataset was made, if an earlier attempt may have made it.

        A dataset of another writer is older than that attempt, or begins with something else.
        """
        if work.attempted_since is None:
            return None
        source = work.data.snapshot
        made = Snapshot.open_if_exists(self.target, source.storage_options)
        if made is None:
            return None
        *_, first = history(made, to_the_end=True)
        begun = first.transaction.operation if first.transaction is not None else None
        if not isinstance(begun, transactions.Clone):
            return None
        asked = chosen_version(work.data, self.version, self.tag)
        origin = (source.uri, source.manifest.branch, self.shallow)
        if (begun.ref_path, begun.ref_name, begun.is_shallow) != origin or asked not in (None, begun.ref_version):
            return None
        made_at = first.manifest.timestamp
        if made_at is None or made_at < work.attempted_since:
            return None
        return VerbResult({"target": made.uri, "cloned_version": begun.ref_version, "rows": first.manifest.num_rows})

    def execute(self, work: Execution) -> VerbResult:
        """Make the dataset; tasks copy the files, each verified. This dataset stays as it is."""
        source = self._source(work.data)
        if self.shallow:
            made = source.shallow_clone(self.target, source.version)
        else:
            made = source.deep_clone(self.target, source.version, runner=work.runner)
        return VerbResult({"target": made.uri, "cloned_version": source.version, "rows": made.snapshot.num_rows})

    def _source(self, data: LanceDataset) -> LanceDataset:
        return LanceDataset.of(data.snapshot.at(chosen_version(data, self.version, self.tag) or data.version))
