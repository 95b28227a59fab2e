"""Serve Spark Connect at a free port of this machine, print the port, and end when standard input ends."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from lance_ops.spark.java import archive_options, use_java
from lance_ops.spark.session import DAEMON_MODULE

_SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "localhost",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": DAEMON_MODULE,
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.progress.reportInterval": "200ms",
}


def main() -> None:
    """Start the session whose plugin is the server; its tasks are tried four times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = archive_options(use_java()) or ""
    builder = SparkSession.builder.master("local[2,4]").config("spark.driver.defaultJavaOptions", options)
    session = builder.config(map=dict(_SETTINGS)).getOrCreate()
    jvm = session.sparkContext._jvm
    service = getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print(getattr(service, "MODULE$").localPort(), flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
