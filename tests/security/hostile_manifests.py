"""Generate manifests of a hostile writer: places outside the root, huge counts and contradictions, anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from lance_ops.pb import table_pb2
from tests.fuzz.anatomy import dissect_manifest

__all__ = ["OUTSIDE", "Change", "changed", "changes"]

OUTSIDE = "{outside}"
"""Stands for the folder beside the root that nothing may touch, until a manifest is built."""

_PLACES = (
    "../outside/secret.lance",
    "../../outside/secret.lance",
    f"{OUTSIDE}/secret.lance",
    OUTSIDE,
    f"file://{OUTSIDE}/secret.lance",
    f"file:{OUTSIDE}",
    f"//{OUTSIDE}",
    "..",
    ".",
    "",
    "/",
    "~",
    "a/../../outside/secret.lance",
    "..%2foutside%2fsecret.lance",
    "%2e%2e/outside/secret.lance",
    "%2e%2e%2foutside%2fsecret.lance",
    "..\\outside\\secret.lance",
    "C:\\outside\\secret.lance",
    "\\\\host\\share",
    "data//../../outside/secret.lance",
    "./././../outside/secret.lance",
    "s3://bucket/table",
    "gs://bucket/table",
    "az://container/table",
    "http://169.254.169.254/latest/meta-data",
    "memory://elsewhere",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "é" * 300,
    "main",
    "tree/dev",
    "_versions/1.manifest",
    "x" * 5000,
)
_NUMBERS = (0, 1, 2, 3, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 62) + 1, (1 << 63) - 1)

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


@dataclass(frozen=True)
class Change:
    """One change of a manifest: which kind, where (a number that is taken modulo the places), and to what."""

    kind: str
    at: int
    text: str
    number: int


def _set_text(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    slots = list(_slots(messages, lambda field: field.type == FieldDescriptor.TYPE_STRING))
    if slots:
        _set(slots[change.at % len(slots)], change.text)


def _set_file(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    """Let a data file be at a place."""
    files = [file for fragment in manifest.fragments for file in fragment.files]
    if files:
        files[change.at % len(files)].path = change.text


def _set_number(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    slots = list(_slots(messages, lambda field: field.cpp_type in _INTEGERS))
    if slots:
        low, high = _INTEGERS[slots[change.at % len(slots)][1].cpp_type]
        _set(slots[change.at % len(slots)], min(max(change.number, low), high))


def _add_base(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    """Name a base path, and let a data file, a deletion file or an index be beneath it."""
    manifest.base_paths.add(id=1 + change.at % 2, path=change.text, is_dataset_root=bool(change.number % 2))
    fragment = manifest.fragments[change.at % len(manifest.fragments)] if manifest.fragments else None
    if fragment is not None and fragment.files and change.number % 3:
        fragment.files[0].base_id = 1
        fragment.files[0].path = "secret.lance" if change.number % 5 else fragment.files[0].path
    elif fragment is not None:
        fragment.deletion_file.base_id = 1


def _add_rows(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    """Claim rows that are in no file."""
    manifest.max_fragment_id = max(manifest.max_fragment_id, 60)
    fragment = manifest.fragments.add(id=50 + change.at % 5, physical_rows=max(change.number, 0))
    if change.at % 3 == 0 and manifest.fragments[0].files:
        fragment.files.add().CopyFrom(manifest.fragments[0].files[0])


def _be_a_branch(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    manifest.branch = change.text


def _add_deletions(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    if manifest.fragments:
        deletion = manifest.fragments[change.at % len(manifest.fragments)].deletion_file
        deletion.read_version, deletion.id = max(change.number, 0), change.at
        deletion.num_deleted_rows = max(change.number, 0)


def _add_external_rows(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    if manifest.fragments:
        fragment = manifest.fragments[change.at % len(manifest.fragments)]
        fragment.external_row_ids.path = change.text
        fragment.external_row_ids.size = max(change.number, 0)


def _configure(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    keys = ("lance.auto_cleanup.interval", "lance.auto_cleanup.older_than", "lance_ops.verify_checksums", change.text)
    manifest.config[keys[change.at % len(keys)].replace("\0", "")] = str(change.number)


def _repeat_a_fragment(manifest: table_pb2.Manifest, messages: Sequence[Message], change: Change) -> None:
    if manifest.fragments:
        copy = table_pb2.DataFragment()
        copy.CopyFrom(manifest.fragments[change.at % len(manifest.fragments)])
        copy.id = max(min(change.number, (1 << 63) - 1), 0)
        manifest.fragments.append(copy)


_KINDS: dict[str, Callable[[table_pb2.Manifest, Sequence[Message], Change], None]] = {
    "text": _set_text,
    "file": _set_file,
    "number": _set_number,
    "base": _add_base,
    "rows": _add_rows,
    "branch": _be_a_branch,
    "deletions": _add_deletions,
    "row ids": _add_external_rows,
    "configuration": _configure,
    "fragment": _repeat_a_fragment,
}


def changes() -> st.SearchStrategy[list[Change]]:
    """Return a strategy of one to five changes."""
    texts = st.sampled_from(_PLACES) | st.text(max_size=12)
    numbers = st.sampled_from(_NUMBERS) | st.integers(-5, 100)
    kinds = [kind for kind in _KINDS if kind != "file"]  # "text" reaches the paths of data files too
    each = st.builds(Change, st.sampled_from(kinds), st.integers(0, 10_000), texts, numbers)
    return st.lists(each, min_size=1, max_size=5)


def changed(data: bytes, wanted: Sequence[Change], outside: str) -> bytes:
    """Return a manifest file with the changes."""
    anatomy = dissect_manifest(data)
    anatomy.manifest.ClearField("transaction_section")  # it is not built again: the transaction has a file of its own
    for change in wanted:
        text = change.text.replace(OUTSIDE, outside).encode("utf-8", "replace").decode()
        placed = Change(change.kind, change.at, text, change.number)
        _KINDS[change.kind](anatomy.manifest, anatomy.messages, placed)
    return anatomy.build()


def _slots(
    messages: Sequence[Message], wanted: Callable[[FieldDescriptor], bool]
) -> Iterator[tuple[Message, FieldDescriptor, int | None]]:
    """Yield every value of the wanted type that is set in the messages, at any depth: its message, field and index."""
    for message in messages:
        for field, value in message.ListFields():
            is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
            if is_map:
                continue
            repeated = not isinstance(value, Message | str | bytes | int | float)
            if field.message_type is not None:
                yield from _slots(list(value) if repeated else [value], wanted)
            elif wanted(field):
                yield from ((message, field, at) for at in range(len(value))) if repeated else [(message, field, None)]


def _set(slot: tuple[Message, FieldDescriptor, int | None], value: Any) -> None:
    message, field, at = slot
    if at is None:
        setattr(message, field.name, value)
    else:
        getattr(message, field.name)[at] = value
