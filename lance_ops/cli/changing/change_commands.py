"""Commands that change a dataset: `delete`, `compact`, `reindex`, `cleanup`, `restore`."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    AtMostRows,
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    Reason,
    StorageOptions,
    Uri,
    Yes,
    duration,
    help_of,
    open_dataset,
    options_to_work,
    reference,
    runner,
)
from lance_ops.cli.outcomes import delete_and_print, preview_and_print, print_outcome
from lance_ops.cli.output import counted, number, print_facts, print_json, print_line, size
from lance_ops.cli.questions import check_can_ask, confirm_or_exit
from lance_ops.maintenance.cleanup import CleanupExplanation, CleanupStats
from lance_ops.maintenance.compaction import CompactionMetrics, CompactionOptions
from lance_ops.maintenance.health import index_coverage

__all__ = ["cleanup", "compact", "delete", "reindex", "restore"]


def delete(
    uri: Uri,
    predicate: Annotated[
        str | None, typer.Argument(metavar="[PREDICATE]", help="SQL, such as \"tailnum = 'N14228'\".")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys", metavar="FILE", help="Delete the rows whose key is in this raw file or dataset, instead."
        ),
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="COLUMN", help="The key's column in both; may be repeated.")
    ] = None,
    reason: Reason = "",
    at_most_rows: AtMostRows = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Delete the rows for which PREDICATE is true, or those with given keys.

    The versions before keep them until clean-up.
    """
    if (predicate is None) == (not keys):
        raise typer.BadParameter("say which rows: by a PREDICATE, or by --keys FILE --on COLUMN")
    if bool(keys) != bool(on):
        raise typer.BadParameter("--keys FILE and --on COLUMN belong together")
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    reason = reason or f"on the command line: rows with {predicate or f'a key of {_named(keys)}'}"
    verb = verbs.DeleteRows(predicate, reason, tuple(keys or ()), tuple(on or ()), at_most_rows)
    if dry_run:
        preview_and_print(verb, opened, runner(spark), as_json=as_json)
        return
    delete_and_print(verb, opened, runner(spark), as_json=as_json, nothing="no row matches")


