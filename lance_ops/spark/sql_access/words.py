"""Split SQL of Spark's dialect into words with their positions, and read statements word by word.

A statement is read by its words, so that the conditions and queries in it stay exactly the text that the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = [
    "CLOCK_WORDS",
    "EXPLAIN_MODES",
    "QUERY_WORDS",
    "Kind",
    "Reader",
    "Word",
    "clocks_without_brackets",
    "split_words",
    "text_literal",
    "without_line_comments",
]

QUERY_WORDS = ("SELECT", "VALUES", "WITH", "FROM", "TABLE")
"""The words that begin a query."""

CLOCK_WORDS = {"now", "current_timestamp", "current_date", "curdate", "localtimestamp"}
"""The functions of the clock that may stand without brackets. A column of that name comes before the function."""

EXPLAIN_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")
"""The words that may follow EXPLAIN."""

_PATTERN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<line>--(?:\\\n|[^\r\n])*)
    | (?P<comment>/\*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<text>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:BD|[LlSsYyFfDd])?(?![\w])|\.\d+(?:[eE][+-]?\d+)?)
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SHOWN = 60  # characters of a statement in an error


class Kind(Enum):
    """What a word is."""

    NAME = "name"
    QUOTED = "quoted"
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a statement at `[start, stop)`; `value` is without quotes."""

    kind: Kind
    value: str
    start: int
    stop: int

    @property
    def upper(self) -> str:
        """The keyword that the word may be; a quoted name is none."""
        return self.value.upper() if self.kind is Kind.NAME else self.value if self.kind is Kind.SIGN else ""

    @property
    def is_name(self) -> bool:
        """Whether the word can name something."""
        return self.kind in (Kind.NAME, Kind.QUOTED)


def split_words(text: str) -> list[Word]:
    """Return the words of a text, comments left out; raise `InvalidInput` for a quote or comment that does not end."""
    return list(_words(text))


def clocks_without_brackets(words: Sequence[Word]) -> list[str]:
    """Return the words of the clock, as `current_date`, that mean a column where one of that name is there."""
    values = [word.value for word in words]
    around = zip(words, ["", *values], [*values[1:], ""], strict=False)
    return [
        word.value
        for word, before, after in around
        if word.kind is Kind.NAME and word.value.lower() in CLOCK_WORDS and before != "." and after != "("
    ]


def without_line_comments(text: str) -> str:
    """Return a text with spaces in place of the comments that begin with `--`.

    A carriage return ends such a comment, too. After a backslash at the end of a line, the comment goes on in the next
    line. Parsers of other dialects know neither rule, and take the condition after the comment for a part of it.
    """
    if "--" not in text:
        return text
    parts, at = [], 0
    for kind, start, stop in _pieces(text):
        if kind == "line":
            parts += [text[at:start], " " * (stop - start)]
            at = stop
    return "".join([*parts, text[at:]])


def _pieces(text: str) -> Iterator[tuple[str | None, int, int]]:
    """Yield the kind, the start and the end of each word, space and comment of a text."""
    at = 0
    while at < len(text):
        match = _PATTERN.match(text, at)
        assert match is not None  # a sign is any character
        start, at = at, match.end()
        if match.lastgroup == "comment":
            at = _end_of_comment(text, start)
        yield match.lastgroup, start, at


def _words(text: str) -> Iterator[Word]:
    for kind, start, at in _pieces(text):
        piece = text[start:at]
        if kind in ("space", "line", "comment"):
            continue
        if kind == "quoted":
            yield Word(Kind.QUOTED, piece[1:-1].replace("``", "`"), start, at)
        elif kind == "text":
            yield Word(Kind.TEXT, _unquoted(piece), start, at)
        elif kind == "number":
            yield Word(Kind.NUMBER, piece, start, at)
        elif kind == "word":
            yield Word(Kind.NAME, piece, start, at)
        elif piece in "'\"`":
            raise InvalidInput(f"SQL: the quote at position {start} does not end: {_shown(text[start:])}")
        else:
            yield Word(Kind.SIGN, piece, start, at)


def _end_of_comment(text: str, start: int) -> int:
    """Return where a comment ends; comments are nested in Spark."""
    depth = 0
    for sign in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if sign[0] == "/*" else -1
        if not depth:
            return start + sign.end()
    raise InvalidInput(f"SQL: the comment at position {start} does not end")


