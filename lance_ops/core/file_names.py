"""Make, parse and check the names of files and directories in a dataset, and of branches, tags and indices.

data/{24 binary digits}{26 hex digits}.lance        _versions/{2^64-1-version:020}.manifest   (V2)
_transactions/{read_version}-{uuid}.txn             _versions/{version}.manifest              (V1)
                                                    _versions/d{version}.manifest             (detached)
_deletions/{fragment}-{read_version}-{id}.arrow|bin _indices/{uuid}/…      _refs/tags/{name}.json
_refs/branches/{name, "/" as "%2F"}.json            tree/{branch}/…, a directory like the dataset's own
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

from lance_ops.core.errors import InvalidInput

__all__ = [
    "BRANCHES_DIR",
    "DATA_DIR",
    "DELETIONS_DIR",
    "DIRECTORIES",
    "INDICES_DIR",
    "MAIN_BRANCH",
    "REFS_DIR",
    "TAGS_DIR",
    "TRANSACTIONS_DIR",
    "TREE_DIR",
    "VERSIONS_DIR",
    "ManifestNaming",
    "belongs_to_this_branch",
    "blob_file_name",
    "branch_directory",
    "check_branch_name",
    "check_index_name",
    "check_reference_name",
    "data_file_name",
    "deletion_file_name",
    "file_names_of_job",
    "is_blob_sidecar",
    "is_detached",
    "is_file_of_job",
    "is_staged_manifest",
    "manifest_name",
    "new_deletion_file_id",
    "new_detached_version",
    "new_job_token",
    "parse_detached_name",
    "parse_manifest_name",
    "transaction_name",
]

DATA_DIR = "data"
DELETIONS_DIR = "_deletions"
INDICES_DIR = "_indices"
REFS_DIR = "_refs"
BRANCHES_DIR = "_refs/branches"
TAGS_DIR = "_refs/tags"
TRANSACTIONS_DIR = "_transactions"
TREE_DIR = "tree"
VERSIONS_DIR = "_versions"
DIRECTORIES = frozenset(
    {DATA_DIR, DELETIONS_DIR, INDICES_DIR, REFS_DIR, TRANSACTIONS_DIR, VERSIONS_DIR, "_lance_ops", "_mem_wal"}
)
"""The directories that hold files of a dataset or of a branch; `tree` holds other branches."""
MAIN_BRANCH = "main"
"""The name of the branch in the dataset's root; no other branch may have it."""

_SPREADING_DIGITS = 24
_TOKEN_DIGITS = 16
_TOKEN_DIGITS_OF_DELETION = 12
_DELETION_RANDOM_BITS = 15
_job_token: ContextVar[str] = ContextVar("job_token", default="")

_SYSTEM_INDEX = "__lance"
_SUFFIX = ".manifest"
_SIDECAR_SUFFIX = ".blob"
_U64_MAX = (1 << 64) - 1
_FIRST_DETACHED_VERSION = 1 << 63
_DETACHED_PREFIX = "d"
_V2_DIGITS = 20
_BRANCH_SEGMENT = re.compile(r"[\w.-]+")
_REFERENCE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")


class ManifestNaming(Enum):
    """V1 names count up. V2 names count down, so that the first name in a listing is the newest version."""

    V1 = 1
    V2 = 2


def is_detached(version: int) -> bool:
    """Return whether a version number is one of a detached version, which is in no history."""
    return version >= _FIRST_DETACHED_VERSION


def new_detached_version() -> int:
    """Return a random number for a detached version."""
    return _FIRST_DETACHED_VERSION | secrets.randbits(63)


def manifest_name(version: int, naming: ManifestNaming) -> str:
    """Return the file name of a version's manifest."""
    if is_detached(version):
        return f"{_DETACHED_PREFIX}{version}{_SUFFIX}"
    if naming is ManifestNaming.V1:
        return f"{version}{_SUFFIX}"
    return f"{_U64_MAX - version:0{_V2_DIGITS}d}{_SUFFIX}"


def parse_manifest_name(name: str) -> tuple[int, ManifestNaming] | None:
    """Return the version and naming of a manifest's file name; None for any other file (detached, staged, hint).

    None also if the number is a detached version's: those have names of their own, so no writer makes such a file.
    """
    stem = name.removesuffix(_SUFFIX)
    if stem == name or not (stem.isascii() and stem.isdigit()):
        return None
    number = int(stem)
    naming = ManifestNaming.V2 if len(stem) == _V2_DIGITS else ManifestNaming.V1
    version = _U64_MAX - number if naming is ManifestNaming.V2 else number
    return (version, naming) if 0 <= version < _FIRST_DETACHED_VERSION else None


def parse_detached_name(name: str) -> int | None:
    """Return the version of a detached manifest's file name; None for any other file."""
    digits = name.removeprefix(_DETACHED_PREFIX).removesuffix(_SUFFIX)
    is_number = digits.isascii() and digits.isdigit() and name == f"{_DETACHED_PREFIX}{digits}{_SUFFIX}"
    return int(digits) if is_number and _FIRST_DETACHED_VERSION <= int(digits) <= _U64_MAX else None


