"""Declared Lance datasets as Dagster definitions: a declaration in; assets, checks, jobs, sensors and a schedule out.

Two nodes stand for a dataset. `<dataset>/batches` is partitioned by ingestion batch: backfills live there, and any
number of batches is one run and one commit. `<dataset>`, the head, is not: each committed version, whoever made it, is
one materialization with the version's number as its data version; checks, freshness and downstream assets attach to it.
"""

from lance_ops.dagster.definitions import build_asset_definitions, build_job_definitions
from lance_ops.dagster.in_process import CodeLocation, Ticked
from lance_ops.dagster.markdown import size_text

__all__ = [
    "CodeLocation",
    "Ticked",
    "build_asset_definitions",
    "build_job_definitions",
    "size_text",
]
