"""The method of `LanceDataset` that verifies a dataset's files."""

from __future__ import annotations

from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance.verification import VerificationLevel, VerificationOptions, VerificationReport, verify
from lance_ops.writing import Runner

__all__ = ["Integrity"]


class Integrity(Handle):
    """Verification of the version that the handle stands on."""

    def verify(
        self, *, level: str = "full", all_versions: bool = False, runner: Runner | None = None
    ) -> VerificationReport:
        """Check this version's files, rows, deletion vectors, row ids and indices, and return what is wrong.

        The level "quick" checks that files are there, their sizes and their metadata; "full" also checks checksums,
        decodes every page, and compares index entries with rows. `all_versions` includes the files of the other
        retained versions. `runner` executes the tasks; the default is this process's threads.
        """
        return verify(self._snapshot, VerificationOptions(_level(level), all_versions), runner)


def _level(name: str) -> VerificationLevel:
    try:
        return VerificationLevel(name)
    except ValueError:
        known = ", ".join(repr(level.value) for level in VerificationLevel)
        raise InvalidInput(f"the level of a verification is one of {known}, not {name!r}") from None
