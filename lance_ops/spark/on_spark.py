"""The runner that users name: plans run on the workers of a Spark session, and take its DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lance_ops.core.records import dataclass
from lance_ops.spark import staging
from lance_ops.spark.running import WorkerTasks
from lance_ops.spark.translation import check_whole_microseconds

if TYPE_CHECKING:
    from lance_ops.core.versions import FileVersion
    from lance_ops.snapshot import Snapshot

__all__ = ["OnSpark"]


@dataclass(frozen=True)
class OnSpark(WorkerTasks):
    """Runs tasks on the workers of a Spark session, in at most `tasks_per_core` groups per core; takes DataFrames, too.

    A job of few bytes has a group for each core, because each group costs Spark its start. With dynamic
    allocation, the cores of all executors count that the session may ask for.

    `map` may be called in any thread. Its Spark job has the text of `job` as its description, and a group of its own
    unless the thread has set one. `on_progress` is called twice a second, in the thread that called `map`. Of a job
    that begins with the rows of a DataFrame, it counts the tasks of Spark, whose number may grow while the job runs.

    A job whose `size_bytes` is less than `least_bytes` runs in threads of this process, because Spark would take longer
    to start the tasks than they take. With `least_bytes=0` all tasks run on the workers.

    A session of Spark Connect has no context: the text stands in the tag of the job. Its server tells every few seconds
    how many groups are done, so `on_progress` counts their tasks together.
    """

    def takes(self, data: object) -> bool:
        """Return whether the data is a DataFrame, whose rows are on the cluster."""
        return isinstance(data, DataFrame)

    def write_frame(
        self,
        frame: DataFrame,
        like: Snapshot,
        uri: str,
        storage_options: Mapping[str, str],
        columns: Sequence[str] = (),
        keys: Sequence[str] = (),
    ) -> None:
        """Write a DataFrame as a new dataset with the columns of `like` that it has; see `staging.write_frame`."""
        staging.write_frame(self, frame, like, uri, storage_options, columns, keys)

    def check_keys_fit_frames(self, target: Snapshot, keys: Sequence[str]) -> None:
        """Raise `UnsupportedFeature` for a key of which the table has nanoseconds, as tasks find: Spark cuts them."""
        check_whole_microseconds("a merge by key", target, keys, self)

    def write_row_values(
        self,
        frame: DataFrame,
        key: str,
        names: Sequence[str],
        target: Snapshot,
        uri: str,
        storage_options: Mapping[str, str],
        version: FileVersion,
        *,
        replaces: bool,
    ) -> None:
        """Write values for rows that the column `key` names; see `staging.write_row_values`."""
        staging.write_row_values(
            self.session,
            frame,
            key,
            names,
            target,
            uri,
            storage_options,
            version,
            replaces=replaces,
            on_progress=self.on_progress,
        )
