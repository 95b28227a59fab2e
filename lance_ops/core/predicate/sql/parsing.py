"""Translate the SQL text of a filter or an expression into a tree bound to a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_ops.core.arrow import is_text, scalar
from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate.binding import (
    CURRENT_TIME_KEYWORDS,
    Clock,
    ListedValues,
    Name,
    build,
    call,
    either,
    field_of,
    is_listed,
    number_literal,
    resolve,
    returns_current_time,
)
from lance_ops.core.predicate.sql.dialect import LanceDialect
from lance_ops.core.predicate.sql.long_lists import LEAST_ITEMS, TakenOut, take_out_long_lists
from lance_ops.core.predicate.tree import (
    NANOSECONDS,
    ArithmeticOp,
    Column,
    CompareOp,
    Expression,
    Literal,
    Predicate,
    case,
)

__all__ = ["parse_sql", "parse_sql_value"]

_MOST_SHOWN = 1000  # characters of a filter in an error
_MOST_DIGITS = 24  # of a number that an interval or a type holds
_NODES_PER_CHARACTER = 20  # of a filter's text, at most
_MOST_LEVELS = 150  # of nested expressions: a tree is evaluated, printed and pickled by recursion


def parse_sql(text: str, schema: pa.Schema) -> Predicate:
    """Parse one condition; raises `InvalidFilter` naming the place, or `UnsupportedFeature` naming the construct."""
    return build.as_condition(_parse(text, schema, "filter", "condition"))


def parse_sql_value(text: str, schema: pa.Schema) -> Expression:
    """Parse one expression of any type; raises as `parse_sql` does."""
    column = _named_column(text, schema)
    return column or _parse(text, schema, "expression", "value")


def _named_column(text: str, schema: pa.Schema) -> Column | None:
    """Return the column whose name is the whole text, which then needs no quotes."""
    names = [name for name in schema.names if name == text] or [
        name for name in schema.names if name.casefold() == text.casefold()
    ]
    return resolve(schema, [Name(names[0])]) if len(names) == 1 else None


def _parse(text: str, schema: pa.Schema, what: str, holds: str) -> Expression:
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    _check_characters(text, what)
    short = take_out_long_lists(text) if len(text) > LEAST_ITEMS else TakenOut(text, {})
    try:
        statements = [statement for statement in LanceDialect().parse(short.text) if statement is not None]
        if len(statements) != 1:
            raise InvalidFilter(f"{what} {shown!r} holds {len(statements)} {holds}s; one is needed")
        most_nodes = _NODES_PER_CHARACTER * (len(text) + 100)
        return _Translation(schema, short.lists, most_nodes).expression(statements[0])
    except SqlglotError as error:
        raise InvalidFilter(f"{what} {shown!r} does not parse: {_first_error(error)}") from error
    except RecursionError as error:
        raise InvalidFilter(f"the {what} is nested too deeply") from error


def _check_characters(text: str, what: str) -> None:
    """Refuse half a surrogate pair, which is no character and has no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidFilter(f"the {what} has no character at position {error.start}: {text[error.start]!r}") from error


