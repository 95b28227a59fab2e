"""Spark runs this as the daemon of its Python workers."""

from __future__ import annotations

from lance_ops.spark import worker_daemon

if __name__ == "__main__":
    worker_daemon.drop_zipped_pyspark()
    worker_daemon.serve()  # its module imports pyspark, so the door loads it only now