def compact(
    uri: Uri,
    target_rows_per_fragment: Annotated[
        int, typer.Option(min=1, help=help_of(verbs.Compact, "target_rows_per_fragment"))
    ] = CompactionOptions.target_rows_per_fragment,
    max_bytes_per_file: Annotated[
        int | None, typer.Option(min=1, help=help_of(verbs.Compact, "max_bytes_per_file"))
    ] = None,
    materialize_deletions: Annotated[bool, typer.Option(help=help_of(verbs.Compact, "materialize_deletions"))] = True,
    materialize_deletions_threshold: Annotated[
        float, typer.Option(min=0, max=1, help=help_of(verbs.Compact, "materialize_deletions_threshold"))
    ] = CompactionOptions.materialize_deletions_threshold,
    max_source_fragments: Annotated[
        int | None, typer.Option(min=1, help=help_of(verbs.Compact, "max_source_fragments"))
    ] = None,
    max_source_rows: Annotated[int | None, typer.Option(min=1, help=help_of(verbs.Compact, "max_source_rows"))] = None,
    max_source_bytes: Annotated[
        int | None, typer.Option(min=1, help=help_of(verbs.Compact, "max_source_bytes"))
    ] = None,
    exclude_fragment: Annotated[
        list[int] | None, typer.Option(metavar="ID", help=help_of(verbs.Compact, "excluded_fragment_ids"))
    ] = None,
    data_storage_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help=help_of(verbs.Compact, "data_storage_version"))
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help=help_of(verbs.Compact, "max_seconds"))] = None,
    worst_first: Annotated[bool, typer.Option("--worst-first", help=help_of(verbs.Compact, "worst_first"))] = False,
    max_commits: Annotated[int, typer.Option(min=1, help=help_of(verbs.Compact, "max_commits"))] = 1,
    cluster_by: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster-by",
            metavar="COLUMN",
            help="Sort the rows of all fragments by this column; may be repeated.",
        ),
    ] = None,
    z_order: Annotated[bool, typer.Option("--z-order", help="Sort along a Z curve through the columns.")] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Run tasks in this many threads; by default one for each core.")
    ] = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Merge small fragments, drop deleted rows, and move the indices along."""
    if threads is not None and spark is not None:
        raise typer.BadParameter("tasks run in threads or on Spark, not in both", param_hint="--threads")
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    options: dict[str, Any] = {
        "target_rows_per_fragment": target_rows_per_fragment,
        "max_bytes_per_file": max_bytes_per_file,
        "materialize_deletions": materialize_deletions,
        "materialize_deletions_threshold": materialize_deletions_threshold,
        "max_source_fragments": max_source_fragments,
        "max_source_rows": max_source_rows,
        "max_source_bytes": max_source_bytes,
        "excluded_fragment_ids": tuple(exclude_fragment or ()),
        "data_storage_version": data_storage_version,
        "max_commits": max_commits,
        "max_seconds": max_seconds,
        "worst_first": worst_first,
        "cluster_by": tuple(cluster_by or ()),
        "cluster_order": "z_order" if z_order else "linear",
    }
    verb = verbs.make_verb("compact", options)
    if dry_run:
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    done = verbs.do_now(verb, opened, runner(spark, threads))
    metrics: CompactionMetrics = done.outcome
    what = f"rewrote {counted(metrics.fragments_removed, 'fragment')} as {metrics.fragments_added}"
    print_outcome(done, {"metrics": metrics}, as_json=as_json, what=what, nothing="nothing to compact")


def reindex(
    uri: Uri,
    index: Annotated[
        list[str] | None, typer.Option("--index", metavar="NAME", help="Work on this index only; may be repeated.")
    ] = None,
    create: Annotated[
        str | None, typer.Option("--create", metavar="COLUMN", help="Build an index on COLUMN, in place of an old one.")
    ] = None,
    index_type: Annotated[
        str | None, typer.Option("--type", help="The type of the index that --create builds; default: BTREE.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help=help_of(verbs.Reindex, "rebuild"))] = False,
    drop: Annotated[str | None, typer.Option("--drop", metavar="NAME", help="Drop this index instead.")] = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Extend indices to the rows they do not cover, build one, or drop one."""
    if create and index and len(index) > 1:
        raise typer.BadParameter("an index to create has one name", param_hint="--index")
    if drop and (create or index or index_type or rebuild):
        raise typer.BadParameter("--drop excludes --create, --index, --type and --rebuild", param_hint="--drop")
    if index_type and not create:
        raise typer.BadParameter("--type needs --create: the type of an index does not change", param_hint="--type")
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    name = index[0] if create and index else f"{create}_idx"
    verb = (
        verbs.DropIndex(drop)
        if drop
        else verbs.Reindex((name,), {name: f"{create}:{index_type or 'BTREE'}"}, rebuild=True)
        if create
        else verbs.Reindex(tuple(index or ()), rebuild=rebuild)
    )
    if dry_run:
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    done = verbs.do_now(verb, opened, runner(spark))
    indices = index_coverage(opened.checkout_version(done.version).snapshot)
    if not (as_json or indices or drop):
        print_line("no index yet; build one with --create COLUMN")
        return
    names = ", ".join(f"{covering.name} ({counted(covering.num_indexed_rows, 'row')})" for covering in indices)
    what = f"dropped {drop}" if drop else f"indexed {names}"
    print_outcome(done, {"indices": indices}, as_json=as_json, what=what, nothing="every row is covered")


