"""The public names and their arguments change only on purpose."""

from __future__ import annotations

import pytest

from tests.api.public_names import EXTRA_MODULES, GOLDEN, MODULES, describe_public_api

RECORDED = GOLDEN.read_text().splitlines()


def is_of_an_extra(line: str) -> bool:
    return line.startswith(tuple(f"{name}." for name in EXTRA_MODULES))


def test_public_names_and_arguments_are_those_on_record() -> None:
    recorded = [line for line in RECORDED if not is_of_an_extra(line)]
    assert len(recorded) > 400
    assert describe_public_api(*MODULES) == recorded, "see tests/api/public_names.py for a change that is meant"


@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=getattr(pytest.mark, name.rpartition(".")[2])) for name in EXTRA_MODULES],
)
def test_public_names_of_an_extra_are_those_on_record(module: str) -> None:
    recorded = [line for line in RECORDED if line.startswith(f"{module}.")]
    assert recorded
    assert describe_public_api(module) == recorded
