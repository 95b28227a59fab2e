"""Every verb has each of its doors: Python function, op, job, launchpad, commands, plan, and sizes before and after."""

from __future__ import annotations

import inspect
from pathlib import Path

import dagster as dg
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from lance_ops import verbs
from lance_ops.cli import app
from lance_ops.dagster.declaration import ComponentAttributes, DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.fleet import FleetConfig, build_fleet_definitions
from lance_ops.dagster.jobs import build_jobs
from lance_ops.dagster.ops import Launch, launch, launch_class, launch_plan
from lance_ops.verbs import ALL_VERBS, Verb, WhenMoved, make_plan, options_of
from tests.dagster.deployment import Deploy, output_metadata
from tests.verbs.examples import EXAMPLES, Example
from tests.verbs.living import expected_after, found_after

pytestmark = pytest.mark.dagster

DOCS = Path(__file__).parents[2] / "docs"
WHEN_MOVED_TITLE = "when the table has newer versions than the plan"
TOLD_WHEN_MOVED = {
    WhenMoved.JUDGED: "The plan is executed on its own version.",
    WhenMoved.COMPARED: "The plan is executed on the newest version if ",
    WhenMoved.REFUSED: "The plan is refused",
    WhenMoved.BOUNDED: "The plan is executed within what the preview showed.",
    WhenMoved.REPLANNED: "The plan is made again on the newest version",
}
"""How the page of verbs tells what becomes of a plan."""


SPELLED = {
    "ingest_files": {"table_schema": "schema"}
    | {name: name[:-1] for name in ("null_values", "date_formats", "timestamp_formats")},
    "delete_rows": {"key_files": "keys"},
    "update": {"predicate": "where"},
    "upsert": {"matched": "delete_matched"},
    "erase": {"key_files": "keys"},
    "restore": {"tag": "version"},
    "compact": {"cluster_order": "z_order", "excluded_fragment_ids": "exclude_fragment"},
    "reindex": {"indices": "index"},
    "drop_index": {"index": "drop"},
    "cleanup": {"older_than_days": "older_than"},
    "verify": {"level": "quick"},
    "repair": {"copy_uri": "copy"},
    "tag": {"action": "name"},  # the group has a command for each action
    "branch": {"tag": "version", "action": "name"},
    "clone": {"tag": "version"},
}
"""The parameter of a verb's own command for an option, where it has neither the option's name nor its description."""

ONLY_IN_PLANS = {
    "ingest_files": {"batches", "only", "beneath", "columns", "bad", "valid_to", "current", "limits", "isolated"},
    "upsert": {"use_index", "write_mode"},
    "cleanup": {"keep_branch_starts"},
    "repair": {"level"},
}
"""Options that `lance-ops plan` has, and the verb's own command has not: of landing folders, and for rare needs."""


OF_EACH_VERB = {type(example.make("")): example for example in reversed(EXAMPLES)}
"""The first example of each verb."""

COMMANDS_OF_JOBS = {
    "a_checks": ("health",),
    "a_maintenance": ("health", "compact", "reindex", "cleanup"),
    "lake_maintenance": ("fleet",),
}
"""The commands that do what a job does, if none has the job's name. The job of a verb has the verb's command."""


