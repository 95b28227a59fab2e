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
from lance_ops.maintenance.ingest import RawFile, RawReader, RawReading, TextReading, printable, raw_format

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
    """The proposed datasets, and a sentence for each ending of files that nobody would read."""

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


class _Look(NamedTuple):
    guess: TextGuess | None
    columns: pa.Schema | str


class _Looks:
    """How files seem to be written, and their columns, or why they cannot be read. Each file is opened once."""

    def __init__(self, reader: RawReader) -> None:
        self._reader = reader
        self._found: dict[str, _Look] = {}

    def look(self, file: LandedFile) -> _Look:
        if file.path not in self._found:
            self._found[file.path] = self._looked_at(file)
        return self._found[file.path]

    def by(self, file: LandedFile, reading: TextReading) -> pa.Schema | str:
        """Return the columns by another reading than the file's own; it is opened again."""
        found = self.look(file)
        known = found.guess is None or found.guess.reading == reading
        return found.columns if known else self._columns(file, lambda *_: reading)

    def _looked_at(self, file: LandedFile) -> _Look:
        if file.size_bytes == 0:
            return _Look(None, f"{file.path} is empty")
        guesses: list[TextGuess] = []

        def guess(start: bytes, is_whole: bool) -> TextReading:
            guesses.append(guess_text(start, is_csv=_is_csv(file.path), is_whole=is_whole))
            return guesses[0].reading

        columns = self._columns(file, guess)
        return _Look(guesses[0] if guesses else None, columns)

    def _columns(self, file: LandedFile, guess: Callable[[bytes, bool], TextReading]) -> pa.Schema | str:
        try:
            return self._reader.guessed_schema(RawFile(file.uri, file.size_bytes, file.token, file.listed), guess)
        except LanceOpsError as error:
            return str(error)


def survey_landing(location: StoreLocation) -> LandingSurvey:
    """List a landing folder; read the columns of up to four files of each kind, and guess how their text is written.

    Raises `ConfigError` if the folder has no file.
    """
    listed = [file for file in list_files(location) if isinstance(file, LandedFile)]
    seen = [file for file in listed if not any(part.startswith(("_", ".")) for part in file.path.split("/"))]
    if not seen:
        raise ConfigError(f"{location.public_uri}: there is no file in this landing folder; land one, or leave it out")
    kinds: defaultdict[_Kind, list[LandedFile]] = defaultdict(list)
    unread: Counter[str] = Counter()
    for file in sorted(seen, key=lambda file: file.path):
        if any(sign in file.path for sign in _EXPANDED):
            unread["with a template in their path are not declared"] += 1
            continue
        kind = _kind_of(file.path)
        if kind is None:
            ending = PurePosixPath(file.path).suffix or "no ending"
            unread[f"with {ending} are not read; write Parquet, CSV or JSON instead"] += 1
        else:
            kinds[kind].append(file)
    marked = {file.path.rpartition("/")[0] for file in listed if PurePosixPath(file.path).name == _MARKER}
    with RawReader(location.storage_options, RawReading()) as reader:
        looks = _Looks(reader)
        found = [
            _proposal(PurePosixPath(location.uri).name, kind, files, marked, looks)
            for kind, files in _joined(kinds, looks)
        ]
    ignored = [f"files {why}: {count:,}" for why, count in unread.items()]
    return LandingSurvey(with_distinct_names(found), tuple(ignored))


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


def _joined(kinds: dict[_Kind, list[LandedFile]], looks: _Looks) -> Iterator[tuple[_Kind, list[LandedFile]]]:
    """Yield the kinds of files. Kinds in the same folders become one if `_are_one` says that they are one dataset."""
    beside: defaultdict[tuple[str, tuple[str, ...], str], list[_Kind]] = defaultdict(list)
    for kind in kinds:
        beside[kind.folder, kind.varying_folders, kind.ending].append(kind)
    for (folder, varying, ending), group in beside.items():
        if _are_one([kinds[kind] for kind in group], group, looks):
            files = [file for kind in group for file in kinds[kind]]
            words = group[0].words if len(group) == 1 and not folder and not varying else ""
            name = "*" if not words else group[0].name
            yield _Kind(folder, varying, name, words, ending), sorted(files, key=lambda file: file.path)
        else:
            yield from ((kind, kinds[kind]) for kind in group)


def _are_one(files: Sequence[Sequence[LandedFile]], kinds: Sequence[_Kind], looks: _Looks) -> bool:
    if len(kinds) == 1 or len(kinds) > _MOST_KINDS:
        return True
    if any("*" in kind.name for kind in kinds):
        return False
    found: set[tuple[str, ...]] = set()
    for of_kind in files:
        file = _readable(of_kind, looks)
        if file is None:
            return False
        guess, columns = looks.look(file)
        assert isinstance(columns, pa.Schema)
        found.add((guess.reading.delimiter if guess else "", *columns.names))
    return len(found) == 1


def _proposal(
    landing: str,
    kind: _Kind,
    files: Sequence[LandedFile],
    marked: set[str],
    looks: _Looks,
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
    guess = _guess(files, looks)
    text = {each.name: _plain(getattr(guess.reading, each.name)) for each in fields(TextReading)}
    usual = TextReading()
    text = {name: value for name, value in text.items() if value != _plain(getattr(usual, name))}
    raw |= {"text": text} if text else {}
    write = {"columns": dict.fromkeys(guess.texts, "string")} if guess.texts else {}
    readable = _readable(files, looks)
    seen = _comments(kind, files, paths, readable, partial(looks.by, reading=guess.reading))
    told = [f"Its text is {guess.reading.encoding}: {', '.join(guess.words)}"] if guess.words else []
    unread = [] if readable else [f"Its columns were not read: {looks.look(_by_age(files)[-1]).columns}"]
    return Proposal(
        name,
        f"{name}.lance",
        raw,
        write=write,
        comments=tuple(map(printable, [*seen, *told])),
        doubts=tuple(map(printable, [*unread, *guess.doubts])),
    )


def _readable(files: Sequence[LandedFile], looks: _Looks) -> LandedFile | None:
    """Return the newest file that can be read, of the newest few."""
    newest = _by_age(files)[: -2 - _MOST_OTHERS : -1]
    return next((file for file in newest if isinstance(looks.look(file).columns, pa.Schema)), None)


def _guess(files: Sequence[LandedFile], looks: _Looks) -> TextGuess:
    """Guess from the newest file that can be read and the oldest one."""
    chosen = [file for file in (_readable(files, looks), _by_age(files)[0]) if file is not None]
    guesses = [guess for file in chosen if (guess := looks.look(file).guess) is not None]
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
    count = f"{len(files):,} files" if len(files) > 1 else "1 file"
    yield f"Seen: {count} of {size:,} bytes, such as {paths[files.index(newest)]}"
    if readable is None:
        return
    if readable is not newest:
        yield f"The newest file was not read: {columns(newest)}"
    now = columns(readable)
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