def is_staged_manifest(name: str) -> bool:
    """Return whether a file is a manifest staged for a manifest store: a manifest's name and a UUID."""
    manifest, dash, _ = name.partition(".manifest-")
    return bool(dash) and parse_manifest_name(f"{manifest}.manifest") is not None


def transaction_name(read_version: int, transaction_uuid: str) -> str:
    """Return the file name of a transaction in `_transactions`."""
    return f"{read_version}-{transaction_uuid}.txn"


def data_file_name() -> str:
    """Return a fresh name for a data file.

    The first three random bytes are written as binary digits, so that key prefixes spread evenly in object stores. In
    `file_names_of_job` the next eight bytes are the job's token.
    """
    raw = uuid.uuid4().bytes
    token = _job_token.get() or raw[3:11].hex()
    return f"{int.from_bytes(raw[:3]):024b}{token}{raw[11:].hex()}.lance"


def new_job_token() -> str:
    """Return a random token for the data files and the deletion files of one job."""
    return secrets.token_hex(_TOKEN_DIGITS // 2)


@contextmanager
def file_names_of_job(token: str) -> Iterator[None]:
    """Put a job's token into the names of the data files and deletion files that this thread makes in the block."""
    before = _job_token.set(token)
    try:
        yield
    finally:
        _job_token.reset(before)


def is_file_of_job(path: str, token: str) -> bool:
    """Return whether a path is that of a data file, its blob sidecar or a deletion file with a job's token in it."""
    directory, _, name = path.partition("/")
    if len(token) != _TOKEN_DIGITS:
        return False
    if directory == DELETIONS_DIR:
        digits = name.partition(".")[0].rpartition("-")[2]
        return digits.isascii() and digits.isdigit() and int(digits) >> _DELETION_RANDOM_BITS == _deletion_bits(token)
    return directory == DATA_DIR and name.startswith(token, _SPREADING_DIGITS)


def blob_file_name(data_file: str, blob_id: int) -> str:
    """Return the name, in `data`, of a data file's blob sidecar: the binary digits of its id, lowest first."""
    return f"{data_file.removesuffix('.lance')}/{f'{blob_id:032b}'[::-1]}{_SIDECAR_SUFFIX}"


def is_blob_sidecar(path: str) -> bool:
    """Return whether a file is a data file's blob sidecar, by its name."""
    return path.endswith(_SIDECAR_SUFFIX)


def new_deletion_file_id() -> int:
    """Return a random id of 63 bits; it distinguishes deletion files of the same fragment and version.

    In `file_names_of_job` its high 48 bits are from the job's token. The other bits distinguish attempts of one task,
    which write the same bytes.
    """
    token = _job_token.get()
    if not token:
        return secrets.randbits(63)
    return _deletion_bits(token) << _DELETION_RANDOM_BITS | secrets.randbits(_DELETION_RANDOM_BITS)


def deletion_file_name(fragment_id: int, read_version: int, deletion_id: int, suffix: str) -> str:
    """Return the file name of a deletion file in `_deletions`; `suffix` is `arrow` or `bin`."""
    return f"{fragment_id}-{read_version}-{deletion_id}.{suffix}"


def check_reference_name(name: str) -> str:
    """Return the name of a tag if every store can hold it; raise `InvalidInput` otherwise."""
    if not _REFERENCE_NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise InvalidInput(
            f"tag name {name!r}: use letters, digits, '.', '_' and '-'; begin with a letter or digit, no '..', "
            "do not end with '.' or '.lock'"
        )
    return name


def check_index_name(name: str) -> str:
    """Return the name of an index; raise `InvalidInput` if it is not printable or is reserved for the format."""
    if not name or not name.isprintable() or name.startswith(_SYSTEM_INDEX):
        raise InvalidInput(
            f"index name {name!r}: use printable characters, and do not begin with {_SYSTEM_INDEX!r}; pass name=…"
        )
    return name


def check_branch_name(name: str) -> str:
    """Return the name of a branch if every store can hold it; raise `InvalidInput` otherwise."""
    segments = name.split("/")
    allowed = all(_BRANCH_SEGMENT.fullmatch(segment) and segment != "." for segment in segments)
    if not allowed or ".." in name or name.endswith(".lock") or name == MAIN_BRANCH:
        raise InvalidInput(
            f"branch name {name!r}: use letters, digits, '.', '_' and '-', with single '/' between; no '..', do not "
            f"end with '.lock'; {MAIN_BRANCH!r} is taken"
        )
    if not DIRECTORIES.isdisjoint(segments[1:]) or TREE_DIR in segments[1:]:
        raise InvalidInput(f"branch name {name!r}: after a '/', the name of a directory in a branch is not allowed")
    return name


def belongs_to_this_branch(path: str) -> bool:
    """Return whether a path beneath a branch's root belongs to that branch, not to another branch beneath it."""
    first, slash, _ = path.partition("/")
    return not slash or first in DIRECTORIES


def branch_directory(name: str) -> str:
    """Return the directory of a branch beneath the dataset's root; raise as `check_branch_name` does."""
    return f"{TREE_DIR}/{check_branch_name(name)}"


def _deletion_bits(token: str) -> int:
    """Return the part of a job's token that the ids of its deletion files have."""
    return int(token[:_TOKEN_DIGITS_OF_DELETION], 16)
