"""Maintain a dataset: ingest, compact, index, clean up and measure; each verb is a plan, tasks and one commit."""

from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches

__all__ = [
    "batch_properties",
    "ingested_batches",
]