@pytest.fixture(scope="module")
def jobs() -> dict[str, dg.JobDefinition]:
    """The jobs of ops of a dataset with a landing folder."""
    declared = DatasetConfig.model_validate({"name": "a", "uri": "x", "raw": {"uri": "y"}})
    return {job.name: job for job in build_jobs(declared) if isinstance(job, dg.JobDefinition)}


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.name)
class TestEveryVerb:
    def test_is_a_class_of_the_room_with_options_that_are_described(self, verb: type[Verb]) -> None:
        assert getattr(verbs, verb.__name__) is verb and verb.__name__ in verbs.__all__
        assert verb.summary.endswith(".") and inspect.getdoc(verb)
        assert all(option.described.description.endswith(".") for option in options_of(verb).values())

    def test_says_what_it_would_do_and_does_it(self, verb: type[Verb]) -> None:
        assert not inspect.isabstract(verb)
        assert all(inspect.getdoc(getattr(verb, method)) for method in ("preview", "execute"))

    def test_has_a_job_of_its_own_op_that_is_dry_and_executes_a_stored_plan(
        self, verb: type[Verb], jobs: dict[str, dg.JobDefinition]
    ) -> None:
        (op,) = jobs[f"a_{verb.name}"].graph.node_defs
        assert isinstance(op, dg.OpDefinition)
        assert op.name == f"a__{verb.name}" and op.description == verb.summary
        assert (op.pool is None) == verb.only_reads, "only a verb that writes waits for other writers"
        config = op.config_schema.config_type
        assert isinstance(config, dg.Shape)
        assert set(config.fields) == {"dry_run", "execute", *options_of(verb)}
        assert issubclass(launch_class(verb), Launch) and launch_class(verb)().dry_run

    def test_has_a_command_with_a_dry_run(self, verb: type[Verb]) -> None:
        group = get_command(app)
        assert isinstance(group, TyperGroup)
        name, *options = verb.command.split()
        found = group.commands[name]
        changing = (
            [each for title, each in found.commands.items() if title != "list"]
            if isinstance(found, TyperGroup)
            else [found]
        )
        for command in changing:
            offered = {option for parameter in command.params for option in parameter.opts}
            assert {"--dry-run", "--json", *options[:1]} <= offered, command.name

    def test_has_a_command_with_its_options(self, verb: type[Verb]) -> None:
        group = get_command(app)
        assert isinstance(group, TyperGroup)
        found = group.commands[verb.command.split()[0]]
        commands = found.commands.values() if isinstance(found, TyperGroup) else [found]
        offered = {str(each.name): str(getattr(each, "help", "")) for command in commands for each in command.params}
        spelled, left = SPELLED.get(verb.name, {}), set()
        assert set(spelled.values()) <= offered.keys()
        for name, option in options_of(verb).items():
            described = option.described.description
            if not ({name, spelled.get(name)} & offered.keys() or any(described in text for text in offered.values())):
                left.add(name)
        assert left == ONLY_IN_PLANS.get(verb.name, set())

    def test_stands_on_the_page_of_verbs_with_what_becomes_of_its_plans(self, verb: type[Verb]) -> None:
        _, _, after = (DOCS / "dagster.md").read_text().partition(f"| verbs | {WHEN_MOVED_TITLE} |\n")
        rows = [line.strip("|").split("|") for line in after.partition("\n\n")[0].splitlines()]
        (told,) = (told for names, told in rows if f"`{verb.name}`" in names)
        assert told.strip().startswith(TOLD_WHEN_MOVED[verb.when_moved])


def test_every_job_of_a_dataset_and_of_a_fleet_has_a_command() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    declared = {"name": "a", "uri": "x", "raw": {"uri": "y"}, "maintenance": {"upkeep": {}}}
    dataset = build_definitions(ComponentAttributes.model_validate(declared))
    fleet = build_fleet_definitions(FleetConfig(name="lake", root="z"))
    found = dg.Definitions.merge(dataset, fleet).get_repository_def().job_names
    names = {name for name in found if name.startswith(("a_", "lake_"))}
    assert {*COMMANDS_OF_JOBS, "a_ingest", "a_upkeep", *(f"a_{verb.name}" for verb in ALL_VERBS)} <= names
    of_verbs = {f"a_{verb.name}": (verb.command.split()[0],) for verb in ALL_VERBS}
    for name in names:
        own_name = name.removeprefix("a_").replace("_", "-")
        commands = COMMANDS_OF_JOBS.get(name) or of_verbs.get(name, (own_name,))
        assert set(commands) <= group.commands.keys(), f"no command does what the job {name} does"


@pytest.mark.parametrize("example", OF_EACH_VERB.values(), ids=lambda example: example.title)
def test_a_launch_previews_and_another_one_executes_the_stored_plan(
    example: Example, deploy: Deploy, tmp_path: Path
) -> None:
    deployment = deploy(indices=[])
    data, verb = example.begin(deployment.config.uri, tmp_path), example.make(str(tmp_path))
    _, expected = make_plan(verb, data)
    preview = deployment.run(verb.name, launch(verb))
    page = output_metadata(preview)["lance/plan"]
    assert expected.summary[1:] in page
    assert (f"`execute: {preview.run_id}`" in page) is not expected.does_nothing
    assert deployment.data.version == data.version, "a preview changes nothing"
    done = output_metadata(deployment.run(verb.name, launch_plan(type(verb), preview.run_id)))
    assert f"| rows | {expected.before.rows} | {example.num_rows} |" in done["lance/before_after"]
    newest = deployment.data
    assert (newest.version, newest.count_rows()) == (data.version + example.num_commits, example.num_rows)
    assert found_after(newest.uri, tmp_path) == expected_after(example)
