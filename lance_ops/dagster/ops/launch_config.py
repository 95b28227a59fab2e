"""What the launchpad asks for: the options of a verb, made a Dagster configuration once for all datasets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import dagster as dg
from pydantic import Field, create_model

from lance_ops.verbs import DeclaredOption, Verb, options_given, options_of

__all__ = ["Launch", "launch", "launch_class", "launch_plan"]


class Launch(dg.Config):
    """What every verb's launch can say beside the verb's own options."""

    dry_run: bool = Field(default=True, description="Preview, store the plan with this run, and change nothing.")
    execute: str | None = Field(
        default=None, description="The id of a preview's run: execute its plan. Leave the other options alone."
    )

    @property
    def given(self) -> dict[str, Any]:
        """The verb's options that the launch gives; for the others, the declaration or the verb decides.

        A choice that is given counts even if it is the verb's default, because the declaration may have another one.
        """
        fields = type(self).model_fields
        given = self.model_dump(exclude={"dry_run", "execute"}, exclude_none=True)
        return {name: value for name, value in given.items() if value != fields[name].default}


_UNSET = "unset"
"""The choice of a launch that leaves a choice to the declaration, or else to the verb."""


@cache
def launch_class(verb: type[Verb]) -> type[Launch]:
    """Return the configuration of a verb's op.

    An option that is left out is None, or `unset` if it is a choice, whatever the verb's default is.
    """
    fields: dict[str, Any] = {name: _field(option) for name, option in options_of(verb).items()}
    return create_model(f"Launch{verb.__name__}", __base__=Launch, __doc__=verb.summary, **fields)


def launch(verb: Verb, *, dry_run: bool = True) -> Launch:
    """Return the configuration that asks for a verb with its options, for callers in Python."""
    given = options_given(verb).items()
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given}
    return launch_class(type(verb)).model_validate({"dry_run": dry_run, **plain})


def launch_plan(verb: type[Verb], run_id: str) -> Launch:
    """Return the configuration that executes the plan of a preview's run."""
    return launch_class(verb)(execute=run_id)


def _field(option: DeclaredOption) -> tuple[Any, Any]:
    described = option.described
    default = "" if option.default in (None, "", (), {}) else f" Default: {option.default}."
    if option.choices:  # Dagster has no optional choice
        return Literal[(_UNSET, *option.choices)], Field(default=_UNSET, description=described.description + default)
    (kind,) = option.kinds
    plain = _PLAIN.get(kind, kind)
    limited = Field(
        default=None, description=described.description + default, ge=described.at_least, le=described.at_most
    )
    return plain | None, limited


_PLAIN: Mapping[Any, Any] = {
    tuple[str, ...]: list[str],
    tuple[int, ...]: list[int],
    Mapping[str, str]: dict[str, str],
}
