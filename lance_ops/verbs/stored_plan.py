"""A plan that is stored: a verb with its options, pinned to a version of a dataset, as JSON that a person can read.

    {"format": 1, "verb": "delete_rows", "uri": …, "read_version": 7, "version_id": …, "options": {…},
     "summary": …, "created_at": …, "digest": sha256 of all the above}

The digest finds damage and careless edits. It is no signature: a plan allows nothing that its options, given by hand,
would not allow, and the caller names the dataset again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.verbs.contract import Preview, Verb
from lance_ops.verbs.registry import verb_named

__all__ = ["StoredPlan", "make_verb", "parse_options"]

_FORMAT = 1
_MOST_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class StoredPlan:
    """A verb to execute on `read_version` of the dataset at `uri`.

    `version_id` distinguishes that version from one of the same number in a dataset that was created anew.
    """

    verb: Verb
    uri: str
    read_version: int
    version_id: str
    summary: str
    created_at: str

    @classmethod
    def of(cls, verb: Verb, data: LanceDataset, preview: Preview) -> StoredPlan:
        """Pin a verb to the opened version."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(verb, data.uri, data.version, version_id(data), preview.summary, moment)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values for JSON, with its digest."""
        content: dict[str, Any] = {
            "format": _FORMAT,
            "verb": self.verb.name,
            "uri": self.uri,
            "read_version": self.read_version,
            "version_id": self.version_id,
            "options": json.loads(json.dumps(asdict(self.verb))),
            "summary": self.summary,
            "created_at": self.created_at,
        }
        return content | {"digest": _digest(content)}

    def to_json(self) -> str:
        """Return the plan as text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> StoredPlan:
        """Parse a plan; raise `InvalidInput` for anything that `to_json` did not write."""
        if len(text) > _MOST_CHARACTERS:
            raise InvalidInput(f"a plan has at most {_MOST_CHARACTERS:,} characters: this is no plan")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"this is no plan: {error}") from None
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: object) -> StoredPlan:
        """Return the plan of `to_dict`; raise `InvalidInput` for anything else."""
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InvalidInput(f"this is no plan of format {_FORMAT}: make one with `lance-ops plan --save FILE`")
        signed = {name: value for name, value in content.items() if name != "digest"}
        if content.get("digest") != _digest(signed):
            raise InvalidInput("the plan was changed after it was made: make it again")
        texts = {name: content.get(name) for name in ("verb", "uri", "version_id", "summary", "created_at")}
        wrong = [name for name, value in texts.items() if not isinstance(value, str)]
        version, options = content.get("read_version"), content.get("options")
        if wrong or type(version) is not int or not isinstance(options, dict):
            raise InvalidInput(f"the plan lacks {(*wrong, 'read_version or options')[0]}: make it again")
        verb = make_verb(str(texts["verb"]), options)
        return cls(verb, str(texts["uri"]), version, *(str(texts[k]) for k in ("version_id", "summary", "created_at")))


def version_id(data: LanceDataset) -> str:
    """Return what distinguishes the opened version from another one of the same number."""
    manifest = data.snapshot.manifest
    return manifest.transaction_file or (manifest.timestamp.isoformat() if manifest.timestamp else "")


def make_verb(name: str, options: Mapping[str, Any]) -> Verb:
    """Return the verb of a name with these options.

    Raises `InvalidInput` that names an option that is unknown, of a wrong type, or lacking.
    """
    kind = verb_named(name)
    hints = {field.name: get_type_hints(kind)[field.name] for field in fields(kind)}
    given: dict[str, Any] = {}
    for option, value in options.items():
        if option not in hints:
            raise InvalidInput(f"{name} has no option {option!r}: it has {', '.join(hints)}")
        value = tuple(value) if isinstance(value, list) else value
        if not _fits(value, hints[option]):
            raise InvalidInput(f"{name}: option {option} cannot be {value!r}")
        given[option] = value
    try:
        return kind(**given)
    except TypeError:
        lacking = [field for field in hints if field not in given]
        raise InvalidInput(f"{name} needs more options, among {', '.join(lacking)}") from None


def parse_options(name: str, pairs: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return options from words of a command line, each word as the type of its option wants it."""
    kind = verb_named(name)
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for option, words in pairs.items():
        hint = hints.get(option)
        kinds = {hint, *get_args(hint)} if get_origin(hint) in (Union, UnionType) else {hint}
        if tuple in {get_origin(each) for each in kinds}:
            found[option] = tuple(words)
        elif Mapping in {get_origin(each) for each in kinds}:
            found[option] = {key: value for key, _, value in (word.partition("=") for word in words)}
        else:
            found[option] = _scalar(name, option, words[-1], kinds)
    return found


def _scalar(name: str, option: str, word: str, kinds: set[Any]) -> Any:
    if bool in kinds and word.lower() in ("true", "false"):
        return word.lower() == "true"
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(word)
            except ValueError:
                raise InvalidInput(f"{name}: option {option} is a number, not {word!r}") from None
    return word


def _fits(value: object, hint: Any) -> bool:
    """Return whether a value is of a field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if origin is Mapping:
        pairs = value.items() if isinstance(value, dict) else ((None, None),)
        return all(isinstance(key, str) and isinstance(each, str) for key, each in pairs)
    if hint is float:
        return type(value) in (int, float)
    return value is None if hint is type(None) else type(value) is hint


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
