"""Look at a landing folder, and propose a dataset for each kind of file in it.

Files are of one kind if their paths differ only in dates, numbers and partition folders such as `day=2024-01-02`.
`orders/2024-01-02.csv` and `orders/2024-01-03.csv` are one dataset, named after their folder; `orders_1.csv` and
`customers_1.csv` beside each other are two. Files without numbers, such as `bern.csv` and `basel.csv`, are one dataset
if they have the same columns. How text is written is guessed.
"""

from __future__ import annotations

import glob
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa

from lance_ops.core.errors import ConfigError, LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import KeyPattern, StoreLocation
from lance_ops.dagster.landing import LandedFile, list_files
from lance_ops.dagster.project.proposal import LANDING, Proposal, columns_sentence, dataset_name, with_distinct_names
from lance_ops.dagster.project.text_guess import TextGuess, guess_text, joint_guess
from lance_ops.maintenance.ingest import RawReader, RawReading, TextReading, printable, raw_format

__all__ = ["LandingSurvey", "survey_landing"]

_MARKER = "_SUCCESS"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER = r"(?<![A-Za-z])[0-9](?:[0-9T:_.Z-]*[0-9Z])?"
_VARYING = re.compile(f"(?P<uuid>{_UUID})|(?P<number>{_NUMBER})")
_PARTITION = re.compile(r"(?P<column>[A-Za-z_][A-Za-z0-9_]*)=.*")
_KEYS = (
    r"(?P<key>\d{4}-\d{2}-\d{2}[T_-]\d{2}[-:_]?\d{2}(?:[-:_]?\d{2})?)",
    r"(?P<key>\d{4}-\d{2}-\d{2})",
    r"(?P<key>\d{4}/\d{2}/\d{2})/",
    r"(?P<key>\d{8}T?\d*)",
)
"""Regular expressions of moments; the first that is all that varies in a dataset's paths becomes its key."""
_EXPANDED = ("${", "{{", "{%", "{#")
"""What a declaration expands, so that no path may contain it."""
_MOST_KINDS = 20
_MOST_OTHERS = 3
"""How many older files are tried if the newest of a kind cannot be read."""


@dataclass(frozen=True)
class LandingSurvey:
    """The proposed datasets, and sentences about the files for which none is proposed, by their ending or path."""

    proposals: tuple[Proposal, ...]
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Kind:
    """What the files of a dataset have in common: the folder, and globs of what varies beneath it."""

    folder: str
    varying_folders: tuple[str, ...]
    name: str
    """The glob of the file's name without its ending."""
    words: str
    """The constant part of the file's name."""
    ending: str

    @property
    def glob(self) -> str:
        return "/".join((*self.varying_folders, f"{self.name}{self.ending}"))


class _Seen(NamedTuple):
    guess: TextGuess | None
    columns: pa.Schema | str


class _FilesSeen:
    """How files seem to be written, and their columns, or why they cannot be read. Each file is opened once."""

    def __init__(self, reader: RawReader) -> None:
        self._reader = reader
        self._found: dict[str, _Seen] = {}

    def of(self, file: LandedFile) -> _Seen:
        if file.path not in self._found:
            self._found[file.path] = self._read(file)
        return self._found[file.path]

    def columns_read_by(self, file: LandedFile, reading: TextReading) -> pa.Schema | str:
        """Return the columns by another reading than the file's own; it is opened again."""
        found = self.of(file)
        known = found.guess is None or found.guess.reading == reading
        return found.columns if known else self._columns(file, lambda *_: reading)

    def _read(self, file: LandedFile) -> _Seen:
        if file.size_bytes == 0:
            return _Seen(None, f"{file.path} is empty")
        guesses: list[TextGuess] = []

        def guess(start: bytes, is_whole: bool) -> TextReading:
            guesses.append(guess_text(start, is_csv=_is_csv(file.path), is_whole=is_whole))
            return guesses[0].reading

        columns = self._columns(file, guess)
        return _Seen(guesses[0] if guesses else None, columns)

    def _columns(self, file: LandedFile, guess: Callable[[bytes, bool], TextReading]) -> pa.Schema | str:
        try:
            return self._reader.guessed_schema(file.to_ingest(), guess)
        except LanceOpsError as error:
            return str(error)


