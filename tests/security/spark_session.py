"""Use a table with planted options in a Spark session that records all it shows; run by `test_spark_secrets`.

    python -m tests.security.spark_session FOLDER

It writes the event log, the answers of the REST API and the texts of errors to the folder, and plans to its output.
"""

from __future__ import annotations

import http.client
import json
import sys
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import lance_ops
from lance_ops.spark import OnSpark, create_view, get_or_create, private_format
from tests.security.planted import plain


def main(folder: Path) -> None:
    """Read, write, explain and fail, by private formats and by plain options."""
    shown = folder / "shown"
    for each in (shown, folder / "events"):
        each.mkdir()
    session = get_or_create(
        "secrets",
        master="local[2]",
        ui=True,
        config={
            "spark.driver.memory": "1g",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.executorEnv.AWS_SECRET_ACCESS_KEY": plain("executor"),
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    uri = str(folder / "table.lance")
    options = {"manifest_store": f"sqlite:///{folder}/{plain('store')}.db", "aws_secret_access_key": plain("key")}
    lance_ops.write_dataset(pa.table({"x": range(4)}), uri, storage_options=options)

    lake = private_format(session, options)
    create_view(session, "by_view", uri, storage_options=options)
    session.sql("INSERT INTO by_view SELECT id FROM range(2)")
    session.read.format(lake).load(uri).createOrReplaceTempView("by_format")
    session.sql("INSERT INTO by_format SELECT id FROM range(2)")
    session.range(3).selectExpr("id AS x").write.format(lake).mode("append").save(uri)
    given = {f"storage_options.{key}": value for key, value in options.items()}
    session.read.format("lance").options(**given).load(uri).createOrReplaceTempView("by_options")
    session.sql("INSERT INTO by_options SELECT id FROM range(2)")
    for view in ("by_view", "by_format", "by_options"):
        session.table(view).groupBy("x").count().collect()
        for mode in ("extended", "formatted", "cost"):
            session.table(view).explain(mode=mode)
        print(session.sql(f"DESCRIBE EXTENDED {view}").collect())
    lance_ops.dataset(uri, storage_options=options).optimize.compact_files(runner=OnSpark(session))

    unreachable = {"manifest_store": f"postgresql+psycopg://u:{plain('url')}@127.0.0.1:1/x?connect_timeout=1"}
    calls: tuple[Callable[[], object], ...] = (
        lambda: create_view(session, "no", uri, storage_options=unreachable),
        lambda: create_view(session, "no", f"s3://key:{plain('uri')}@bucket/x"),
        lambda: session.read.format(private_format(session, unreachable)).load(uri).collect(),
        lambda: session.range(1).write.format(private_format(session, unreachable)).mode("append").save(uri),
        lambda: session.sql("SELECT no_such FROM by_view").collect(),
    )
    for number, call in enumerate(calls):
        try:
            call()
        except Exception as error:  # noqa: BLE001 - Spark's classes differ between its versions
            text = "".join(traceback.format_exception(error)) + repr(error)
            (shown / f"error-{number}.txt").write_text(text)

    address, application = session.sparkContext.uiWebUrl, session.sparkContext.applicationId
    answers = f"{address}/api/v1/applications/{application}"
    plans = f"{answers}/sql?details=true&planDescription=true&length=1000"
    for name, url in {"sql": plans, "environment": f"{answers}/environment", "page": f"{address}/SQL/"}.items():
        (shown / f"{name}.txt").write_bytes(read(url))
    (shown / "done.json").write_text(json.dumps({"rows": session.table("by_format").count(), "format": lake}))
    session.stop()


def read(url: str) -> bytes:
    """Return a page of Spark's; it ends a connection after eight seconds, in which a busy machine makes no page."""
    for attempts_left in reversed(range(5)):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                found: bytes = answer.read()
                return found
        except (OSError, http.client.HTTPException):
            if not attempts_left:
                raise
    raise AssertionError


if __name__ == "__main__":
    main(Path(sys.argv[1]))