def cleanup(
    uri: Uri,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="Remove versions older than this, such as 14d, the default."
        ),
    ] = None,
    retain_versions: Annotated[int | None, typer.Option(min=1, help=help_of(verbs.Cleanup, "retain_versions"))] = None,
    versions: Annotated[
        list[int] | None,
        typer.Option(
            "--remove-version",
            metavar="NUMBER",
            help="Remove this version, instead of all that are old enough; may be repeated.",
        ),
    ] = None,
    keep_tagged: Annotated[
        bool,
        typer.Option(
            "--keep-tagged",
            help="Without it, the command stops with an error if an old version has a tag. "
            "Tagged versions are never removed.",
        ),
    ] = False,
    delete_unverified: Annotated[
        bool,
        typer.Option(
            "--delete-unverified",
            help=help_of(verbs.Cleanup, "delete_unverified"),
        ),
    ] = False,
    rate: Annotated[int | None, typer.Option(min=1, help=help_of(verbs.Cleanup, "delete_rate_limit"))] = None,
    files: Annotated[bool, typer.Option("--files", help="With --dry-run: list the files.")] = False,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Remove old versions and the files that nothing needs any more.

    A clean-up by retention asks nothing, because schedules call it. With --remove-version, the command shows the
    versions and asks. It then needs --yes without a terminal and with --json. --dry-run shows the versions and removes
    none. The newest version and tagged ones stay.
    """
    asks = bool(versions) and not (dry_run or yes)
    if asks:
        check_can_ask(as_json=as_json)
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    used = None if spark is None else runner(spark)

    chosen: dict[str, Any] = {
        "older_than": older_than,
        "retain_versions": retain_versions,
        "delete_unverified": delete_unverified,
        "error_if_tagged_old_versions": not keep_tagged,
        "versions": versions,
        "runner": used,
    }
    explain = partial(opened.explain_cleanup_old_versions, **chosen, include_files=files)

    if asks:
        _print_explanation(explain())
        confirm_or_exit("Remove these versions for good?")
    if not dry_run:
        stats = opened.cleanup_old_versions(**chosen, delete_rate_limit=rate)
        if as_json:
            print_json({**stats.__dict__, "dry_run": False})
        else:
            _print_cleanup("removed", stats)
        if stats.failed_deletes:
            if not as_json:  # the answer has the number
                print_line(f"{stats.failed_deletes} deletions failed; the next clean-up tries again", "red")
            raise typer.Exit(1)
        return
    if as_json:
        print_json({**explain().__dict__, "dry_run": True})
    else:
        _print_explanation(explain())


def restore(
    uri: Uri,
    version: Annotated[str, typer.Argument(metavar="VERSION|TAG", help="The version to make the newest again.")],
    reason: Reason = "",
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Make an old version the newest one, as a new version."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    chosen = reference(version)
    reason = reason or f"on the command line: back to {version} instead of {opened.version}"
    verb = verbs.Restore(tag=chosen, reason=reason) if isinstance(chosen, str) else verbs.Restore(chosen, reason=reason)
    if dry_run:
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    done = verbs.do_now(verb, opened)
    restored = done.facts["restored_version"]
    what = f"version {restored} restored"
    print_outcome(done, {"restored": restored}, as_json=as_json, what=what, nothing="nothing changes")


def _named(files: list[str] | None) -> str:
    return ", ".join(file.rstrip("/").rpartition("/")[2] for file in files or ())


def _print_explanation(explained: CleanupExplanation) -> None:
    """Print what a clean-up would remove."""
    _print_cleanup("would remove", explained.stats)
    for warning in explained.warnings:
        print_line(warning, "yellow")
    for path in explained.candidate_files:
        print_line(path)
    if explained.candidate_files_truncated:
        print_line(f"… and more: the first {explained.candidate_file_limit} are listed")


def _print_cleanup(verb: str, stats: CleanupStats) -> None:
    facts = {
        verb: f"{counted(stats.old_versions, 'version')}, {size(stats.bytes_removed)}",
        "data files": number(stats.data_files_removed),
        "deletion files": number(stats.deletion_files_removed),
        "index files": number(stats.index_files_removed),
        "transactions": number(stats.transaction_files_removed),
    }
    if stats.orphan_bytes:
        facts["in files that no version names"] = size(stats.orphan_bytes)
    print_facts(facts)
