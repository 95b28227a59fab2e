"""Make formats of Spark that keep their storage options out of every text that Spark writes.

Spark shows the options of `format("lance")` in plans, and plans are in the event log, the web interface and the REST
API. A private format is a source with storage options of its own. They travel inside the pickled source, which no plan
shows.

    lake = private_format(spark, {"aws_access_key_id": …, "aws_secret_access_key": …})
    spark.read.format(lake).load(uri)
    df.write.format(lake).mode("append").save(uri)
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from hashlib import sha256
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from lance_ops.core.errors import InvalidInput
from lance_ops.spark.data_source import LanceSource

__all__ = ["private_format"]

_PREFIX = "storage_options."
_KEY = secrets.token_bytes(32)  # of this process, so that nobody can test guesses of a secret against a name
_DIGITS = 16
_REGISTERED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def private_format(session: SparkSession, storage_options: Mapping[str, str] | None) -> str:
    """Return the name of a format that is `lance` with these storage options, for this session only.

    The same options give the same name in one process. Without options the name is `lance`. Storage options that a
    query gives are added to these, and replace equal keys. Raises `InvalidInput` for a key or value that is no text.
    """
    if not storage_options:
        return LanceSource.name()
    for key, value in storage_options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput("storage_options: keys and values are texts")
    private = {f"{_PREFIX}{key.lower()}": value for key, value in storage_options.items()}
    text = json.dumps(private, sort_keys=True)
    name = f"{LanceSource.name()}_{hmac.new(_KEY, text.encode(), sha256).hexdigest()[:_DIGITS]}"
    registered = _REGISTERED.setdefault(session, set())
    if name not in registered:
        session.dataSource.register(_source(name, private))
        registered.add(name)
    return name


def _source(name: str, private: Mapping[str, str]) -> type[LanceSource]:
    """Return a source that has the options. It is pickled by value, because no module holds it under a name."""

    class PrivateSource(LanceSource):
        @classmethod
        def name(cls) -> str:
            return name

        def __init__(self, options: Mapping[str, str]) -> None:
            super().__init__({**private, **options})

    return PrivateSource
