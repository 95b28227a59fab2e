"""Find what a query needs of a table in it: which columns, which rows for certain, and how many.

The answers are safe: a column too many is read, and a condition too few is pushed, where the text leaves a doubt.
Spark still evaluates the whole query; what is pushed here only saves reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from lance_ops.core.cached_property import cached_property
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import CLOCK_OR_COLUMN, conjuncts
from lance_ops.spark.sql_access.words import Word, clocks_without_brackets
from lance_ops.spark.translation import ROW_COLUMN_TYPES, CaseRule, row_column

__all__ = ["QueryNeeds", "is_of_cte", "name_parts"]

_BARE_PROJECTIONS = (exp.Column, exp.Star, exp.Literal)
_CHANGES_ROWS = (
    *("joins", "laterals", "group", "having", "distinct", "order", "sort", "cluster", "distribute", "qualify"),
    *("windows", "pivots", "sample", "connect", "kind", "with_"),
)

_OF_MANY_ROWS = (exp.Window, exp.AggFunc, exp.UDTF, exp.Anonymous, exp.Query)
"""What may make a projection depend on other rows, or give several rows. An unknown function may do so."""

_HOLD_OTHER_NAMES = (exp.Column, exp.Table, exp.Alias, exp.TableAlias)


def name_parts(node: exp.Table | exp.Column) -> tuple[str, ...]:
    """Return the names between the dots."""
    return tuple(part.name for part in node.parts)


def is_of_cte(table: exp.Table) -> bool:
    """Return whether a name means a common table expression that is visible where it stands."""
    if len(table.parts) != 1:
        return False
    name = table.name.lower()
    came_from: exp.Expr = table
    node: exp.Expr | None = table.parent
    num_visible: int | None = None
    while node is not None:
        if isinstance(node, exp.With):
            position = next((i for i, each in enumerate(node.expressions) if each is came_from), 0)
            num_visible = position + bool(node.args.get("recursive"))
        else:
            scope = node.args.get("with_")
            if scope is not None:
                visible = scope.expressions[:num_visible] if came_from is scope else scope.expressions
                if any(each.alias.lower() == name for each in visible):
                    return True
        came_from, node = node, node.parent
    return False


@dataclass(frozen=True)
class QueryNeeds:
    """A parsed query with its words. `case_rule` is the session's."""

    tree: exp.Expr
    words: Sequence[Word]
    case_rule: CaseRule

    def columns(self, table: exp.Table, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the columns of the table that the query names, row columns last; None if it needs all.

        A query that needs none, as a count of the rows, gets an empty tuple.
        """
        select = _select_of(table)
        if select is None or self._is_read_whole(table, select):
            return None
        if self.case_rule is CaseRule.INSENSITIVE and len({name.lower() for name in names}) < len(names):
            return None  # Spark finds such names ambiguous where all are there
        asked = self._names_for(table, select)
        found = {self.case_rule.find(name, names) for name in asked} - {None}
        meant = {row_column(name, names, self.case_rule) for name in asked}
        of_rows = [name for name in ROW_COLUMN_TYPES if name in meant]
        if len(found) == len(names) and not of_rows:
            return None
        return (*(name for name in names if name in found), *of_rows)

    def conjuncts(self, table: exp.Table, names: Sequence[str]) -> Iterator[exp.Expr]:
        """Yield conditions that every row of the table must meet to take part; they name no other table's columns.

        Where a subquery or a common table expression only chooses and renames columns of the table, conditions on its
        rows are among them, with the table's names.
        """
        if self._has_pipes or self._is_parsed_twice(table):
            return
        source: exp.Expr | None = table
        shown = {name: name for name in names}
        while source is not None:
            select = _select_of(source)
            if select is None or _has_other_rows_or_names(source):
                return
            for condition in _conditions(select, source):
                for part in conjuncts(condition):
                    if self._may_name_column_of_clock(part) and not (source is table and _is_alone(select)):
                        continue
                    if self._is_about(part, source, select, tuple(shown)):
                        yield part if source is table else self._renamed(part, shown)
            shown = self._shown_columns(source, select, shown)
            source = self._reference_to(select)

    def limit(self, table: exp.Table) -> int | None:
        """Return how many rows of those that match the whole WHERE the query needs, if any such rows will do."""
        select = _select_of(table)
        if (
            select is None
            or select is not self.tree
            or self._has_pipes
            or any(select.args.get(name) for name in _CHANGES_ROWS)
        ):
            return None
        if _has_other_rows_or_names(table):
            return None
        if not all(isinstance(each.unalias(), _BARE_PROJECTIONS) for each in select.expressions):
            return None
        limit = select.args.get("limit")
        if limit is None or not isinstance(limit.expression, exp.Literal) or not limit.expression.name.isdecimal():
            return None
        offset = select.args.get("offset")
        if offset is None:
            return int(limit.expression.name)
        if not isinstance(offset.expression, exp.Literal) or not offset.expression.name.isdecimal():
            return None
        return int(limit.expression.name) + int(offset.expression.name)

    def where_parts(self, table: exp.Table) -> int:
        """Return how many conjuncts the WHERE of the table's SELECT has."""
        select = _select_of(table)
        where = None if select is None else select.args.get("where")
        return 0 if where is None else len(list(conjuncts(where.this)))

    # -- columns --------------------------------------------------------------------------------------------------

    def _is_read_whole(self, table: exp.Table, select: exp.Select) -> bool:
        """Return whether every column of a table may show in the result, or the text cannot tell."""
        if table.args.get("pivots") or _has_new_names(table) or self._has_pipes or self._is_parsed_twice(table):
            return True
        if any(word.upper == "IDENTIFIER" for word in self.words):  # IDENTIFIER('a') names a column in a text
            return True
        if any(join.args.get("method") == "NATURAL" for join in select.args.get("joins") or ()):
            return True
        alias = table.alias_or_name.lower()
        return any(self._shows(star, alias, select) for star in select.find_all(exp.Star))

    def _shows(self, star: exp.Star, alias: str, select: exp.Select) -> bool:
        """Return whether a star in a SELECT stands for all columns of its table of that alias."""
        holder = star.parent
        if isinstance(holder, exp.Column):
            return name_parts(holder)[-2].lower() == alias
        if isinstance(holder, exp.Count) or star.find_ancestor(exp.Select) is not select:
            return False
        return holder is not select or not (isinstance(select.parent, exp.Exists) or self._is_inner(select))

    def _names_for(self, table: exp.Table, select: exp.Select) -> set[str]:
        """Return the names that may be columns of the table."""
        if any(isinstance(each, exp.Star) for each in select.expressions) and self._is_inner(select):
            return {word.value for word in self.words if word.is_name}
        alias = table.alias_or_name.lower()
        asked: set[str] = set()
        for column in select.find_all(exp.Column):
            parts = name_parts(column)
            if len(parts) > 1 and alias in (part.lower() for part in parts[:-1]):
                asked.update(parts)
            else:
                asked.add(parts[0])  # of another table, or a struct of this one
        names = list(self.tree.find_all(exp.Identifier))
        asked.update(name.name for name in names if not isinstance(name.parent, _HOLD_OTHER_NAMES))
        known = {name.meta.get("start") for name in names}
        # A name that sqlglot takes for a keyword or a function is in no column of the tree.
        return asked | {word.value for word in self.words if word.is_name and word.start not in known}

    def _is_inner(self, select: exp.Select) -> bool:
        return select is not self.tree and self._inner_stars_show_named_columns

    @cached_property
    def _inner_stars_show_named_columns(self) -> bool:
        """Whether a column that an inner `SELECT *` returns shows only if the statement names it elsewhere."""
        tree = self.tree
        if not isinstance(tree, exp.Select) or self._has_pipes:
            return False
        stars = [star for star in tree.find_all(exp.Star) if star.find_ancestor(exp.Select) is tree]
        if not all(isinstance(star.parent, exp.Count) for star in stars):
            return False
        if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
            return False
        if any(alias.args.get("columns") for alias in tree.find_all(exp.TableAlias)):
            return False
        if next(tree.find_all(exp.SetOperation, exp.Pivot, exp.Lateral), None) is not None:
            return False
        return not any(_shows_rows(inner) for inner in tree.find_all(exp.Select) if inner is not tree)

    @cached_property
    def _has_pipes(self) -> bool:
        pairs = zip(self.words, self.words[1:], strict=False)
        return any((one.upper, two.upper) == ("|", ">") and one.stop == two.start for one, two in pairs)

    def _is_parsed_twice(self, table: exp.Table) -> bool:
        start = table.this.meta.get("start")
        others = (each for each in self.tree.find_all(exp.Table) if each.find_ancestor(exp.Hint) is None)
        return len([each for each in others if each.this.meta.get("start") == start]) > 1

    # -- conditions -----------------------------------------------------------------------------------------------

    def _reference_to(self, select: exp.Select) -> exp.Expr | None:
        """Return the only source of another SELECT that has this one's rows, if each is one row of its own source."""
        if any(select.args.get(name) for name in (*_CHANGES_ROWS, "limit", "offset")):
            return None
        if any(each.find(*_OF_MANY_ROWS) is not None for each in select.expressions):
            return None
        holder = select.parent
        if isinstance(holder, exp.Subquery):
            return holder
        if not isinstance(holder, exp.CTE) or holder.args["alias"].args.get("columns"):
            return None
        name, scope = holder.alias.lower(), holder.parent
        same = [each for each in self.tree.find_all(exp.CTE) if each.alias.lower() == name]
        tables = [each for each in self.tree.find_all(exp.Table) if name_parts(each)[-1].lower() == name]
        if len(same) > 1 or len(tables) != 1 or not is_of_cte(tables[0]):
            return None
        return None if scope is None or scope.args.get("recursive") else tables[0]

    def _shown_columns(self, source: exp.Expr, select: exp.Select, names: Mapping[str, str]) -> dict[str, str]:
        """Return the columns of a SELECT that are columns of its source under the same or another name.

        `names` has those of the source with the table's columns. A name that is there twice is left out.
        """
        alias = source.alias_or_name.lower()
        pairs: list[tuple[str, str | None]] = []
        for each in select.expressions:
            inner = each.unalias()
            if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
                if any((inner if isinstance(inner, exp.Star) else inner.this).args.values()):  # EXCEPT
                    return {}
                pairs += names.items()
                continue
            parts = name_parts(inner) if isinstance(inner, exp.Column) else ()
            is_of_source = len(parts) == 1 or (len(parts) == 2 and parts[0].lower() == alias)
            found = self.case_rule.find(parts[-1], tuple(names)) if is_of_source else None
            pairs.append((each.alias_or_name, None if found is None else names[found]))
        shown: dict[str, str] = {}
        for name, column in pairs:
            others = [other for other, _ in pairs if self.case_rule.find(name, (other,)) is not None]
            if column is not None and len(others) == 1:
                shown[name] = column
        return shown

    def _renamed(self, condition: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
        """Return a condition on the columns `names`, with the table's names in their place."""

        def renamed(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            found = self.case_rule.find(name_parts(node)[-1], tuple(names))
            assert found is not None  # `_is_about` found it
            return exp.column(names[found], quoted=True)

        return condition.copy().transform(renamed)

    def _may_name_column_of_clock(self, condition: exp.Expr) -> bool:
        """Return whether a condition may have a word as `current_date`, which is a column if a source has that column.

        sqlglot takes it for the function in any case.
        """
        return self._has_clock_without_brackets and condition.find(*CLOCK_OR_COLUMN) is not None

    @cached_property
    def _has_clock_without_brackets(self) -> bool:
        return bool(clocks_without_brackets(self.words))

    def _is_about(self, condition: exp.Expr, table: exp.Expr, select: exp.Select, names: Sequence[str]) -> bool:
        """Return whether each column of a condition is one of the table for certain."""
        alias = table.alias_or_name.lower()
        aliases = [source.alias_or_name.lower() for source in _sources(select)]
        alone = _is_alone(select)
        columns = list(condition.find_all(exp.Column))
        if not columns or condition.find(exp.Query) is not None or aliases.count(alias) > 1:
            return False
        for column in columns:
            parts = name_parts(column)
            if len(parts) == 1 and not alone:
                return False
            if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() != alias):
                return False
            if self.case_rule.find(parts[-1], names) is None:
                return False
        return True


def _has_other_rows_or_names(source: exp.Expr) -> bool:
    """Return whether a reference samples or pivots its rows, or gives its columns new names."""
    return bool(source.args.get("sample") or source.args.get("pivots")) or _has_new_names(source)


def _has_new_names(source: exp.Expr) -> bool:
    """Return whether a reference names the columns in their order: `FROM t AS q(k, l)`."""
    alias = source.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _select_of(table: exp.Expr) -> exp.Select | None:
    """Return the SELECT whose FROM or JOIN the table stands in, with nothing between."""
    holder = table.parent
    if not isinstance(holder, exp.From | exp.Join) or holder.this is not table:
        return None
    return holder.parent if isinstance(holder.parent, exp.Select) else None


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    yield select.args["from_"].this
    for join in select.args.get("joins") or ():
        yield join.this


def _is_alone(select: exp.Select) -> bool:
    """Return whether the SELECT has one source, so that a name without another before it is a column of this one."""
    return len(list(_sources(select))) == 1 and not select.args.get("laterals")


def _conditions(select: exp.Select, table: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that rows of the table must meet, whatever the joins make of rows that do not."""
    where, joins = select.args.get("where"), select.args.get("joins") or []
    sides = [(join.args.get("side") or "").upper() for join in joins]
    position = next((i for i, join in enumerate(joins) if join.this is table), -1)
    own = joins[position] if position >= 0 else None
    if own is not None and sides[position] == "LEFT" and own.args.get("on") is not None and _is_plain(own):
        yield own.args["on"]
    # A row of the table is kept with nulls, or may be missing, if an outer join does not preserve its side.
    if own is not None and (sides[position] or not _is_plain(own)):
        return
    if any(side in ("RIGHT", "FULL") for side in sides[position + 1 :]):
        return
    if where is not None:
        yield where.this
    for join, side in zip(joins, sides, strict=True):
        if not side and _is_plain(join) and join.args.get("on") is not None:
            yield join.args["on"]


def _is_plain(join: exp.Join) -> bool:
    """Return whether a join is inner, cross or one-sided, and neither a semi-join nor a lateral one."""
    kind = (join.args.get("kind") or "").upper()
    return kind in ("", "INNER", "CROSS", "OUTER") and not join.args.get("method")


def _shows_rows(select: exp.Select) -> bool:
    """Return whether the rows of an inner `SELECT *` matter as a whole: distinct ones, a value, or those in IN (…)."""
    if any(not isinstance(star.parent, exp.Count | exp.Select | exp.Column) for star in select.find_all(exp.Star)):
        return True
    if not any(isinstance(each.unalias(), exp.Star) for each in select.expressions):
        return False
    holder = select.parent
    is_source = isinstance(holder, exp.CTE | exp.Exists) or (
        isinstance(holder, exp.Subquery) and isinstance(holder.parent, exp.From | exp.Join)
    )
    return not is_source or select.args.get("distinct") is not None or _counts_columns(select)


def _counts_columns(select: exp.Select) -> bool:
    """Return whether a SELECT groups by what it shows, or sorts by the place of a column or by all of them."""
    if select.args.get("group") is not None:
        return True
    orders = [select.args[name] for name in ("order", "sort", "cluster") if select.args.get(name) is not None]
    keys = [key.this if isinstance(key, exp.Ordered) else key for order in orders for key in order.expressions]
    return any(not isinstance(key, exp.Column) or key.name.upper() == "ALL" for key in keys)