def survey_landing(location: StoreLocation) -> LandingSurvey:
    """List a landing folder, read the columns of some files of each kind, and guess how their text is written.

    Of each kind the newest file and the oldest one are read. If the newest cannot be read, up to three older ones are
    tried. Where files without numbers may be one dataset, one file of each of up to 20 names is read.

    Raises `ConfigError` if the folder has no file.
    """
    listed = [file for file in list_files(location) if isinstance(file, LandedFile)]
    visible = [file for file in listed if not any(part.startswith(("_", ".")) for part in file.path.split("/"))]
    if not visible:
        raise ConfigError(f"{location.public_uri}: there is no file in this landing folder; land one, or leave it out")
    kinds: defaultdict[_Kind, list[LandedFile]] = defaultdict(list)
    ignored: Counter[tuple[str, str]] = Counter()
    for file in sorted(visible, key=lambda file: file.path):
        if any(sign in file.path for sign in _EXPANDED):
            ignored["with a template in the path", "not declared"] += 1
            continue
        kind = _kind_of(file.path)
        if kind is None:
            ending = PurePosixPath(file.path).suffix or "no ending"
            ignored[f"with {ending}", "not read: write Parquet, CSV or JSON"] += 1
        else:
            kinds[kind].append(file)
    marked = {file.path.rpartition("/")[0] for file in listed if PurePosixPath(file.path).name == _MARKER}
    with RawReader(location.storage_options, RawReading()) as reader:
        seen = _FilesSeen(reader)
        found = [
            _proposal(PurePosixPath(location.uri).name, kind, files, marked, seen)
            for kind, files in _joined(kinds, seen)
        ]
    sentences = (
        f"{_num_files(count)} {which} {'is' if count == 1 else 'are'} {outcome}"
        for (which, outcome), count in ignored.items()
    )
    return LandingSurvey(with_distinct_names(found), tuple(sentences))


def _num_files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _kind_of(path: str) -> _Kind | None:
    """Return the kind of a file; None if no format has its ending."""
    *folders, name = path.split("/")
    try:
        _, compression = raw_format(name)
    except LanceOpsError:
        return None
    stem, dot, last = name.rpartition(".")
    ending = f"{dot}{last}"
    if compression is not None:
        stem, dot, inner = stem.rpartition(".")
        ending = f"{dot}{inner}{ending}"
    varying = next((at for at, folder in enumerate(folders) if _varies(folder)), len(folders))
    return _Kind(
        "/".join(folders[:varying]),
        tuple(map(_folder_glob, folders[varying:])),
        _glob_of(stem),
        _VARYING.sub(" ", stem).strip(" _-."),
        ending,
    )


def _varies(folder: str) -> bool:
    return _VARYING.fullmatch(folder) is not None or _PARTITION.fullmatch(folder) is not None


def _folder_glob(folder: str) -> str:
    partition = _PARTITION.fullmatch(folder)
    return f"{partition['column']}=*" if partition else _glob_of(folder)


def _glob_of(text: str) -> str:
    """Return a glob with a wildcard for each number and each UUID in a text."""
    found, end = [], 0
    for varying in _VARYING.finditer(text):
        found += [glob.escape(text[end : varying.start()]), "[0-9a-f]*" if varying["uuid"] else "[0-9]*"]
        end = varying.end()
    return "".join([*found, glob.escape(text[end:])])


def _joined(kinds: dict[_Kind, list[LandedFile]], seen: _FilesSeen) -> Iterator[tuple[_Kind, list[LandedFile]]]:
    """Yield the kinds of files. Kinds in the same folders become one if `_are_one` says that they are one dataset."""
    beside: defaultdict[tuple[str, tuple[str, ...], str], list[_Kind]] = defaultdict(list)
    for kind in kinds:
        beside[kind.folder, kind.varying_folders, kind.ending].append(kind)
    for (folder, varying, ending), group in beside.items():
        if _are_one([kinds[kind] for kind in group], group, seen):
            files = [file for kind in group for file in kinds[kind]]
            words = group[0].words if len(group) == 1 and not folder and not varying else ""
            name = "*" if not words else group[0].name
            yield _Kind(folder, varying, name, words, ending), sorted(files, key=lambda file: file.path)
        else:
            yield from ((kind, kinds[kind]) for kind in group)


def _are_one(files: Sequence[Sequence[LandedFile]], kinds: Sequence[_Kind], seen: _FilesSeen) -> bool:
    if len(kinds) == 1 or len(kinds) > _MOST_KINDS:
        return True
    if any("*" in kind.name for kind in kinds):
        return False
    found: set[tuple[str, ...]] = set()
    for of_kind in files:
        file = _readable(of_kind, seen)
        if file is None:
            return False
        guess, columns = seen.of(file)
        assert isinstance(columns, pa.Schema)
        found.add((guess.reading.delimiter if guess else "", *columns.names))
    return len(found) == 1