class _Translation:
    """Translates sqlglot's tree. Syntax that is not in the tables below is refused by name."""

    def __init__(self, schema: pa.Schema, lists: Mapping[str, ListedValues], most_nodes: int) -> None:
        self.schema = schema
        self.most_nodes = most_nodes
        self.sizes: dict[int, tuple[Expression, int]] = {}
        self.lists = lists
        self.clock = Clock()
        self.level = 0

    def expression(self, syntax: exp.Expr) -> Expression:
        """Translate one node with all below it; raise `InvalidFilter` for too many levels."""
        self.level += 1
        if self.level > _MOST_LEVELS:
            raise InvalidFilter(f"expressions are nested in more than {_MOST_LEVELS} levels")
        translated = self._translated(syntax)
        if self.size(translated) > self.most_nodes:
            raise InvalidFilter(f"expressions repeat their parts too often: more than {self.most_nodes} nodes")
        self.level -= 1
        return translated

    def size(self, value: Expression) -> int:
        """Return the number of nodes. BETWEEN, IN and <=> use an operand twice, which doubles it at each level."""
        known = self.sizes.get(id(value))
        if known is None:
            children = value.children
            known = value, 1 + sum(map(self.size, children))  # holds the value, so that its id stays its own
            self.sizes[id(value)] = known
        return known[1]

    def _translated(self, syntax: exp.Expr) -> Expression:
        translate = _TRANSLATIONS.get(type(syntax))
        if translate is None:
            raise UnsupportedFeature(f"{syntax.sql() or type(syntax).__name__} in a filter")
        known = (*_ARGUMENTS.get(type(syntax), ()), "this", "expression", "expressions")
        for name, argument in syntax.args.items():
            if argument and name not in known and name not in _HARMLESS:
                raise UnsupportedFeature(f"{name} of {syntax.sql()} in a filter")
        return translate(self, syntax)

    def pair(self, syntax: exp.Expr) -> tuple[Expression, Expression]:
        return self.expression(syntax.this), self.expression(syntax.expression)

    def condition(self, syntax: exp.Expr) -> Predicate:
        return build.as_condition(self.expression(syntax))

    def conditions(self, syntax: exp.Expr) -> Iterator[Predicate]:
        return (self.condition(part) for part in syntax.flatten(unnest=True))

    def compare(self, op: CompareOp, left: Expression, right: Expression) -> Predicate:
        if isinstance(left, Literal) and isinstance(right, Literal):
            for side in (left, right):
                if is_text(side.type) and side.value.as_py() in self.schema.names:
                    name = side.value.as_py()
                    raise InvalidFilter(f"{side.to_sql()} is text; for column {name!r} write `{name}` in back quotes")
        return build.compare(op, left, right)

    def column(self, syntax: exp.Column) -> Expression:
        names = [part for part in syntax.parts if not isinstance(part, exp.Star)]
        if len(names) < len(syntax.parts):
            raise UnsupportedFeature("* in a filter")
        first = names[0]
        if len(names) == 1 and first.name.lower() in CURRENT_TIME_KEYWORDS and not first.args.get("quoted"):
            return self.clock.call(first.name, 0)
        return resolve(self.schema, [_name(part) for part in names])

    def dot(self, syntax: exp.Dot) -> Expression:
        """A field of any value, or a path of more names than a sqlglot column has."""
        if not isinstance(syntax.expression, exp.Identifier):
            raise UnsupportedFeature(f"{syntax.sql()} in a filter")
        return field_of(self.expression(syntax.this), _name(syntax.expression))

    def bracket(self, syntax: exp.Expr) -> Expression:
        if len(syntax.expressions) != 1:
            raise InvalidFilter(f"{syntax.sql()}: one position or one name is needed in the brackets")
        (index,) = syntax.expressions
        parent = self.expression(syntax.this)
        if index.is_string:
            return field_of(parent, Name(index.name))
        return build.list_element(parent, self.expression(index))

    def array(self, syntax: exp.Expr) -> Expression:
        items = [self.expression(item) for item in syntax.expressions]
        if not all(isinstance(item, Literal) for item in items):
            raise UnsupportedFeature(f"{syntax.sql()}: a list with items that are not literals in a filter")
        values = [item.value.as_py() for item in items if isinstance(item, Literal)]
        try:
            return Literal(scalar(values, pa.list_(pa.array(values).type)))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidFilter(f"{syntax.sql()}: items of different types") from error

    def cast(self, syntax: exp.Expr) -> Expression:
        target = _arrow_type(syntax.args["to"])
        return build.cast(self.expression(syntax.this), target, lenient=isinstance(syntax, exp.TryCast))

    def is_(self, syntax: exp.Expr) -> Expression:
        operand, what = self.expression(syntax.this), syntax.expression
        if isinstance(what, exp.Null):
            return build.is_null(operand)
        if isinstance(what, exp.Boolean):
            return build.is_true(operand, bool(what.this))
        raise UnsupportedFeature(f"{syntax.sql()} in a filter")

    def like(self, syntax: exp.Expr, escape: str = "\\") -> Predicate:
        operand, pattern = self.pair(syntax)
        result = build.like(operand, pattern, isinstance(syntax, exp.ILike), escape)
        return build.negate(result) if syntax.args.get("negate") else result

    def escape(self, syntax: exp.Expr) -> Predicate:
        char = syntax.expression.name
        if not isinstance(syntax.this, (exp.Like, exp.ILike)) or len(char) != 1:
            raise UnsupportedFeature(f"{syntax.sql()} in a filter")
        return self.like(syntax.this, char)

    def in_(self, syntax: exp.Expr) -> Predicate:
        if not syntax.expressions:
            raise InvalidFilter(f"{syntax.sql()}: the list is empty")
        if syntax.expressions[0].is_string and syntax.expressions[0].name in self.lists:
            return is_listed(self.expression(syntax.this), self.lists[syntax.expressions[0].name])
        return build.is_in(self.expression(syntax.this), [self.expression(item) for item in syntax.expressions])

    def interval(self, syntax: exp.Expr) -> Expression:
        unit = syntax.args["unit"].name.lower().removesuffix("s") if syntax.args.get("unit") else ""
        text = syntax.this.name if syntax.this is not None else ""
        if unit not in _UNITS or not text.lstrip("-").isdigit():
            raise UnsupportedFeature(f"{syntax.sql()} in a filter")
        length = int(text) * _UNITS[unit] if len(text) < _MOST_DIGITS else 2**63
        if not -(2**63) <= length < 2**63:
            raise InvalidFilter(f"interval {text[:_MOST_DIGITS]!r} {unit} is longer than 64 bits of nanoseconds")
        return Literal(scalar(length, pa.duration("ns")))

    def case(self, syntax: exp.Expr) -> Expression:
        branches = []
        for branch in syntax.args["ifs"]:
            if syntax.this is None:
                condition = self.condition(branch.this)
            else:
                condition = self.compare(CompareOp.EQ, self.expression(syntax.this), self.expression(branch.this))
            branches.append((condition, self.expression(branch.args["true"])))
        default = syntax.args.get("default")
        return case(branches, Literal(scalar(None)) if default is None else self.expression(default))

    def call(self, syntax: exp.Expr) -> Expression:
        if returns_current_time(syntax.name):
            return self.clock.call(syntax.name, len(syntax.expressions))
        return call(syntax.name, [self.expression(argument) for argument in syntax.expressions])

    def extract(self, syntax: exp.Expr) -> Expression:
        return call("date_part", [Literal(scalar(syntax.name)), self.expression(syntax.expression)])


