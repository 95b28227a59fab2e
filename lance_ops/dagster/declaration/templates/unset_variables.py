"""Find the environment variables that a template needs and that are not set.

Dagster renders `env.NAME` as None for a variable that is not set, and so `{{ env.NAME ~ "/trips" }}` as `None/trips`.
A template handles the lack if it gives another value, `{{ env.NAME or "/lake" }}`, or asks for it first,
`{{ env.NAME ~ "/trips" if env.NAME else "/trips" }}`. The conditions `env.NAME is defined` and `env.NAME != ""` do not
ask for it, because both are true for None.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from jinja2 import Environment, TemplateSyntaxError, nodes

__all__ = ["unset_variable"]

_DEFAULT = ("default", "d")
_OPERATORS_ON_NONE = (nodes.Compare, nodes.Operand, nodes.Test, nodes.Not)
"""What asks about a value, and works for None, too."""


def unset_variable(template: str) -> str | None:
    """Return a variable that is not set although the template needs it; None for a template that cannot be parsed."""
    try:
        parsed = Environment(autoescape=False).parse(template)
    except TemplateSyntaxError:  # Dagster tells it with its line
        return None
    return next((name for name in _needed(parsed, frozenset()) if name not in os.environ), None)


def _needed(node: nodes.Node, asked: frozenset[str], *, takes_none: bool = False) -> Iterator[str]:
    """Yield the variables whose lack would reach the rendered value.

    `asked` are those that a condition has asked for already. `takes_none` says that what surrounds the node handles
    None, so that a variable alone may be lacking, but no text that is made of it.
    """
    match node:
        case nodes.Getattr(node=nodes.Name(name="env"), attr=name):
            if not takes_none and name not in asked:
                yield name
        case nodes.Or(left=left, right=right):
            yield from _needed(left, asked, takes_none=True)
            yield from _needed(right, asked, takes_none=takes_none)
        case nodes.And(left=left, right=right):
            yield from _needed(left, asked, takes_none=takes_none)
            yield from _needed(right, asked | _named(left), takes_none=takes_none)
        case nodes.CondExpr(test=test, expr1=then, expr2=otherwise):
            yield from _needed(test, asked, takes_none=True)
            for branch in filter(None, (then, otherwise)):
                yield from _needed(branch, asked | _named(test), takes_none=takes_none)
        case nodes.If(test=test):
            yield from _needed(test, asked, takes_none=True)
            for child in node.iter_child_nodes(exclude=("test",)):
                yield from _needed(child, asked | _named(test))
        case nodes.Filter(name=filter_name, node=nodes.Node() as value) if filter_name in _DEFAULT:
            yield from _needed(value, asked, takes_none=_replaces_none(node))
            for child in node.iter_child_nodes(exclude=("node",)):
                yield from _needed(child, asked, takes_none=takes_none)
        case _:
            for child in node.iter_child_nodes():
                yield from _needed(child, asked, takes_none=isinstance(node, _OPERATORS_ON_NONE))


def _replaces_none(default: nodes.Filter) -> bool:
    """Return whether a filter `default` replaces None: only with its second argument, `boolean`, does it do so."""
    given = [*default.args[1:2], *(each.value for each in default.kwargs if each.key == "boolean")]
    return any(not isinstance(each, nodes.Const) or bool(each.value) for each in given)


def _named(condition: nodes.Node) -> frozenset[str]:
    """Return the variables whose lack a condition asks for."""
    if _takes_none_for_value(condition):
        return frozenset()
    match condition:
        case nodes.Getattr(node=nodes.Name(name="env"), attr=name):
            return frozenset({name})
        case _:
            return frozenset().union(*map(_named, condition.iter_child_nodes()))


def _takes_none_for_value(condition: nodes.Node) -> bool:
    """Return whether a condition is the same for None as for a value: `is defined`, or `!=` with a constant."""
    match condition:
        case nodes.Test(name="defined" | "undefined"):
            return True
        case nodes.Compare(expr=left, ops=[nodes.Operand(op="ne", expr=right)]):
            return any(isinstance(each, nodes.Const) and each.value is not None for each in (left, right))
        case _:
            return False
