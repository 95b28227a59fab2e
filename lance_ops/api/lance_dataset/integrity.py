"""The methods of `LanceDataset` that verify a dataset's files, mend what they can, and erase rows for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lance_ops.api.arrow_input import keys_with_names
from lance_ops.api.merge_source import read_keys
from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance import erasure, repair, verification
from lance_ops.reading import UserFilter
from lance_ops.runners import Runner

__all__ = ["Integrity"]


class Integrity(Handle):
    """Verification of the version that the handle stands on, repair of the newest version, and erasure from all."""

    def verify(
        self,
        *,
        level: str = "full",
        all_versions: bool = False,
        max_bytes: int | None = None,
        first_part: int = 0,
        runner: Runner | None = None,
    ) -> verification.VerificationReport:
        """Check this version's files, rows, deletion vectors, row ids and indices, and return what is wrong.

        The level "quick" checks that files are there, their sizes and their metadata; "full" also checks checksums,
        decodes every page, and compares index entries with rows. `all_versions` includes the files of the other
        retained versions. `max_bytes` bounds the verification: it checks fragments and index segments of about this
        many bytes from part `first_part` on, and the report's `next_part` is where to continue. `runner` executes the
        tasks; the default is this process's threads.
        """
        options = verification.VerificationOptions(
            _level(level), all_versions, max_bytes=max_bytes, first_part=first_part
        )
        return verification.verify(self._snapshot, options, runner)

    def plan_repair(
        self,
        report: verification.VerificationReport | None = None,
        *,
        copy: str | None = None,
        copy_storage_options: Mapping[str, str] | None = None,
        restore_older_version: bool = False,
        drop_damaged_rows: bool = False,
        delete_dangling_tags: bool = False,
        runner: Runner | None = None,
    ) -> repair.RepairPlan:
        """Return the actions that mend the damages of a report (by default, of a full verification), and what stays.

        `copy` is a copy of the dataset's folder, or a deep clone of a retained version. No action loses rows or tags,
        unless the other arguments allow it. If the newest manifest cannot be read, a handle on any older version plans
        to go back to the newest version that can be. Otherwise raises `InvalidInput` if the handle is not on the
        newest version. `runner` executes the verification.
        """
        options = repair.RepairOptions(
            copy, copy_storage_options, restore_older_version, drop_damaged_rows, delete_dangling_tags
        )
        of_manifest = repair.plan_repair_of_manifest(self._snapshot, options)
        return of_manifest or repair.plan_repair(self._snapshot, report or self.verify(runner=runner), options)

    def repair(self, plan: repair.RepairPlan) -> repair.RepairResult:
        """Apply a repair's plan, and move the handle to the newest version.

        Raises `RetryableConflict` if another version appeared since the repair was planned.
        """
        newest, result = repair.repair(self._snapshot, plan)
        self._move(newest)
        return result

    def erase(
        self,
        matching: UserFilter | None = None,
        *,
        reason: str,
        keys: Any = None,
        on: str | Iterable[str] | None = None,
        remove_tags: bool = False,
        rewrite_branches: bool = False,
        delete_unverified: bool = False,
        at_most_rows: int | None = None,
        runner: Runner | None = None,
    ) -> erasure.ErasureReport:
        """Erase rows from every retained version, tag and branch, and return the proof, which is kept beneath the root.

        Fragments with such rows are rewritten, their indices built anew, and the versions that hold the rows removed.
        Raises `InvalidInput` before anything is changed for tags and branches that hold them and that `remove_tags` and
        `rewrite_branches` do not permit to touch. See `erasure.ErasureOptions` and `erasure.erase`.

        Instead of a filter, `keys` with `on` name the rows, as for `delete_by_keys`, in any number: they are joined
        with the rows of every version that has the columns. This process, and each worker process of the runner, holds
        the distinct keys and a hash table of them. For worker processes, many keys are written to an encrypted file,
        which the erasure removes when it ends. Raw files and a DataFrame are copied beneath the root while their keys
        are read: pass other data if no copy may be made.
        """
        options = erasure.ErasureOptions(reason, remove_tags, rewrite_branches, delete_unverified, at_most_rows)
        if (matching is None) == (keys is None) or (keys is None) != (on is None):
            raise InvalidInput("say whose rows to erase: give either a filter, or keys with on")
        subject = erasure.Subject(matching)
        if on is not None:
            names = (on,) if isinstance(on, str) else tuple(on)
            given = read_keys(self._snapshot, keys_with_names(keys, names), names, runner)
            subject = erasure.Subject.of_keys(given)
        report = erasure.erase(self._snapshot, subject, options, runner)
        self._move(self._snapshot.latest())
        return report


def _level(name: str) -> verification.VerificationLevel:
    try:
        return verification.VerificationLevel(name)
    except ValueError:
        known = ", ".join(repr(level.value) for level in verification.VerificationLevel)
        raise InvalidInput(f"the level of a verification is one of {known}, not {name!r}") from None
