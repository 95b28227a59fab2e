"""Write the pages of the site that follow from the code: verbs, commands, components, and what Spark's room exports.

`python -m tests.reference_pages` writes them after a change of options, attributes or commands.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from lance_ops.cli import app
from lance_ops.cli.examples import EXAMPLES
from lance_ops.verbs import ALL_VERBS, Verb, options_of

__all__ = ["DOCS", "generated_pages"]

DOCS = Path(__file__).parents[1] / "docs"

_GUIDES = {
    "ingest_files": "../ingest.md",
    "delete_rows": "../jobs/change.md",
    "delete_duplicates": "../jobs/change.md",
    "update": "../jobs/change.md",
    "upsert": "../jobs/change.md",
    "add_columns": "../jobs/change.md",
    "erase": "../jobs/erase.md",
    "restore": "../jobs/undo.md",
    "compact": "../jobs/healthy.md",
    "reindex": "../jobs/healthy.md",
    "drop_index": "../jobs/healthy.md",
    "cleanup": "../jobs/healthy.md",
    "verify": "../jobs/repair.md",
    "repair": "../jobs/repair.md",
    "migrate": "../jobs/healthy.md",
    "tag": "../jobs/undo.md",
    "branch": "../jobs/undo.md",
    "clone": "../jobs/undo.md",
}
"""The guide of each verb, relative to `docs/verbs`."""

_COMPONENTS = ("LanceDatasetComponent", "LanceFleetComponent", "LanceResourcesComponent")
_RESOURCES = ("LanceIOManager", "LanceDatasetResource", "CodeLocation")


def generated_pages() -> dict[str, str]:
    """Return the text of each generated page by its path in `docs/`."""
    pages = {f"verbs/{verb.name}.md": _verb_page(verb) for verb in ALL_VERBS}
    return pages | {
        "reference/verbs.md": _verbs_page(),
        "reference/commands.md": _commands_page(),
        "reference/dagster.md": _dagster_page(),
        "reference/spark.md": _exports_page("Spark", "lance_ops.spark", _exports("lance_ops.spark")),
    }


def _verbs_page() -> str:
    rows = [(f"[`{verb.name}`](../verbs/{verb.name}.md)", verb.summary, f"`{verb.__name__}`") for verb in ALL_VERBS]
    exported = _exports("lance_ops.verbs", ["make_plan", "execute_plan", "do_now", "StoredPlan", "Preview", "Executed"])
    life = (
        "Each verb is a Python class, a job of Dagster and a command. [Verbs](../dagster.md#verbs) tells how they live."
    )
    return _page("Verbs", life, _table(("verb", "what it does", "in Python"), rows), *exported)


def _verb_page(verb: type[Verb]) -> str:
    ways = [
        ("Python", f"`lance_ops.verbs.{verb.__name__}`"),
        ("Dagster", f"the job `<dataset>_{verb.name}`"),
        (
            "command line",
            f"`{verb.command}` of `lance-ops`; in two steps, `plan` with the name `{verb.name}`, and `execute`",
        ),
    ]
    options = [
        (
            f"`{option.name}`",
            option.kind_name,
            "required" if option.is_required else _default(option.default),
            option.described.description,
        )
        for option in options_of(verb).values()
    ]
    examples = [EXAMPLES[verb.command]] if verb.command in EXAMPLES else []
    return _page(
        verb.name,
        verb.summary,
        _table(("where", "how it is called"), ways),
        *(f"    {example}" for example in examples),
        f"It is shown at work in [its guide]({_GUIDES[verb.name]}). "
        "[Verbs](../dagster.md#verbs) states when a stored plan is refused.",
        "## Options",
        _table(("option", "type", "default", "meaning"), options),
    )


def _commands_page() -> str:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    parts = ["`lance-ops --help` lists the commands, and `--help` after a command prints what stands here."]
    for name, command in _commands(group):
        about = inspect.cleandoc(command.help or "").partition("Example: ")[0].strip()
        rows = [
            (f"`{', '.join([*each.opts, *each.secondary_opts])}`", getattr(each, "help", None) or "")
            for each in command.params
            if each.name != "help"
        ]
        parts += [f"## {name}", about, f"    {EXAMPLES[name]}", _table(("argument or option", "meaning"), rows)]
    return _page("Commands", *parts)


def _commands(group: TyperGroup, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _dagster_page() -> str:
    dagster = import_module("lance_ops.dagster")
    parts = [
        "The attributes of the components, as a `defs.yaml` holds them. `lance-ops schema` prints them for editors.",
        "A template of Dagster, such as `{{ env.NAME }}`, may stand for any value.",
    ]
    models: dict[str, Mapping[str, Any]] = {}
    for name in _COMPONENTS:
        component = getattr(dagster, name)
        schema = component.get_model_cls().model_json_schema()
        models |= schema.get("$defs", {})
        parts += [f"## {name}", inspect.getdoc(component) or "", _attributes(schema, models)]
    for name, model in sorted(models.items()):
        if "properties" in model:
            parts += [f"## {name}", inspect.cleandoc(model.get("description", "")), _attributes(model, models)]
    return _page("Dagster", *parts, *_exports("lance_ops.dagster", _RESOURCES))


def _attributes(model: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    required = model.get("required", ())
    rows = [
        (
            f"`{name}`",
            _kind(attribute, models),
            "required" if name in required else _default(attribute.get("default")),
            attribute.get("description", ""),
        )
        for name, attribute in model["properties"].items()
    ]
    return _table(("attribute", "type", "default", "meaning"), rows)


def _kind(schema: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """Return the type of a JSON schema for people; models are links to their sections.

    A schema with `if` is that of a value for which a template may stand.
    """
    match schema:
        case {"if": _, "else": Mapping() as value}:
            return _kind(value, models)
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            if "properties" not in models[name]:
                return _kind(models[name], models)
            return f"[{name}](#{name.lower()})"
        case {"anyOf": choices} | {"oneOf": choices}:
            return " or ".join(dict.fromkeys(_kind(each, models) for each in choices if each.get("type") != "null"))
        case {"allOf": [only]}:
            return _kind(only, models)
        case {"enum": choices}:
            return ", ".join(f"`{each}`" for each in choices)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "array", "items": Mapping() as item}:
            return f"list of {_kind(item, models)}"
        case {"type": "object", "additionalProperties": Mapping() as value}:
            return f"mapping to {_kind(value, models)}"
    return str(schema.get("type", "any"))


def _exports_page(title: str, module: str, exported: Iterable[str]) -> str:
    return _page(title, f"`import {module}` has these names.", *exported)


def _exports(module: str, names: Iterable[str] = ()) -> list[str]:
    """Return the lines by which mkdocstrings shows what a module exports."""
    door = import_module(module)
    found = [getattr(door, name) for name in names or door.__all__]
    return [f"::: {each.__module__}.{each.__qualname__}" for each in found]


def _default(value: object) -> str:
    match value:
        case None | "" | () | [] | {}:
            return ""
        case bool():
            return str(value).lower()
        case dict():
            return "see there"
    return f"`{value}`"


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    listed = [heads, tuple("---" for _ in heads), *rows]
    if len(listed) == 2:
        return "It has none."
    return "\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in listed)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the pages."""
    for name, text in generated_pages().items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
