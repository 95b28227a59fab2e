"""The errors that this library raises.

Each message names the file, field, key or version concerned and says what to do. An error class also derives from the
builtin (`ValueError`, `FileNotFoundError`, …) that callers would expect, so that code written for the reference
keeps working.
"""

from __future__ import annotations

from lance_ops.core.redaction import redact

__all__ = [
    "AlertNotSent",
    "ChecksumMismatch",
    "CommitConflict",
    "CommitStateUnknown",
    "ConfigError",
    "CorruptFile",
    "DatasetAlreadyExists",
    "DatasetNotFound",
    "ErasureNotProven",
    "HeldByRunningWork",
    "IncompatibleTransaction",
    "IndexNotFound",
    "InvalidFilter",
    "InvalidInput",
    "LanceOpsError",
    "MissingPackage",
    "ObjectNotFound",
    "PlanOutdated",
    "RawFileNotAsListed",
    "RawFileRefused",
    "RawFileTooLarge",
    "ReadTooLarge",
    "ReferenceNotFound",
    "RepairIncomplete",
    "RetryableConflict",
    "SchemaMismatch",
    "StoreError",
    "StoreUnreachable",
    "TasksLost",
    "TooManyConcurrentWriters",
    "UnsafePath",
    "UnsafeStore",
    "UnsupportedFeature",
    "VersionNotFound",
    "WriteRefused",
    "WrongType",
]


class LanceOpsError(Exception):
    """Root of all errors raised by this library.

    A message shows no password, signature or token of a URL or a connection string, whoever wrote it.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidInput(LanceOpsError, ValueError):
    """An argument, option or name that cannot be used as given."""


class WrongType(InvalidInput, TypeError):
    """An argument of a type that cannot be used; names the type, and the types that can be used."""


class ConfigError(InvalidInput):
    """A deployment's configuration names something that does not exist or does not fit."""


class AlertNotSent(LanceOpsError):
    """A channel did not take an alert; names the channel and its answer, never a URL.

    `is_final` says that the channel refuses this alert, and not every one, so that it will refuse it again.
    """

    def __init__(self, channel: str, reason: str, is_final: bool = False) -> None:
        self.channel = channel
        self.reason = reason
        self.is_final = is_final
        remedy = "it refuses this alert for good" if is_final else "see that it is up and that the secret is valid"
        super().__init__(f"{channel} did not take an alert: {reason}; {remedy}")

    def __reduce__(self) -> tuple[type[AlertNotSent], tuple[str, str, bool]]:
        return type(self), (self.channel, self.reason, self.is_final)


class MissingPackage(LanceOpsError, ImportError):
    """An optional package that cannot be imported; names the extra of lance-ops that installs it, where one does."""

    def __init__(self, use: str, package: str, extra: str | None, reason: str) -> None:
        self.use = use
        self.package = package
        self.extra = extra
        self.reason = reason
        advice = f"; run pip install 'lance-ops[{extra}]'" if extra else ""
        super().__init__(f"{use} needs {package}, which cannot be imported: {reason}{advice}")

    def __reduce__(self) -> tuple[type[MissingPackage], tuple[str, str, str | None, str]]:
        return type(self), (self.use, self.package, self.extra, self.reason)


class SchemaMismatch(InvalidInput, OSError):
    """Data that does not fit the table: another Arrow schema or another number of rows; names the field.

    It is also an `OSError`, because the reference raises that for data that does not fit.
    """


class RawFileRefused(InvalidInput):
    """A raw file that ingestion does not read: a link, one beyond a limit, or bytes that contradict its format."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = redact(path)
        self.reason = redact(reason)
        super().__init__(f"raw file {self.path}: {self.reason}")

    def __reduce__(self) -> tuple[type[RawFileRefused], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class RawFileNotAsListed(RawFileRefused):
    """A raw file that is gone, or that changed, since it was listed: list it again."""


class RawFileTooLarge(RawFileRefused):
    """A raw file beyond a limit of ingestion; `limit` is the limit's name."""

    def __init__(self, path: str, reason: str, limit: str, allowed: float) -> None:
        self.found = reason
        self.limit = limit
        self.allowed = allowed
        advice = f"raw.limits.{limit} is {allowed:,}; raise it if the file is sound"
        super().__init__(path, f"{reason}; {advice}")

    def __reduce__(self) -> tuple[type[RawFileTooLarge], tuple[str, str, str, float]]:  # type: ignore[override]  # its own
        return type(self), (self.path, self.found, self.limit, self.allowed)


class InvalidFilter(InvalidInput):
    """A filter that does not parse or does not fit the schema; names the place or the column."""


class UnsupportedFeature(LanceOpsError, NotImplementedError):
    """A feature of the format or of the reference that this library does not have; names the feature."""

    def __init__(self, feature: str, where: str | None = None) -> None:
        self.feature = feature
        self.where = where
        super().__init__(f"{where}: {feature} is not supported" if where else f"{feature} is not supported")

    def __reduce__(self) -> tuple[type[UnsupportedFeature], tuple[str, str | None]]:
        return type(self), (self.feature, self.where)


