"""Maintain a dataset: ingest, compact, index, clean up, verify, repair and measure; each verb begins with a plan."""

from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches

__all__ = [
    "batch_properties",
    "ingested_batches",
]