def _name(syntax: exp.Expr) -> Name:
    return Name(syntax.name, exact=bool(syntax.args.get("quoted")))


def _comparison(op: CompareOp) -> Callable[[_Translation, exp.Expr], Expression]:
    def translate(walk: _Translation, syntax: exp.Expr) -> Expression:
        for side in (syntax.this, syntax.expression):
            if isinstance(side, _BINDS_DIFFERENTLY):
                raise InvalidFilter(f"{syntax.sql()} reads in two ways: put one of the comparisons in parentheses")
        return walk.compare(op, *walk.pair(syntax))

    return translate


def _arithmetic(op: ArithmeticOp) -> Callable[[_Translation, exp.Expr], Expression]:
    return lambda walk, syntax: build.arithmetic(op, *walk.pair(syntax))


def _literal(_: _Translation, syntax: exp.Expr) -> Expression:
    return Literal(scalar(syntax.this)) if syntax.is_string else number_literal(syntax.this)


def _hexadecimal(_: _Translation, syntax: exp.Expr) -> Expression:
    try:
        return Literal(scalar(bytes.fromhex(syntax.this), pa.binary()))
    except ValueError as error:
        raise InvalidFilter(f"X'{syntax.this}' is not hexadecimal") from error


def _arrow_type(syntax: exp.Expr) -> pa.DataType:
    kind = syntax.this
    if any(len(parameter.name) > _MOST_DIGITS for parameter in syntax.expressions):
        raise UnsupportedFeature(f"type {syntax.sql()[:_MOST_SHOWN]} in a filter")
    numbers = [int(parameter.name) for parameter in syntax.expressions]
    if kind is exp.DType.DECIMAL and len(numbers) == 2 and 0 < numbers[0] <= 76:
        precision, scale = numbers
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if kind in _TIMESTAMPS and len(numbers) < 2:
        unit = _PRECISIONS.get(numbers[0] if numbers else 6)
        if unit is not None:
            return pa.timestamp(unit)
    if kind in _TYPES and not numbers:
        return _TYPES[kind]
    raise UnsupportedFeature(f"type {syntax.sql()} in a filter")


