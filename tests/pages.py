"""The pages for people, and the commands that they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OF_THE_CODE = ("reference", "verbs")
"""The folders of pages that follow from options, help and docstrings; the examples there are those of `--help`."""

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "PACKAGE.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name not in OF_THE_CODE),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

OF_COMMANDS = ("sh", "shell")
"""The languages of blocks that hold a command a line; `test_docs.py` runs those of `shell` in their order."""

_OF_IMAGES = "dockerfile"
_INDENTED = re.compile(r"^ {4}\s*(\S.*)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_LIKE_A_COMMAND = re.compile(r"""[a-z][\w.-]* ["'$./a-z-]""")
_STEP = re.compile(r"^RUN ((?:.*\\\n)*.*)$", re.MULTILINE)


def shown_commands(text: str, programs: Container[str]) -> Iterator[str]:
    """Yield the commands of a page: lines of indented code and of blocks, steps of images, and spans in sentences.

    A span counts if its first word is one of `programs`, or if it looks like a program with arguments. One word alone
    is a name.
    """
    for language, block in BLOCK.findall(text):
        if language in OF_COMMANDS:
            yield from block.splitlines()
        elif language == _OF_IMAGES:
            for step in _STEP.findall(block):
                yield from (each.strip() for each in step.replace("\\\n", " ").split("&&"))
    sentences = BLOCK.sub("", text)
    yield from _INDENTED.findall(sentences)
    for span in _SPAN.findall(sentences):
        program, _, arguments = span.partition(" ")
        if arguments and (program in programs or _LIKE_A_COMMAND.match(span)):
            yield span


def words_of(command: str) -> list[str]:
    """Return the program and its arguments, without comments and variables that are set for it."""
    words = shlex.split(command, comments=True)
    while re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    return words
