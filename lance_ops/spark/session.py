"""Start or find the Spark session that this library uses; the whole process shares it.

Starting a session takes 6 to 10 s, or half of that with an archive of Spark's classes (`warm`), and its first Python
job 2 to 5 s more. An existing session is used as it is, with the SQL settings below applied.

On a cluster the executors need this package and its dependencies: install it there, or ship an environment with
`spark.archives`. (`spark.submit.pyFiles` with the wheel is enough for the package itself, which is pure Python.)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from traceback import walk_tb

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkImportError, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, is_remote

from lance_ops.core.errors import ConfigError, InvalidInput
from lance_ops.spark.java import archive_options, use_java
from lance_ops.spark.masters import check_answers, check_master, endpoint_of
from lance_ops.spark.session_kind import server_of

__all__ = ["DAEMON_MODULE", "SETTINGS", "get_or_create"]

DAEMON_MODULE = "lance_ops.spark.worker_daemon"
"""The value of `spark.python.daemon.module` with which workers start quickly."""

SETTINGS: Mapping[str, str] = {
    # Timestamps travel as UTC; a session in another zone would show them as other wall times.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A compressed Arrow stream hung mapInArrow; the transport is a local pipe anyway.
    "spark.sql.execution.arrow.compression.codec": "none",
    # Without this setting, Spark fails every query on a source that can take filters.
    "spark.sql.python.filterPushdown.enabled": "true",
    # A speculative attempt writes a second set of files. Only one set is committed, so this is safe but wasteful.
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark hides by key, of its settings and of the environments of executors, and by its place in a plan. Its
    # defaults do not know Azure's keys or a URL with a password. An option of `format("lance")` hides the rest of its
    # line, because a value may contain any separator. A `private_format` needs none of this.
    "spark.redaction.regex": (
        "(?i)secret|password|passphrase|token|credential|signature|sas[._-]?key|manifest_store|pgpass|proxy_url"
        "|(access|account|master|private|service_account)[._-]?key"
    ),
    "spark.sql.redaction.options.regex": "(?i)url|^storage_options[.]",
    "spark.sql.redaction.string.regex": "(?i)storage_options[.].*",
}


_REMOTE = "SPARK_REMOTE"  # where Spark looks for the URL of a Connect server
_CONNECT = "sc://"  # how such a URL begins
_CONNECT_PORT = 15002  # of a URL that names none


def get_or_create(
    app_name: str = "lance-ops",
    *,
    master: str | None = None,
    ui: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the process's session; start one if there is none. It is then the active one of the calling thread.

    `master` defaults to that of `spark-submit`, or else to all cores of this machine. `config` overrides `SETTINGS`.
    Sets JAVA_HOME and, for a local master, PYSPARK_PYTHON, which the new JVM reads. Raises `ConfigError` if no Java is
    found, for a `master` that Spark does not know or that does not answer, and if Spark does not start.

    A `master` such as `sc://host:15002` is a server of Spark Connect. In a process of Spark Connect, return its session
    or that of `SPARK_REMOTE`, with the settings that a client can set. Raises `InvalidInput` for a `master` that is no
    server there, because the server has one, and for another server than the session's. Spark itself refuses a server
    in a process that has a session without Connect.
    """
    is_server = master is not None and master.startswith(_CONNECT)
    if is_server or is_remote() or _REMOTE in os.environ:
        return _of_connect(master, config)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    starts_jvm = SparkContext._active_spark_context is None and not submitted
    if starts_jvm and master is not None:
        check_master(master)
    home = use_java() if starts_jvm else None
    if master is None and not submitted:
        master = "local[*]"
    settings = {**SETTINGS, "spark.app.name": app_name, "spark.ui.enabled": str(ui).lower()}
    if master is not None:
        settings["spark.master"] = master
        if master.startswith("local"):
            # Otherwise the JVM starts the `python3` on PATH, which may lack this package.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            # Only here, because every worker fails to start on an executor whose Python cannot import the module.
            settings["spark.python.daemon.module"] = DAEMON_MODULE
            java_options = archive_options(home) if home is not None else None
            if java_options is not None:
                settings |= {f"spark.{process}.defaultJavaOptions": java_options for process in ("driver", "executor")}
    builder = SparkSession.builder.config(map={**settings, **(config or {})})
    session = _start(builder, master) if starts_jvm else builder.getOrCreate()
    # Spark finds a data source by the session that is active in the calling thread. No public call makes a session
    # active, but this one does so.
    session.createDataFrame([], "x int")
    return session


def _start(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    """Start a session; raise `ConfigError` with Spark's first line if it does not start.

    An interrupt ends the JVM that PySpark has begun to start.
    """
    try:
        return builder.getOrCreate()
    except KeyboardInterrupt as error:
        _end_begun_jvm(error)
        raise
    except (PySparkException, Py4JError) as error:
        told = str(getattr(error, "java_exception", None) or error).partition("\n")[0]
        named = "" if master is None else f" on master {master}"
        raise ConfigError(f"Spark did not start{named}, and says why above: {told}") from error


def _end_begun_jvm(error: BaseException) -> None:
    """End the JVM that PySpark was waiting for, which ignores the interrupt and would outlive this process.

    Until the JVM has answered, only a frame of PySpark knows its process.
    """
    for frame, _ in walk_tb(error.__traceback__):
        begun = frame.f_locals.get("proc")
        if frame.f_code is launch_gateway.__code__ and begun is not None:
            with begun:  # which closes its pipe and waits for its end
                begun.terminate()


def _of_connect(master: str | None, config: Mapping[str, str] | None) -> SparkSession:
    if master is not None and not master.startswith(_CONNECT):
        raise InvalidInput(
            f"master {master!r}: this process uses Spark Connect, whose server has a master. Leave it out, or "
            f"unset {_REMOTE} in a process that has no session yet"
        )
    server = _server_of_session()
    if master is not None and server not in (None, _endpoint(master)):
        raise InvalidInput(
            f"master {_CONNECT}{_endpoint(master)}: this process has a session of the server {_CONNECT}{server}, and "
            "Spark would use that one. Stop it first, or use a process for each server"
        )
    builder = SparkSession.builder
    if server is not None:  # PySpark returns the session that is there, and yet asks for one URL, of either place
        builder = builder if _REMOTE in os.environ else builder.remote(f"{_CONNECT}{server}")
    elif master is not None:
        check_answers(f"{_CONNECT}{_endpoint(master)}", [endpoint_of(master, _CONNECT_PORT)])
        builder = builder.remote(master)
    elif os.environ.get(_REMOTE, "").startswith("local"):  # then Spark starts the server here
        use_java()
    settings = {key: value for key, value in SETTINGS.items() if key.startswith("spark.sql.")}
    try:
        return builder.config(map={**settings, **(config or {})}).getOrCreate()
    except PySparkImportError as error:
        raise ConfigError(f"Spark Connect needs a package besides: {error}") from error


def _server_of_session() -> str | None:
    """Return the server of the thread's or the process's session of Spark Connect; None if there is none."""
    if not is_remote():
        return None
    try:
        return server_of(SparkSession.active())
    except PySparkRuntimeError:  # it was stopped
        return None


def _endpoint(url: str) -> str:
    """Return host and port of a server's URL, as a session names it."""
    host, port = endpoint_of(url, _CONNECT_PORT)
    return f"{f'[{host}]' if ':' in host else host}:{port}"