class ReadTooLarge(UnsupportedFeature):
    """A read that needs too much memory, or that finds far more rows or bytes than the files can hold.

    The message says whether the caller must read fewer rows at a time, or may lift the limit.
    """


class CorruptFile(LanceOpsError, ValueError):
    """A file that contradicts the format or the manifest; names the file and the place in it."""

    def __init__(self, path: str, place: str, reason: str) -> None:
        self.path = path
        self.place = place
        self.reason = reason
        super().__init__(f"{path}: {place}: {reason}")

    def __reduce__(self) -> tuple[type[CorruptFile], tuple[str, str, str]]:
        return type(self), (self.path, self.place, self.reason)


class ChecksumMismatch(CorruptFile):
    """Bytes of a file that do not have the checksum that was written with them: they changed since."""

    def __init__(self, path: str, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        reason = "the checksum does not match, so they changed after they were written: run `lance-ops verify`"
        super().__init__(path, f"bytes {start} to {stop}", reason)

    def __reduce__(self) -> tuple[type[ChecksumMismatch], tuple[str, int, int]]:  # type: ignore[override]  # its own
        return type(self), (self.path, self.start, self.stop)


class StoreError(LanceOpsError, OSError):
    """A store operation failed. The outcome of a write is then unknown, unless the error is a `WriteRefused`."""


class StoreUnreachable(StoreError):
    """A store could not be reached, or did not answer. The outcome of a write then counts as unknown."""


class ObjectNotFound(StoreError, FileNotFoundError):
    """No object at that path."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"no object at {path}")

    def __reduce__(self) -> tuple[type[ObjectNotFound], tuple[str]]:
        return type(self), (self.path,)


class WriteRefused(StoreError):
    """The store refused a write: nothing was written, and nothing will appear later."""


class UnsafeStore(StoreError):
    """The store accepts a conditional write and ignores the condition, so no commit on it is safe."""


class UnsafePath(LanceOpsError, ValueError):
    """A path that leaves the root that it belongs to, or a location that the caller has not allowed."""


class DatasetNotFound(LanceOpsError, FileNotFoundError, ValueError):
    """No Lance dataset at that URI."""


class DatasetAlreadyExists(LanceOpsError, FileExistsError):
    """A dataset is already there and the mode asked for a new one."""


class VersionNotFound(LanceOpsError, ValueError):
    """The dataset has no such version, or it was cleaned up."""


class ReferenceNotFound(LanceOpsError, ValueError):
    """The dataset has no tag or branch of that name."""


class IndexNotFound(LanceOpsError, KeyError):
    """The dataset has no index of that name."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0])


class CommitConflict(LanceOpsError, OSError):
    """A concurrent commit conflicts with this one. `retryable` says whether planning the work again can succeed.

    The reference calls it `CommitConflictError`. A `commit_lock` raises it if another writer holds the lock.
    """

    def __init__(self, message: str = "", retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class RetryableConflict(CommitConflict):
    """Planning the same work again on the newest version can succeed."""


class IncompatibleTransaction(CommitConflict):
    """The work no longer makes sense on the newest version; trying again cannot help."""

    def __init__(self, message: str = "", retryable: bool = False) -> None:
        super().__init__(message, retryable)


class TooManyConcurrentWriters(CommitConflict):
    """Another writer committed first in every attempt, up to the limit of retries."""


class PlanOutdated(CommitConflict):
    """Versions that appeared since a stored plan was made contradict it; names them. Plan again."""

    def __init__(self, message: str = "", retryable: bool = False) -> None:
        super().__init__(message, retryable)


class ErasureNotProven(LanceOpsError):
    """Files remain that may hold erased rows; names some of them, and the report that names all.

    `retry_may_help` says that only running work is in the way: its young files without a version, which it may commit
    or remove, or the versions that it keeps.
    """

    def __init__(self, message: str = "", retry_may_help: bool = False) -> None:
        super().__init__(message)
        self.retry_may_help = retry_may_help


class HeldByRunningWork(InvalidInput):
    """Running work keeps versions that would be removed; names its files. Nothing was changed: try again later."""


class RepairIncomplete(LanceOpsError):
    """A repair left damages; names some of them, and what would mend them."""


class CommitStateUnknown(LanceOpsError):
    """The store did not answer whether a commit succeeded. Nothing was deleted.

    `resolve` on the dataset with this `uuid` gives the outcome later.
    """

    def __init__(self, uuid: str, version: int, reason: str) -> None:
        self.uuid = uuid
        self.version = version
        self.reason = reason
        super().__init__(
            f"commit of transaction {uuid} as version {version}: outcome unknown ({reason}); nothing was deleted, "
            "ask again with resolve(uuid) when the store answers"
        )

    def __reduce__(self) -> tuple[type[CommitStateUnknown], tuple[str, int, str]]:
        return type(self), (self.uuid, self.version, self.reason)


class TasksLost(LanceOpsError):
    """A cluster could not finish a plan's tasks, for example because a worker died; nothing was committed."""
