"""Print what a command would do, what it did, or that there was nothing to do, for most commands that change rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import typer

from lance_ops import verbs
from lance_ops.cli.output import counted, number, print_facts, print_json, print_line, print_table, size
from lance_ops.runners import Runner

__all__ = [
    "delete_and_print",
    "preview_and_print",
    "print_changed_sizes",
    "print_executed",
    "print_measures",
    "print_outcome",
    "print_preview",
]


def preview_and_print(
    verb: verbs.Verb,
    opened: verbs.Target,
    runner: Runner,
    *,
    as_json: bool,
    raw_storage_options: Mapping[str, str] | None = None,
) -> None:
    """Print what a verb would do to the opened version, for `--dry-run`. Nothing is changed."""
    _, preview = verbs.make_plan(verb, opened, runner, raw_storage_options=raw_storage_options)
    if as_json:
        print_json({"preview": preview, "dry_run": True})
    else:
        print_preview(preview)


def print_outcome(done: verbs.Executed, facts: Mapping[str, Any], *, as_json: bool, what: str, nothing: str) -> None:
    """Print what a verb did to a dataset, with the sizes that changed; `nothing` is the sentence if it committed none.

    As JSON, with the sizes before and after.
    """
    if as_json:
        sizes = {"before": done.before, "after": done.after}
        print_json({**facts, "version": done.version, "dry_run": False, **sizes})
    elif done.version == done.read_version:
        print_line(f"{nothing}; version {done.version} stays")
    else:
        print_line(f"{what}: version {done.version}")
        print_changed_sizes(done.before, done.after)


def print_changed_sizes(before: verbs.Measures, after: verbs.Measures) -> None:
    """Print one line of the sizes that differ between two versions; nothing if none does."""
    changed = [f"{name} {old} to {new}" for name, old, new in _sizes(before, after) if old != new]
    if changed:
        print_line("; ".join(changed), "dim")


def delete_and_print(verb: verbs.Verb, opened: verbs.Target, runner: Runner, *, as_json: bool, nothing: str) -> None:
    """Execute a verb that deletes rows, and print how many; `nothing` is the sentence if there were none."""
    done = verbs.do_now(verb, opened, runner)
    num_rows = int(done.facts["matching_rows"])
    what = f"deleted {counted(num_rows, 'row')}"
    print_outcome(done, {"num_deleted_rows": num_rows}, as_json=as_json, what=what, nothing=nothing)


def print_executed(title: str, done: verbs.Executed, *, as_json: bool) -> None:
    """Print what a verb did, with sizes before and after; exit with code 1 if it ended with a problem."""
    if as_json:
        shown = {field.name: getattr(done, field.name) for field in fields(done) if field.name != "outcome"}
        print_json(shown)
    else:
        print_line(title)
        print_facts({name.replace("_", " "): str(value) for name, value in done.facts.items()})
        title = f"version {done.read_version} to {done.version}"
        print_measures(done.before, done.after, title, done.own_measures)
        for section in done.sections:
            print_table(section.title, section.header, section.lines)
    if done.problem:
        if not as_json:
            print_line(done.problem, "red")
        raise typer.Exit(1)


def print_preview(preview: verbs.Preview) -> None:
    """Print a preview for people."""
    print_line(preview.summary)
    if preview.after == preview.before:
        kept = preview.before
        print_line(f"the newest version keeps {counted(kept.rows, 'row')} in {counted(kept.fragments, 'fragment')}")
    elif preview.after is not None:
        print_measures(preview.before, preview.after, "before, and after by estimate")
    costs = {"reads": preview.reads_bytes, "writes": preview.writes_bytes}
    if any(costs.values()):
        print_line("; ".join(f"{what} about {size(count)}" for what, count in costs.items() if count))
    for warning in preview.warnings:
        print_line(warning, "yellow")
    for section in preview.sections:
        print_table(section.title, section.header, section.lines)


def print_measures(
    before: verbs.Measures, after: verbs.Measures, title: str, own: Mapping[str, tuple[int, int]] | None = None
) -> None:
    """Print the sizes of two versions side by side, and a verb's own measures beneath."""
    own_lines = [(name, number(was), number(became)) for name, (was, became) in (own or {}).items()]
    print_table(title, ["", "before>", "after>"], [*_sizes(before, after), *own_lines])


def _sizes(before: verbs.Measures, after: verbs.Measures) -> list[tuple[str, str, str]]:
    return [
        ("rows", number(before.rows), number(after.rows)),
        ("deleted rows still stored", number(before.deleted_rows), number(after.deleted_rows)),
        ("fragments", number(before.fragments), number(after.fragments)),
        ("bytes of data files", size(before.size_bytes), size(after.size_bytes)),
    ]
