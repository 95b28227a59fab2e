"""Build the check that names what ingestion sets aside in a landing folder.

The check is not blocking and fails as a warning: the dataset stays as it was, and ingestion takes the other files.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.landing.landing import Landing, list_landing, set_aside_sentences

__all__ = ["build_landing_check"]


def build_landing_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `landing_readable` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    raw = config.landing()

    def landing_readable() -> dg.AssetCheckResult:
        try:
            landing = list_landing(raw, datetime.now(UTC))
        except (LanceOpsError, OSError) as error:
            # An error of the operating system may quote what is secret; errors of this library do not.
            reason = str(error) if isinstance(error, LanceOpsError) else type(error).__name__
            return _result(False, f"the landing folder cannot be listed: {reason}", {})
        set_aside = len(landing.set_aside)
        return _result(not set_aside, _sentence(landing), {"lance/set_aside": set_aside, **_listed(landing)})

    return dg.asset_check(
        asset=names.head,
        name="landing_readable",
        description="No file in the landing folder is set aside for its name or its kind.",
        additional_deps=[names.batches],
    )(landing_readable)


def _result(passed: bool, sentence: str, metadata: dict[str, Any]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=passed, severity=dg.AssetCheckSeverity.WARN, description=sentence, metadata=metadata
    )


def _listed(landing: Landing) -> dict[str, Any]:
    if not landing.set_aside:
        return {}
    return {"lance/set_aside_files": dg.MetadataValue.json(set_aside_sentences(landing))}


def _sentence(landing: Landing) -> str:
    return ". ".join(set_aside_sentences(landing)) or "no file is set aside"
