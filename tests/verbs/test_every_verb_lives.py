"""Everything that verbs do lives one life: planned, previewed, stored, executed as it is, with sizes before and after.

The same examples go through Python, through `plan` and `execute`, and through the verb's own command; through Dagster
they go in `tests/dagster/test_every_verb.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from lance_ops.api import dataset
from lance_ops.verbs import ALL_VERBS, Clone, Measures, Repair, StoredPlan, Verb, Verify, make_plan, options_of
from tests.cli.calls import answer
from tests.verbs.examples import EXAMPLES, Example
from tests.verbs.living import expected_after, found_after, live

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)


UNCHANGED = {
    Verify: "it only reads",
    Repair: "the example is whole",
    Clone: "it writes another table",
}
"""By verb: why its example changes nothing in the table."""
SAME_NUMBERS = {"move a tag", "rebuild indices"}
"""What replaces a tag or an index by another one of its kind."""


def test_every_verb_has_an_example(tmp_path: Path) -> None:
    assert {type(example.make(str(tmp_path))) for example in EXAMPLES} == set(ALL_VERBS)


@each_example
def test_a_verb_is_previewed_stored_and_executed(example: Example, dataset_uri: str, tmp_path: Path) -> None:
    data = example.begin(dataset_uri, tmp_path)
    before, version = Measures.of(data), data.version
    preview, done = live(example.make(str(tmp_path)), data)
    assert preview.summary and preview.before == before == done.before
    assert (done.read_version, done.version) == (version, version + example.num_commits)
    assert dataset(dataset_uri).version == done.version, "it reports the version that it made"
    assert done.after.rows == example.num_rows
    for measure in ("rows", "deleted_rows", "fragments") if preview.after else ():
        assert getattr(preview.after, measure) == getattr(done.after, measure), f"the estimate of {measure}"
    assert done.facts and not done.problem
    verb, own = type(example.make(str(tmp_path))), done.own_measures
    assert list(own) == [each.name for each in verb.own_measures]
    changed = done.before != done.after or any(was != became for was, became in own.values())
    assert changed or verb in UNCHANGED or example.title in SAME_NUMBERS, "before and after show what the verb changed"


def words(verb: Verb) -> list[str]:
    """Return the options that differ from their defaults, as a command line gives them."""
    found = []
    for name, option in options_of(type(verb)).items():
        value = getattr(verb, name)
        if value == option.default:
            continue
        if isinstance(value, Mapping):
            found += [f"{name}={key}={text}" for key, text in value.items()]
        else:
            found += [f"{name}={each}" for each in (value if isinstance(value, tuple) else (value,))]
    return found


@each_example
def test_the_command_plan_stores_it_as_it_is_given_and_execute_does_it(
    example: Example, dataset_uri: str, tmp_path: Path
) -> None:
    data, file = example.begin(dataset_uri, tmp_path), tmp_path / "plan.json"
    verb, version = example.make(str(tmp_path)), data.version
    planned = answer("plan", dataset_uri, verb.name, *words(verb), "--save", str(file))
    stored = StoredPlan.from_json(file.read_text())
    assert (stored.verb, stored.read_version) == (verb, version) and planned["plan"] == stored.to_dict()
    assert dataset(dataset_uri).version == version, "a plan changes nothing"
    done = answer("execute", dataset_uri, str(file))
    assert (done["read_version"], done["version"]) == (version, version + example.num_commits)
    assert done["before"] == asdict(Measures.of(data)) and done["after"]["rows"] == example.num_rows
    assert found_after(dataset_uri, tmp_path) == expected_after(example)


@each_example
def test_its_own_command_shows_the_same_preview_and_does_the_same(
    example: Example, dataset_uri: str, tmp_path: Path
) -> None:
    data = example.begin(dataset_uri, tmp_path)
    given, version = example.words(dataset_uri, str(tmp_path)), data.version
    _, preview = make_plan(example.make(str(tmp_path)), data)
    shown = answer(*given, "--dry-run")
    assert shown["dry_run"] is True and dataset(dataset_uri).version == version
    if not example.own_preview:
        assert shown["preview"]["summary"] == preview.summary
        assert shown["preview"]["before"] == asdict(preview.before)
    done = answer(*given)
    if example.num_commits:
        assert done["before"] == asdict(preview.before) and done["after"]["rows"] == example.num_rows
    newest = dataset(dataset_uri)
    assert (newest.version, newest.count_rows()) == (version + example.num_commits, example.num_rows)
    assert found_after(dataset_uri, tmp_path) == expected_after(example)
