"""Build the op of a verb that has a plan: preview it, store the plan with the run, and execute that very plan.

A run without further words previews the verb and logs its plan as an observation of the head. A later run with
`execute: <id of that run>` executes this very plan. `dry_run: false` plans and executes at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import dagster as dg
from pydantic import Field

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops import observed_plans
from lance_ops.dagster.ops.preview_page import comparison, preview_page
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.verbs import Executed, Verb, do_now, execute_plan, make_plan

__all__ = ["Planned", "planned_op"]


class Planned(dg.Config):
    """What every verb's launch can say beside the verb's own options."""

    dry_run: bool = Field(default=True, description="Preview, store the plan with this run, and change nothing.")
    execute: str | None = Field(
        default=None, description="The id of a preview's run: execute its plan. Leave the other options alone."
    )


Launch = TypeVar("Launch", bound=Planned)


def planned_op(
    config: DatasetConfig,
    launch: type[Launch],
    verb: type[Verb],
    description: str,
    to_verb: Callable[[Launch], Verb] | None = None,
) -> dg.OpDefinition:
    """Return the op of a verb; `to_verb` turns the launch's configuration into it, by default field by field."""

    def work(work: Work, asked: Launch) -> dict[str, Any]:
        if asked.execute is not None:
            given = asked.model_dump(exclude={"execute", "dry_run"})
            if given != _defaults(launch, given):
                raise InvalidInput("execute names a plan, which has options of its own: leave the other options alone")
            plan = observed_plans.plan_of_run(work.context, config, verb.name, asked.execute)
            return _done(work, plan.verb, lambda data: execute_plan(plan, data, work.runner), plan.to_dict())
        chosen = _verb_of(asked, verb) if to_verb is None else to_verb(asked)
        if not asked.dry_run:
            return _done(work, chosen, lambda data: do_now(chosen, data, work.runner))
        return _previewed(work, chosen)

    return verb_op(config, verb.name, description, work, launch)


def _verb_of(asked: Planned, verb: type[Verb]) -> Verb:
    options = asked.model_dump(exclude={"execute", "dry_run"})
    return verb(**{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()})


def _defaults(launch: type[Planned], given: dict[str, Any]) -> dict[str, Any]:
    fields = launch.model_fields
    return {name: fields[name].get_default(call_default_factory=True) for name in given}


def _previewed(work: Work, verb: Verb) -> dict[str, Any]:
    plan, preview = make_plan(verb, LanceDataset.of(work.snapshot), work.runner)
    past = observed_plans.past_seconds(work.context.instance, work.config, verb.name)
    page = dg.MetadataValue.md(preview_page(preview, past, work.context.run_id))
    metadata: dict[str, Any] = {
        "lance/dry_run": True,
        "lance/plan": page,
        "lance/read_version": plan.read_version,
        **{f"lance/{name}": value for name, value in preview.facts.items()},
    }
    observed_plans.log_plan(work.context, work.config, plan, metadata)
    return metadata


def _done(
    work: Work, verb: Verb, do: Callable[[LanceDataset], Executed], plan: dict[str, Any] | None = None
) -> dict[str, Any]:
    begun = time.monotonic()
    done = do(LanceDataset.of(work.snapshot))
    metadata: dict[str, Any] = {
        "lance/dry_run": False,
        "lance/before_after": dg.MetadataValue.md(comparison(done.before, done.after)),
        **{f"lance/{name}": value for name, value in done.facts.items()},
        **{f"lance/{name}": dg.MetadataValue.path(path) for name, path in done.links.items()},
    }
    if plan is not None:
        metadata["lance/read_version"] = plan["read_version"]
    observed_plans.log_done(work.context, work.config, verb.name, time.monotonic() - begun, metadata)
    return metadata
