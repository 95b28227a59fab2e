"""Let an error of this library reach Spark's user without the frames of the worker that raised it.

Spark shows its user what a worker's handler of exceptions writes: a traceback, and the message in its last line. A
wrong option and a missing table are no faults of the code, so their frames only hide the message.

The handler writes the message alone if `SPARK_HIDE_TRACEBACK` is in the worker's environment, where Spark puts it for
`spark.sql.execution.pyspark.udf.hideTraceback.enabled`. `without_frames` puts it there for one error. The worker ends
with this error, so an error of any other code keeps its frames. A session with
`spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled` `false` shows all frames. Spark does not pass this setting
to the worker that plans a stream, so this one never shows them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.core.errors import LanceOpsError

__all__ = ["without_frames"]

_SIMPLIFIES = "SPARK_SIMPLIFIED_TRACEBACK"  # Spark sets it in workers only, by the session's setting
_HIDES = "SPARK_HIDE_TRACEBACK"
_RUNTIME = "SPARK_PYTHON_RUNTIME"
_WORKER = "PYTHON_WORKER"  # Spark's name of the runtime of any worker


@contextmanager
def without_frames(*, of_stream: bool = False) -> Iterator[None]:
    """Make Spark show only the message of an error of this library that leaves the block or the decorated function.

    `of_stream` is for what the worker that plans a stream calls.
    """
    try:
        yield
    except LanceOpsError:
        if os.environ.get(_RUNTIME) == _WORKER if of_stream else _SIMPLIFIES in os.environ:
            os.environ[_HIDES] = "1"
        raise
