"""The op that compares some of a dataset's files with their checksums and with each other in each run."""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.failures import retrying
from lance_ops.dagster.head import verify_some
from lance_ops.dagster.ops.verb import START
from lance_ops.dagster.runners import LanceRunner, runner_key

__all__ = ["Verify", "verify_op"]


class Verify(dg.Config):
    """Overrides of the dataset's policy for one run."""

    max_megabytes: int | None = Field(default=None, ge=1, description="Verify files of about this many MiB.")
    everything: bool = Field(default=False, description="Verify all files, however large.")
    quick: bool = Field(default=False, description="Check only presence, sizes and metadata of files.")


def verify_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that verifies the next part of a dataset, evaluates the check `intact`, and fails on a damage.

    The op opens the version itself, because it must also report a version that cannot be opened.
    """
    names = DatasetNames(config.name)
    policy = config.maintenance.verification

    def compute(context: dg.OpExecutionContext) -> None:
        asked = Verify(**context.op_config)
        resource: LanceRunner = getattr(context.resources, runner_key(config))
        megabytes = policy.max_megabytes if asked.max_megabytes is None else asked.max_megabytes
        with retrying():
            evaluation = verify_some(
                context.instance,
                config,
                resource.logging_to(context.log),
                max_megabytes=None if asked.everything else megabytes,
                quick=asked.quick,
            )
        context.log_event(evaluation)  # type: ignore[arg-type]  # it accepts this type; its annotation does not say so
        metadata: dict[str, Any] = dict(evaluation.metadata)
        if not evaluation.passed:
            raise dg.Failure(evaluation.description, metadata=metadata, allow_retries=False)
        context.add_output_metadata(metadata)

    return dg.op(
        name=names.op("verify"),
        description="Verify some of the dataset's files, and continue there in the next run.",
        ins={START: dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
        config_schema=Verify.to_config_schema().as_field(),
        required_resource_keys={runner_key(config)},
        tags={"dagster/kind": "lance"},
    )(compute)
