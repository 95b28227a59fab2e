"""One example of each command, which its `--help` shows.

The tests run all of them, in this order, in a folder with tables in `lake/` and raw files in `landing/`.
"""

from __future__ import annotations

__all__ = ["EXAMPLES", "shown_example"]

EXAMPLES = {
    "init": "lance-ops init my-lake --landing landing",
    "inspect": "lance-ops inspect lake/orders.lance",
    "versions": "lance-ops versions lake/orders.lance",
    "diff": "lance-ops diff lake/orders.lance 1",
    "query": "lance-ops query lake/orders.lance --where \"city = 'Oslo'\" --column id",
    "count": "lance-ops count lake/orders.lance \"city = 'Oslo'\"",
    "statistics": "lance-ops statistics lake/orders.lance",
    "health": "lance-ops health lake/orders.lance --fail-on error",
    "debt": "lance-ops debt lake/orders.lance",
    "report": "lance-ops report lake/orders.lance -o orders.html",
    "top": "lance-ops top lake",
    "upkeep": "lance-ops upkeep lake/orders.lance --budget 10GB --dry-run",
    "fleet": "lance-ops fleet lake --budget 50GB --dry-run",
    "batches": "lance-ops batches my-lake/my_lake/defs/orders/defs.yaml",
    "verify": "lance-ops verify lake/orders.lance --quick",
    "repair": "lance-ops repair lake/orders.lance --copy backup/orders.lance --dry-run",
    "delete": 'lance-ops delete lake/orders.lance "amount < 10" --dry-run',
    "update": "lance-ops update lake/orders.lance \"city='Roma'\" --where \"city = 'Rome'\"",
    "add-columns": 'lance-ops add-columns lake/orders.lance "gross=amount * 1.25"',
    "merge": "lance-ops merge lake/orders.lance late.parquet --on id",
    "duplicates": "lance-ops duplicates lake/orders.lance --on id",
    "compact": "lance-ops compact lake/orders.lance --dry-run",
    "reindex": "lance-ops reindex lake/orders.lance --create id",
    "cleanup": "lance-ops cleanup lake/orders.lance --older-than 14d --dry-run",
    "restore": "lance-ops restore lake/orders.lance 1",
    "clone": "lance-ops clone lake/orders.lance copies/orders.lance",
    "migrate": "lance-ops migrate lake/orders.lance --data-storage-version 2.2",
    "erase": 'lance-ops erase lake/orders.lance "id = 7" --reason "request 4711" --dry-run',
    "plan": 'lance-ops plan lake/orders.lance delete_rows "predicate=id = 7" "reason=closed" --save plan.json',
    "execute": "lance-ops execute lake/orders.lance plan.json",
    "doctor": "lance-ops doctor lake/orders.lance",
    "schema": "lance-ops schema",
    "ingest": "lance-ops ingest lake/orders.lance landing/orders/2024-01-03.csv",
    "verbs": "lance-ops verbs delete_rows",
    "tags list": "lance-ops tags list lake/orders.lance",
    "tags create": "lance-ops tags create lake/orders.lance before-cleaning 1",
    "tags update": "lance-ops tags update lake/orders.lance release 1",
    "tags delete": "lance-ops tags delete lake/orders.lance release",
    "branches list": "lance-ops branches list lake/orders.lance",
    "branches create": "lance-ops branches create lake/orders.lance trial",
    "branches delete": "lance-ops branches delete lake/orders.lance old --yes",
}
"""By the command's name; of a group's commands, both names."""


def shown_example(command: str) -> str:
    """Return what stands at the end of a command's help."""
    return f"Example: {EXAMPLES[command]}"
