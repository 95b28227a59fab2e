"""What keeps a dataset healthy: each verb is a plan, tasks that run anywhere, and one commit."""

from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches

__all__ = [
    "batch_properties",
    "ingested_batches",
]
