"""Register all commands, and turn their errors into messages and exit codes.

An error of `lance_ops.errors` becomes one line on stderr and exit code 1. An invalid command line gives exit code 2.
Any other error is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from lance_ops.cli import branches, tags
from lance_ops.cli import change_commands as changing
from lance_ops.cli import clone_command as copying
from lance_ops.cli import debt_command as pricing
from lance_ops.cli import doctor_command as examining
from lance_ops.cli import ingest_command as ingesting
from lance_ops.cli import integrity_commands as checking
from lance_ops.cli import merge_command as merging
from lance_ops.cli import query_commands as querying
from lance_ops.cli import read_commands as looking
from lance_ops.cli import value_commands as computing
from lance_ops.cli.arguments import AllowedBases, allow_bases
from lance_ops.cli.output import printable
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.redaction import redact

__all__ = ["app", "main"]

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's own, or its copy inside newer releases of typer


class _OneLineErrors(TyperGroup):
    """Turns typed errors into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        given = [*getattr(ctx, "_protected_args", ()), *ctx.args]  # click empties both
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            error.message = redact(str(error.message), _option_values(given))
            raise
        except LanceOpsError as error:
            typer.echo(f"error: {printable(' '.join(str(error).split()))}", err=True)
            raise typer.Exit(1) from error


def _option_values(arguments: list[str]) -> set[str]:
    """Return what stands behind each option for a store: a value with a space or without its key is several words."""
    found = set()
    is_value = False
    for argument in arguments:
        if argument.startswith("--"):
            is_value = argument.endswith("storage-option")
        elif is_value:
            found |= {argument, argument.partition("=")[2]}
    return found - {""}


app = typer.Typer(
    name="lance-ops",
    cls=_OneLineErrors,
    help="Look at Lance datasets and keep them healthy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_COMMANDS: tuple[Callable[..., None], ...] = (
    looking.inspect,
    looking.versions,
    querying.query,
    querying.count,
    querying.statistics,
    looking.health,
    pricing.debt,
    checking.verify,
    checking.repair,
    changing.delete,
    computing.update,
    computing.add_columns,
    merging.merge,
    changing.compact,
    changing.reindex,
    changing.cleanup,
    changing.restore,
    copying.clone,
    examining.doctor,
)


@app.callback()
def _shared_options(allow_base: AllowedBases = None) -> None:
    """Look at Lance datasets and keep them healthy."""
    allow_bases(allow_base)


for _command in _COMMANDS:
    app.command()(_command)
app.command("ingest")(ingesting.ingest_files)
app.add_typer(tags.app, name="tags")
app.add_typer(branches.app, name="branches")


def main() -> None:
    """Run the command line of this process."""
    app()
