"""A plan that is stored: a verb with its options, pinned to a version of a dataset, as JSON that a person can read.

    {"format": 1, "verb": "delete_rows", "uri": …, "read_version": 7, "version_id": …, "options": {…},
     "sources": {path: token, …}, "extent": {…}, "summary": …, "created_at": …, "digest": sha256 of all the above}

The digest finds damage and careless edits. It is no signature: a plan allows nothing that its options, given by hand,
would not allow, and the caller names the dataset again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.verbs.contract import Execution, Preview, Verb
from lance_ops.verbs.extent import Extent, extent_from_json
from lance_ops.verbs.given_options import make_verb, options_given
from lance_ops.verbs.sources import source_tokens, version_id

__all__ = ["StoredPlan"]

_FORMAT = 1
_MOST_CHARACTERS = 64 << 20
"""Room for the paths, keys and tokens of some 100,000 files; a longer text is not parsed."""


@dataclass(frozen=True)
class StoredPlan:
    """A verb to execute on `read_version` of the dataset at `uri`; 0 stands for a dataset that does not exist yet.

    `version_id` distinguishes that version from one of the same number in a dataset that was created anew. `sources`
    has a token of the content of each file or dataset that the verb reads, and of the module of each function.
    `extent` is that of the preview; see `WhenMoved.BOUNDED`.
    """

    verb: Verb
    uri: str
    read_version: int
    version_id: str
    summary: str
    created_at: str
    sources: Mapping[str, str] = field(default_factory=dict)
    extent: Extent = field(default_factory=dict)

    @classmethod
    def of(cls, verb: Verb, work: Execution, preview: Preview) -> StoredPlan:
        """Pin a verb to the version that it was previewed on."""
        target = work.target
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        sources = source_tokens(verb, work)
        named = version_id(target)
        return cls(verb, target.uri, target.version, named, preview.summary, moment, sources, preview.extent)

    @property
    def given(self) -> dict[str, Any]:
        """The verb's options that differ from their defaults."""
        return options_given(self.verb)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values for JSON, with its digest."""
        content: dict[str, Any] = {
            "format": _FORMAT,
            "verb": self.verb.name,
            "uri": self.uri,
            "read_version": self.read_version,
            "version_id": self.version_id,
            "options": json.loads(json.dumps(asdict(self.verb))),
            "sources": dict(self.sources),
            "extent": json.loads(json.dumps(self.extent)),
            "summary": self.summary,
            "created_at": self.created_at,
        }
        return content | {"digest": _digest(content)}

    def to_json(self) -> str:
        """Return the plan as text; raise `InvalidInput` for one that `from_json` would not read."""
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        if len(text) > _MOST_CHARACTERS:
            raise InvalidInput(
                f"a plan has at most {_MOST_CHARACTERS:,} characters, and this one of {len(self.sources):,} files has "
                f"{len(text):,}: plan fewer files at once"
            )
        return text

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
        wrong += [name for name in ("options", "sources", "extent") if not isinstance(content.get(name), dict)]
        version = content.get("read_version")
        if wrong or type(version) is not int:
            raise InvalidInput(f"the plan lacks {(*wrong, 'read_version')[0]}: make it again")
        verb = make_verb(str(texts["verb"]), content["options"])
        extent = extent_from_json(content["extent"])
        named = {name: str(texts[name]) for name in ("uri", "version_id", "summary", "created_at")}
        return cls(verb=verb, read_version=version, sources=content["sources"], extent=extent, **named)


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