def _unquoted(text: str) -> str:
    if text[0] in "rR":
        return text[2:-1]
    quote, inner = text[0], text[1:-1]
    return re.sub(r"\\(.)", r"\1", inner.replace(quote * 2, quote), flags=re.DOTALL)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def text_literal(text: str) -> str:
    """Return a text as Spark's SQL has it, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Reader:
    """Reads a statement from left to right; an error says what was wanted and what was found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = split_words(text)
        while self.words and self.words[-1].upper == ";":
            self.words.pop()
        self.at = 0

    @property
    def ended(self) -> bool:
        """Whether every word was read."""
        return self.at >= len(self.words)

    @property
    def next(self) -> Word | None:
        """The next word, which stays unread."""
        return None if self.ended else self.words[self.at]

    def peek(self, *keywords: str) -> bool:
        """Return whether these keywords come next."""
        ahead = self.words[self.at : self.at + len(keywords)]
        return [word.upper for word in ahead] == [*keywords]

    def accept(self, *keywords: str) -> bool:
        """Read these keywords if they come next."""
        found = self.peek(*keywords)
        self.at += len(keywords) * found
        return found

    def accept_any(self, *keywords: str) -> str | None:
        """Read one of these keywords if it comes next."""
        word = self.next
        if word is None or word.upper not in keywords:
            return None
        self.at += 1
        return word.upper

    def expect(self, *keywords: str) -> None:
        """Read these keywords; raise `InvalidInput` if others come."""
        if not self.accept(*keywords):
            raise self.error(" ".join(keywords))

    def name(self, what: str) -> str:
        """Read a name."""
        word = self.next
        if word is None or not word.is_name:
            raise self.error(what)
        self.at += 1
        return word.value

    def path(self, what: str) -> tuple[str, ...]:
        """Read a name of one or more parts with dots between them."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return tuple(parts)

    def number(self, what: str) -> int:
        """Read a whole number; other digits than those of ASCII are none in SQL."""
        word = self.next
        if word is None or word.kind is not Kind.NUMBER or not (word.value.isascii() and word.value.isdecimal()):
            raise self.error(what)
        self.at += 1
        return int(word.value)

    def literal(self, what: str) -> str:
        """Read a text in quotes."""
        word = self.next
        if word is None or word.kind is not Kind.TEXT:
            raise self.error(what)
        self.at += 1
        return word.value

    def until(self, *stops: str, what: str, behind: str | None = None) -> str:
        """Read up to one of these keywords outside of brackets and CASE, or to the end; return the text.

        The FROM of `IS [NOT] DISTINCT FROM` is none of them, and neither is a name behind a dot. With `behind` only a
        keyword behind this word is one. Raises `InvalidInput` if there is nothing before it.
        """
        begin, depth, cases = self.at, 0, 0
        while not self.ended:
            word = self.words[self.at]
            keyword = "" if word.kind is Kind.NAME and self._follows(".") else word.upper
            depth += _OPENING.get(keyword, 0) if word.kind is Kind.SIGN else 0
            is_stop = keyword in stops and not (keyword == "FROM" and self._follows("DISTINCT"))
            is_stop = is_stop and (behind is None or self._follows(behind))
            if depth < 0 or (depth == cases == 0 and is_stop):
                break
            cases = max(0, cases + {"CASE": 1, "END": -1}.get(keyword, 0))
            self.at += 1
        if self.at == begin:
            raise self.error(what)
        return self.between(begin, self.at)

    def _follows(self, keyword: str) -> bool:
        """Return whether this keyword stands before the next word."""
        return self.at > 0 and self.words[self.at - 1].upper == keyword

    def rest(self, what: str) -> str:
        """Read all that is left, and return its text."""
        return self.until(what=what)

    def in_brackets(self, what: str) -> str:
        """Read brackets and all that is in them; return the text in them."""
        self.expect("(")
        text = self.until(what=what)
        self.expect(")")
        return text

    def between(self, begin: int, end: int) -> str:
        """Return the text of the words at these positions."""
        return self.text[self.words[begin].start : self.words[end - 1].stop]

    def end(self) -> None:
        """Raise `InvalidInput` unless everything was read."""
        if not self.ended:
            raise self.error("the end of the statement")

    def error(self, wanted: str) -> InvalidInput:
        """Return the error that says where something else was wanted."""
        word = self.next
        found = "the end" if word is None else _shown(self.text[word.start : word.stop])
        return InvalidInput(f"SQL on a Lance table: {wanted} is needed in place of {found}, in {_shown(self.text)}")
