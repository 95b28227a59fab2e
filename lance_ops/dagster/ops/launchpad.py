"""Link to the launchpad of a job with its configuration filled in: a plan and its run are one click apart."""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from typing import Any
from urllib.parse import quote

import dagster as dg
import yaml

__all__ = ["launchpad_link"]


def launchpad_link(context: dg.OpExecutionContext, op_config: dict[str, Any]) -> str | None:
    """Return the path of the run's own job with `op_config` for this op, or None if the run has no code location.

    The path begins at the root of the host. A web server with a path prefix needs it in front.
    """
    origin = context.run.remote_job_origin
    if origin is None:  # the run was started in Python, not by the daemon or the UI
        return None
    location = origin.repository_origin.code_location_origin.location_name
    config = yaml.safe_dump({"ops": {context.op_handle.name: {"config": op_config}}})
    return f"/locations/{quote(location)}/jobs/{quote(context.job_name)}/playground/setup?config={quote(config)}"
