"""Commands for every verb: `plan` previews one, and may store its plan in a file; `execute` executes it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    FileOptions,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    open_target,
    options_to_look,
    runner,
    storage_options,
)
from lance_ops.cli.outcomes import print_executed, print_preview
from lance_ops.cli.output import print_json, print_line, print_table

__all__ = ["execute", "list_verbs", "plan"]


def plan(
    uri: Uri,
    verb: Annotated[
        str,
        typer.Argument(
            metavar="VERB",
            help="Such as delete_rows; `lance-ops verbs` lists them.",
            autocompletion=_names_of_verbs,
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OPTION=VALUE…]",
            help="The verb's options; one of several values is repeated.",
            autocompletion=_names_of_options,
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Store the plan here, for `execute`.")] = None,
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    file_option: FileOptions = None,
    as_json: Json = False,
) -> None:
    """Preview what a verb would do to the newest version; with --save, store the plan. The dataset is not changed."""
    if save is not None and (save.is_dir() or not save.parent.is_dir()):
        wrong = f"{save} is a folder" if save.is_dir() else f"there is no folder {save.parent}"
        raise typer.BadParameter(f"{wrong}: name a file in a folder that exists", param_hint="--save")
    words: dict[str, list[str]] = defaultdict(list)
    for option in options or ():
        name, equals, value = option.partition("=")
        if not equals:
            raise typer.BadParameter(f"{option!r} is not OPTION=VALUE", param_hint="OPTION=VALUE")
        words[name].append(value)
    chosen = verbs.make_verb(verb, verbs.parse_options(verb, words))
    opened = open_target(chosen, uri, options_to_look(uri, storage_option, options_file))
    made, preview = verbs.make_plan(chosen, opened, runner(spark), raw_storage_options=storage_options(file_option))
    if save is not None:
        try:
            save.write_text(made.to_json(), encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"{save}: {error.strerror}", param_hint="--save") from None
    if as_json:
        print_json({"plan": made.to_dict(), "preview": preview})
        return
    print_preview(preview)
    print_line(f"planned on version {made.read_version}. {chosen.when_moved_by_options.sentence}")
    if save is not None:
        print_line(f"stored: lance-ops execute {opened.uri} {save}")


def execute(
    uri: Uri,
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="The file that `plan --save` wrote.")],
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    file_option: FileOptions = None,
    as_json: Json = False,
) -> None:
    """Execute a stored plan, or refuse it with the versions that contradict it.

    Exit with code 1 if it ends with a problem, such as damages that a verification found.
    """
    try:
        stored = verbs.StoredPlan.from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file}: {error}", param_hint="PLAN") from None
    opened = open_target(stored.verb, uri, storage_options(storage_option, options_file))
    done = verbs.execute_plan(stored, opened, runner(spark), raw_storage_options=storage_options(file_option))
    print_executed(f"{stored.verb.name}: {stored.summary}", done, as_json=as_json)


def list_verbs(
    verb: Annotated[
        str | None,
        typer.Argument(metavar="[VERB]", help="The verb whose options to list.", autocompletion=_names_of_verbs),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the verbs that have a plan, or the options of one."""
    if verb is None:
        summaries = {each.name: each.summary for each in verbs.ALL_VERBS}
        if as_json:
            print_json(summaries)
        else:
            known = [(each.name, each.summary, each.command) for each in verbs.ALL_VERBS]
            print_table("verbs", ["verb", "what it does", "command without a stored plan"], known)
        return
    options = verbs.options_of(verbs.verb_named(verb)).values()
    if as_json:
        print_json(
            {
                each.name: {
                    "type": each.kind_name,
                    "description": each.described.description,
                    "required": each.is_required,
                    "default": each.default,
                }
                for each in options
            }
        )
        return
    lines = [(each.name, each.kind_name, _default(each), each.described.description) for each in options]
    print_table(verbs.verb_named(verb).summary, ["option", "type", "default", "meaning"], lines)


def _names_of_verbs() -> list[tuple[str, str]]:
    """Return what a shell offers in place of VERB, each with its explanation."""
    return [(each.name, each.summary) for each in verbs.ALL_VERBS]


def _names_of_options(ctx: typer.Context) -> list[tuple[str, str]]:
    """Return what a shell offers in place of OPTION=VALUE, once the verb is there."""
    chosen = next((each for each in verbs.ALL_VERBS if each.name == ctx.params.get("verb")), None)
    options = {} if chosen is None else verbs.options_of(chosen)
    return [(f"{name}=", each.described.description) for name, each in options.items()]


def _default(option: verbs.DeclaredOption) -> str:
    if option.is_required:
        return "required"
    return "" if option.default in (None, "", (), {}) else str(option.default)
