"""Declared Lance datasets as Dagster definitions: a declaration in; assets, checks, jobs, sensors and a schedule out.

Two nodes stand for a dataset. `<dataset>/batches` is partitioned by ingestion batch: backfills live there, and any
number of batches is one run and one commit. `<dataset>`, the head, is not: each committed version, whoever made it, is
one materialization with the version's number as its data version; checks, freshness and downstream assets attach to it.
"""
