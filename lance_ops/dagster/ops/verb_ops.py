"""Build the op of a verb that has a plan: preview it, store the plan with the run, and execute it later.

A run without further words previews the verb and logs its plan as an observation of the head. A later run with
`execute: <id of that run>` executes the stored verb and options; `WhenMoved` says
on which version. `dry_run: false` plans and executes at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import dagster as dg

from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops import observed_plans
from lance_ops.dagster.ops.landed_batches import raw_storage_options
from lance_ops.dagster.ops.launch_config import Launch, launch_class
from lance_ops.dagster.ops.launchpad import launchpad_link
from lance_ops.dagster.ops.outcomes import record_outcome
from lance_ops.dagster.ops.policies import with_policy
from lance_ops.dagster.ops.preview_page import comparison, preview_page, sections_page
from lance_ops.dagster.ops.table_ops import Work, table_op
from lance_ops.verbs import Executed, Verb, do_now, execute_plan, make_plan, make_verb

__all__ = ["verb_op"]


def verb_op(config: DatasetConfig, verb: type[Verb]) -> dg.OpDefinition:
    """Return the op of a verb on a dataset. Its configuration is made of the options that the verb declares."""

    def run(work: Work, asked: Launch) -> Mapping[str, Any]:
        if asked.execute is not None:
            if asked.given:
                raise InvalidInput("execute names a plan, which has options of its own: leave the other options alone")
            plan = observed_plans.plan_of_run(work.context, config, verb.name, asked.execute)
            return _done(work, plan.verb, partial(execute_plan, plan), plan.to_dict())
        chosen = make_verb(verb.name, with_policy(work, verb.name, asked.given))
        if not asked.dry_run:
            return _done(work, chosen, partial(do_now, chosen))
        return _previewed(work, chosen)

    return table_op(
        config,
        verb.name,
        verb.summary,
        run,
        launch_class(verb),
        opens_damaged=verb.opens_damaged,
        creates_table=verb.creates_table,
        only_reads=verb.only_reads,
        carries_token=verb.carries_token,
    )


def _previewed(work: Work, verb: Verb) -> dict[str, Any]:
    raw_options = raw_storage_options(work.config)
    plan, preview = make_plan(verb, work.target, work.runner, raw_storage_options=raw_options)
    past = observed_plans.past_seconds(work.context.instance, work.config, verb.name)
    run_id = work.context.run_id
    link = launchpad_link(work.context, {"execute": run_id})
    page = dg.MetadataValue.md(preview_page(plan, preview, past, run_id, link))
    metadata: dict[str, Any] = {
        "lance/dry_run": True,
        "lance/plan": page,
        "lance/read_version": plan.read_version,
        **{f"lance/{name}": value for name, value in preview.facts.items()},
    }
    observed_plans.log_plan(work.context, work.config, plan, metadata)
    return metadata


def _done(
    work: Work, verb: Verb, do: Callable[..., Executed], plan: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    begun = time.monotonic()
    done = do(
        work.target,
        work.runner,
        raw_storage_options=raw_storage_options(work.config),
        token=work.token,
        attempted_since=work.attempted_since,
    )
    metadata: dict[str, Any] = {
        "lance/dry_run": False,
        "lance/before_after": dg.MetadataValue.md(comparison(done.before, done.after, done.own_measures)),
        **{f"lance/{name}": value for name, value in done.facts.items()},
        **{f"lance/{name}": dg.MetadataValue.path(path) for name, path in done.links.items()},
    }
    if done.sections:
        metadata["lance/outcome"] = dg.MetadataValue.md(sections_page(done.sections))
    if plan is not None:
        metadata["lance/read_version"] = plan["read_version"]
    observed_plans.log_done(work.context, work.config, verb.name, time.monotonic() - begun, metadata)
    return record_outcome(work, verb, done, metadata)