def _first_error(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    return f"{details[0]['description']} (line {details[0]['line']}, column {details[0]['col']})"


_TRANSLATIONS: dict[type[Any], Callable[[_Translation, Any], Expression]] = {
    exp.And: lambda walk, syntax: build.all_of(*walk.conditions(syntax)),
    exp.Or: lambda walk, syntax: either(walk.conditions(syntax)),
    exp.Not: lambda walk, syntax: build.negate(walk.condition(syntax.this)),
    exp.Paren: lambda walk, syntax: walk.expression(syntax.this),
    exp.EQ: _comparison(CompareOp.EQ),
    exp.NEQ: _comparison(CompareOp.NE),
    exp.LT: _comparison(CompareOp.LT),
    exp.LTE: _comparison(CompareOp.LE),
    exp.GT: _comparison(CompareOp.GT),
    exp.GTE: _comparison(CompareOp.GE),
    exp.NullSafeEQ: lambda walk, syntax: build.is_not_distinct(*walk.pair(syntax)),
    exp.NullSafeNEQ: lambda walk, syntax: build.negate(build.is_not_distinct(*walk.pair(syntax))),
    exp.Between: lambda walk, syntax: build.between(
        *(walk.expression(syntax.args[name]) for name in ("this", "low", "high"))
    ),
    exp.In: _Translation.in_,
    exp.Is: _Translation.is_,
    exp.Like: _Translation.like,
    exp.ILike: _Translation.like,
    exp.Escape: _Translation.escape,
    exp.Add: _arithmetic(ArithmeticOp.ADD),
    exp.Sub: _arithmetic(ArithmeticOp.SUBTRACT),
    exp.Mul: _arithmetic(ArithmeticOp.MULTIPLY),
    exp.Div: _arithmetic(ArithmeticOp.DIVIDE),
    exp.Mod: _arithmetic(ArithmeticOp.REMAINDER),
    exp.Neg: lambda walk, syntax: build.minus(walk.expression(syntax.this)),
    exp.DPipe: lambda walk, syntax: call("text_join", walk.pair(syntax)),
    exp.Literal: _literal,
    exp.HexString: _hexadecimal,
    exp.Boolean: lambda _, syntax: Literal(scalar(bool(syntax.this))),
    exp.Null: lambda _, syntax: Literal(scalar(None)),
    exp.Interval: _Translation.interval,
    exp.Cast: _Translation.cast,
    exp.TryCast: _Translation.cast,
    exp.Column: _Translation.column,
    exp.Dot: _Translation.dot,
    exp.Bracket: _Translation.bracket,
    exp.Array: _Translation.array,
    exp.Anonymous: _Translation.call,
    exp.Extract: _Translation.extract,
    exp.Case: _Translation.case,
}
# Dialects disagree on the precedence of these beside a comparison without brackets.
_BINDS_DIFFERENTLY = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape),
)
# Further arguments that a translation reads; below, arguments that do not change the meaning.
_ARGUMENTS: dict[type[Any], tuple[str, ...]] = {
    exp.Between: ("low", "high"),
    exp.Case: ("ifs", "default"),
    exp.Cast: ("to",),
    exp.TryCast: ("to",),
    exp.Column: ("table", "db", "catalog"),
    exp.Interval: ("unit",),
    exp.Like: ("negate",),
    exp.ILike: ("negate",),
    exp.Literal: ("is_string",),
}
_HARMLESS = frozenset(["safe", "typed"])

_TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.UTINYINT: pa.uint8(),
    exp.DType.USMALLINT: pa.uint16(),
    exp.DType.UINT: pa.uint32(),
    exp.DType.UBIGINT: pa.uint64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.VARBINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
}
_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.DATETIME)
_PRECISIONS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_UNITS = {
    "nanosecond": 1,
    "microsecond": NANOSECONDS["us"],
    "millisecond": NANOSECONDS["ms"],
    "second": NANOSECONDS["s"],
    "minute": 60 * NANOSECONDS["s"],
    "hour": 3600 * NANOSECONDS["s"],
    "day": 86_400 * NANOSECONDS["s"],
}
