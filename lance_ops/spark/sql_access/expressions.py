"""Parse expressions of Spark's SQL, to see which columns and conditions are in them.

What goes to Spark is a piece of the text itself. What sqlglot writes from a tree may mean something else: it leaves out
arguments that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from lance_ops.core.errors import InvalidInput
from lance_ops.spark.sql_access.dialect import parse
from lance_ops.spark.sql_access.words import Reader, clocks_without_brackets, split_words

__all__ = [
    "CLOCK_OR_COLUMN",
    "conjunct_texts",
    "conjuncts",
    "names_in",
    "parse_expression",
    "sides_of_equality",
    "unused_name",
    "with_qualifiers",
]

_BEFORE_EXPRESSION = "SELECT "

CLOCK_OR_COLUMN = (exp.CurrentDate, exp.CurrentTimestamp)
"""What sqlglot makes of `current_date` and `current_timestamp`, with and without brackets.

Without brackets Spark takes such a word for a column, where one of that name is there. Of the other words of the clock
without brackets sqlglot makes columns.
"""


def parse_expression(text: str) -> exp.Expr:
    """Return the tree of one expression; raise `InvalidInput` naming the place where it does not parse."""
    try:
        tree = parse(f"{_BEFORE_EXPRESSION}{text}")
    except InvalidInput as error:
        raise InvalidInput(f"SQL on a Lance table: {text!r} does not parse: {error}") from error
    if isinstance(tree, exp.Block):
        raise InvalidInput(f"SQL on a Lance table: {text!r} is several statements: execute each by a call of its own")
    used = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or used - {"expressions"} or len(tree.expressions) != 1:
        raise InvalidInput(f"SQL on a Lance table: {text!r} is not one expression")
    found = tree.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def names_in(text: str) -> set[str]:
    """Return the names in an expression that may be those of columns, and words as `current_date` that may be."""
    columns = parse_expression(text).find_all(exp.Column)
    return {part.name for column in columns for part in column.parts} | {*clocks_without_brackets(split_words(text))}


def with_qualifiers(text: str, qualifier: Callable[[exp.Column], str | None]) -> str:
    """Return the text of an expression with what `qualifier` returns for a column, and a dot, before this column.

    Nothing comes before a column for which it returns None.
    """
    found = {
        column.parts[0].meta["start"] - len(_BEFORE_EXPRESSION): given
        for column in parse_expression(text).find_all(exp.Column)
        if (given := qualifier(column)) is not None
    }
    for start in sorted(found, reverse=True):
        text = f"{text[:start]}{found[start]}.{text[start:]}"
    return text


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins, in brackets or not."""
    todo = [tree]  # a statement that a program wrote may have thousands
    while todo:
        part = todo.pop().unnest()
        if isinstance(part, exp.And):
            todo += [part.expression, part.this]
        else:
            yield part


def conjunct_texts(text: str) -> list[str]:
    """Return the conditions that AND joins, as the text has them; the whole text if its words leave a doubt."""
    found = list(_conjunct_texts(text))
    try:
        trees = [parse_expression(part).unnest() for part in found]
    except InvalidInput:  # as of BETWEEN … AND …
        return [text]
    return found if trees == list(conjuncts(parse_expression(text))) else [text]


def _conjunct_texts(text: str) -> Iterator[str]:
    text = _without_brackets(text)
    reader, parts = Reader(text), list[str]()
    while not parts or reader.accept("AND"):
        parts.append(reader.until("AND", what="a condition"))
    if len(parts) == 1:
        yield text
    else:
        for part in parts:
            yield from _conjunct_texts(part)


def sides_of_equality(text: str) -> tuple[str, str] | None:
    """Return the texts on both sides of `=`; None for another condition, or if its words leave a doubt."""
    tree = parse_expression(text).unnest()
    if not isinstance(tree, exp.EQ):
        return None
    reader = Reader(_without_brackets(text))
    try:
        left = reader.until("=", what="an expression")
        reader.expect("=")
        reader.accept("=")
        right = reader.rest("an expression")
        trees = [parse_expression(side).unnest() for side in (left, right)]
    except InvalidInput:  # as of `a <= b = c`
        return None
    return (left, right) if trees == [tree.this.unnest(), tree.expression.unnest()] else None


def _without_brackets(text: str) -> str:
    """Return an expression without the brackets around it."""
    reader = Reader(text)
    while reader.accept("("):
        inner = reader.until(what="an expression")
        if not (reader.accept(")") and reader.ended):
            break
        text, reader = inner, Reader(inner)
    return text


def unused_name(names: Sequence[str]) -> str:
    """Return a name that no column has, in any case."""
    longest = max(map(len, names), default=0)
    return "_" * (longest + 1)
