"""Decode raw files to Arrow batches, within limits, in a process of its own.

`decoding_process.py` talks to that process, and `fork_client.py` asks for it. The process loads the source code of the
other modules here and of `core/local_times.py`, and nothing else of this package. So the modules that it loads import
nothing but the standard library, numpy, pyarrow and each other, and know neither a file's name nor its store's options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.decoding.csv_files import NO_UTF8
    from lance_ops.maintenance.ingest.decoding.csv_rows import distinct_names
    from lance_ops.maintenance.ingest.decoding.decoder import decode
    from lance_ops.maintenance.ingest.decoding.decoding_process import DecodingProcess
    from lance_ops.maintenance.ingest.decoding.requests import (
        CUT_BYTES,
        MACHINE,
        START_BYTES,
        DecodingRefused,
        RawLimits,
        RawRequest,
        RowGroups,
        TextReading,
        lacks_resources,
    )
    from lance_ops.maintenance.ingest.decoding.text_values import is_list

__all__ = [
    "CUT_BYTES",
    "MACHINE",
    "NO_UTF8",
    "START_BYTES",
    "DecodingProcess",
    "DecodingRefused",
    "RawLimits",
    "RawRequest",
    "RowGroups",
    "TextReading",
    "decode",
    "distinct_names",
    "is_list",
    "lacks_resources",
]

_MODULES = {
    "CUT_BYTES": "requests",
    "MACHINE": "requests",
    "NO_UTF8": "csv_files",
    "START_BYTES": "requests",
    "DecodingProcess": "decoding_process",
    "DecodingRefused": "requests",
    "RawLimits": "requests",
    "RawRequest": "requests",
    "RowGroups": "requests",
    "TextReading": "requests",
    "decode": "decoder",
    "distinct_names": "csv_rows",
    "is_list": "text_values",
    "lacks_resources": "requests",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
