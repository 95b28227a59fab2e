"""The op that builds the declared indices and extends them to rows that they do not cover."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.markdown import table
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.maintenance.health import index_coverage
from lance_ops.maintenance.indexing import create_scalar_index, optimize_indices
from lance_ops.snapshot import Snapshot

__all__ = ["Reindex", "reindex_op"]


class Reindex(dg.Config):
    """Which of the declared indices to work on, and how."""

    indices: list[str] = Field(default_factory=list, description="Names of declared indices; none means all.")
    rebuild: bool = Field(default=False, description="Train anew instead of merging the missing rows in.")
    dry_run: bool = Field(default=False, description="Show the coverage and build nothing.")


def reindex_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that brings a dataset's declared indices to full coverage."""

    def reindex(work: Work, asked: Reindex) -> dict[str, Any]:
        declared = {index.index_name: index for index in config.indices}
        unknown = sorted(set(asked.indices) - set(declared))
        if unknown:
            raise InvalidInput(f"{config.name} declares no index {unknown[0]}; it declares {sorted(declared)}")
        names = asked.indices or list(declared)
        snapshot = work.snapshot
        before = _coverage_markdown(snapshot, names)
        if not asked.dry_run:
            present = {index.name for index in index_coverage(snapshot)}
            kept = [name for name in names if name in present and not asked.rebuild]
            for name in names:
                if name not in kept:
                    declaration = declared[name]
                    snapshot = create_scalar_index(
                        snapshot, declaration.column, declaration.type, name, runner=work.runner
                    )
            if kept:
                snapshot = optimize_indices(snapshot, kept, runner=work.runner)
        return {
            "lance/dry_run": asked.dry_run,
            "lance/coverage_before": dg.MetadataValue.md(before),
            "lance/coverage_after": dg.MetadataValue.md(_coverage_markdown(snapshot, names)),
        }

    return verb_op(config, "reindex", "Build missing indices and cover new rows.", reindex, Reindex)


def _coverage_markdown(snapshot: Snapshot, names: list[str]) -> str:
    coverage = {index.name: index for index in index_coverage(snapshot)}
    lines = []
    for name in names:
        index = coverage.get(name)
        if index is None:
            lines.append((name, "missing", "", ""))
        else:
            unindexed = f"{index.num_unindexed_rows:,} in {index.num_unindexed_fragments} fragments"
            lines.append((name, index.type_name, f"{index.indexed_ratio:.1%}", unindexed))
    return table(["index", "type", "indexed", "rows not covered"], lines) if lines else "No index is declared."
