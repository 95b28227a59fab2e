"""Remove the older versions that hold the rows, their tags, and the files that only they name.

This half of an erasure cannot be undone. A round does it only if no newest version can be rewritten any more.
"""

from __future__ import annotations

from contextlib import suppress

from lance_ops.core.errors import ObjectNotFound, ReferenceNotFound
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, NamedFiles, cleanup_old_versions
from lance_ops.maintenance.erasure.permission import ErasureOptions
from lance_ops.maintenance.erasure.proof import named_by_versions
from lance_ops.maintenance.erasure.report import ReportDraft
from lance_ops.maintenance.erasure.searching import Holdings
from lance_ops.refs import delete_tag, writable_reference_store
from lance_ops.runners import Runner

__all__ = ["Removal"]


class Removal:
    """Removes versions first and their files last, and adds what it removed to the draft of the report."""

    def __init__(self, options: ErasureOptions, runner: Runner, draft: ReportDraft) -> None:
        self._options = options
        self._runner = runner
        self._draft = draft
        self._of_removed_versions: NamedFiles | None = None

    def remove_holders(self, found: Holdings) -> None:
        """Remove the older versions that hold the rows, and their tags. `sweep` deletes the files that they name.

        Versions that running work keeps stay.
        """
        self._remember_files(found)
        store = writable_reference_store(found.main.head)
        going = {(branch.name, version) for branch in found.branches for version in branch.removable_now}
        for name, place in found.tags.items():
            if place in going:
                with suppress(ReferenceNotFound):  # somebody else deleted it
                    delete_tag(store, name)
                self._draft.add_names(removed_tags=[name])
        for branch in found.branches:
            if versions := branch.removable_now:
                options = CleanupOptions(
                    versions=versions,
                    error_if_tagged_old_versions=False,
                    delete_unverified=self._options.delete_unverified,
                    keep_branch_starts=not self._options.rewrite_branches,
                )
                cleanup_old_versions(branch.head, options, CleanupTasks(self._runner))
                self._draft.add_names(removed_versions=[f"{branch.name}/{number}" for number in sorted(versions)])

    def sweep(self, found: Holdings) -> None:
        """Delete the files that only removed versions named.

        With `delete_unverified`, delete every file that no version names.
        """
        if self._options.delete_unverified:
            for branch in found.branches:
                cleanup_old_versions(branch.head, CleanupOptions(versions=(), delete_unverified=True))
        if self._of_removed_versions is None:
            return
        store = found.main.head.store
        named = named_by_versions(found, deletes_others=True)
        left = [*(self._of_removed_versions.paths - named.paths)]
        for folder in self._of_removed_versions.index_folders - named.index_folders:
            if INDICES_DIR in folder.split("/"):
                left += [info.path for info in store.list(folder)]
        for path in left:
            sidecars = (
                [info.path for info in store.list(path.removesuffix(".lance"))] if path.endswith(".lance") else []
            )
            for each in (path, *sidecars):
                with suppress(ObjectNotFound):
                    store.delete(each)

    def _remember_files(self, found: Holdings) -> None:
        """Remember what the versions to remove name: their clean-up does not look into other branches' folders."""
        files = self._of_removed_versions = self._of_removed_versions or NamedFiles(found.main.head.uri)
        for branch in found.branches:
            for version in branch.removable_now:
                files.add(branch.head.at(version).manifest, branch.head.uri, is_kept=False)