def _proposal(
    landing: str,
    kind: _Kind,
    files: Sequence[LandedFile],
    marked: set[str],
    seen: _FilesSeen,
) -> Proposal:
    name = dataset_name(kind.folder, kind.words) if kind.words else dataset_name(kind.folder or landing)
    prefix = f"{kind.folder}/" if kind.folder else ""
    paths = [file.path.removeprefix(prefix) for file in files]
    raw: dict[str, Any] = {"uri": f"${{{LANDING}}}/{kind.folder}".rstrip("/"), "glob": kind.glob}
    if {file.path.rpartition("/")[0] for file in files} <= marked:
        raw |= {"batch": "folder", "marker": _MARKER}
    else:
        key = _key(paths, kind.ending)
        raw |= {"key": key} if key else {}
    guess = _guess(files, seen)
    text = {each.name: _plain(getattr(guess.reading, each.name)) for each in fields(TextReading)}
    usual = TextReading()
    text = {name: value for name, value in text.items() if value != _plain(getattr(usual, name))}
    raw |= {"text": text} if text else {}
    write = {"columns": dict.fromkeys(guess.text_columns, "string")} if guess.text_columns else {}
    readable = _readable(files, seen)
    comments = _comments(kind, files, paths, readable, partial(seen.columns_read_by, reading=guess.reading))
    told = [f"Its text is {guess.reading.encoding}: {', '.join(guess.special_words)}"] if guess.special_words else []
    unread = [] if readable else [f"Its columns were not read: {seen.of(_by_age(files)[-1]).columns}"]
    return Proposal(
        name,
        f"{name}.lance",
        raw,
        write=write,
        comments=tuple(map(printable, [*comments, *told])),
        doubts=tuple(map(printable, [*unread, *guess.doubts])),
    )


def _readable(files: Sequence[LandedFile], seen: _FilesSeen) -> LandedFile | None:
    """Return the newest file that can be read, of the newest few."""
    newest = _by_age(files)[: -2 - _MOST_OTHERS : -1]
    return next((file for file in newest if isinstance(seen.of(file).columns, pa.Schema)), None)


def _guess(files: Sequence[LandedFile], seen: _FilesSeen) -> TextGuess:
    """Guess from the newest file that can be read and the oldest one."""
    chosen = [file for file in (_readable(files, seen), _by_age(files)[0]) if file is not None]
    guesses = [guess for file in chosen if (guess := seen.of(file).guess) is not None]
    return joint_guess(guesses) if guesses else TextGuess()


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _is_csv(name: str) -> bool:
    return raw_format(name)[0] == "csv"


def _by_age(files: Sequence[LandedFile]) -> list[LandedFile]:
    return sorted(files, key=lambda file: (file.modified, file.path))


def _key(paths: Sequence[str], ending: str) -> str | None:
    """Return a regular expression for batches of one file each; None if the path without endings tells them apart."""
    for pattern in _KEYS:
        keys = KeyPattern(pattern).search(paths)
        rest = {path.replace(key, "", 1) for path, key in zip(paths, keys, strict=True) if key}
        if all(keys) and len(set(keys)) == len(paths) and len(rest) == 1:
            return pattern
    if all("." not in PurePosixPath(path.removesuffix(ending)).name for path in paths):
        return None
    return f"^(?P<key>.+){re.escape(ending)}$"


def _comments(
    kind: _Kind,
    files: Sequence[LandedFile],
    paths: Sequence[str],
    readable: LandedFile | None,
    columns: Callable[[LandedFile], pa.Schema | str],
) -> Iterable[str]:
    *_, newest = by_age = _by_age(files)
    size = sum(file.size_bytes for file in files)
    yield f"Seen: {_num_files(len(files))} of {size:,} bytes, such as {paths[files.index(newest)]}"
    if readable is None:
        return
    now = columns(newest)
    if isinstance(now, str):
        yield f"The newest file was not read: {now}"
        now = now if readable is newest else columns(readable)
    else:
        readable = newest
    if isinstance(now, str):
        return
    yield columns_sentence(now, "" if readable is newest else f" of {readable.path}, the newest file that can be read")
    before = columns(by_age[0])
    if isinstance(before, pa.Schema) and before.names != now.names:
        differing = sorted(set(before.names) ^ set(now.names)) or ["their order"]
        yield f"The oldest file has other columns: {', '.join(differing)}"
    partitions = [folder.removesuffix("=*") for folder in kind.varying_folders if folder.endswith("=*")]
    if partitions:
        yield f"The folders' values of {', '.join(partitions)} do not become columns; the batch's key holds them"
