"""Register all commands, and turn their errors into messages and exit codes.

An error of `lance_ops.errors` becomes one line on stderr and exit code 1. An invalid command line gives exit code 2.
An interrupt becomes one line and exit code 130, and an output that takes no more, as on a full disk, one line and exit
code 1. Any other error is a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from lance_ops.cli import changing, looking
from lance_ops.cli import init_command as starting
from lance_ops.cli.arguments import AllowedBases, allow_bases
from lance_ops.cli.examples import shown_example
from lance_ops.cli.output import escaped
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.core.redaction import redact

__all__ = ["app", "main"]

_INTERRUPTED = 130  # as a shell reports SIGINT
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why stdout, the file of `--output` or a temporary file takes no more. Errors of a store have types of their own."""
_UsageError: Any = typer.BadParameter.__mro__[1]  # click's own, or its copy inside newer releases of typer


class _OneLineErrors(TyperGroup):
    """Turns typed errors into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        given = [*getattr(ctx, "_protected_args", ()), *ctx.args]  # click empties both
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except _UsageError as error:
            error.message = redact(str(error.message), _option_values(given))
            raise
        except LanceOpsError as error:
            typer.echo(f"error: {escaped(' '.join(str(error).split()))}{_remedy(error)}", err=True)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            typer.echo("interrupted: versions that were committed before stay", err=True)
            raise typer.Exit(_INTERRUPTED) from error
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS:
                raise
            typer.echo(
                f"error: no output or temporary file can be written: {error.strerror}; what was committed stays",
                err=True,
            )
            with suppress(OSError):  # what is left in the buffer would fail once more when Python ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from error


def _remedy(error: LanceOpsError) -> str:
    """Return what mends a damaged table, unless the error says it: the rooms that find a damage know no commands."""
    if not isinstance(error, CorruptFile) or "`lance-ops " in str(error):
        return ""
    return "; run `lance-ops verify`, which names every damage, then `lance-ops repair`"


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
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "inspect": looking.inspect,
    "versions": looking.versions,
    "diff": looking.diff,
    "query": looking.query,
    "count": looking.count,
    "statistics": looking.statistics,
    "health": looking.health,
    "debt": looking.debt,
    "report": looking.report,
    "top": looking.top,
    "upkeep": changing.upkeep,
    "fleet": changing.fleet,
    "batches": looking.batches,
    "verify": looking.verify,
    "repair": changing.repair,
    "delete": changing.delete,
    "update": changing.update,
    "add-columns": changing.add_columns,
    "merge": changing.merge,
    "duplicates": changing.duplicates,
    "compact": changing.compact,
    "reindex": changing.reindex,
    "cleanup": changing.cleanup,
    "restore": changing.restore,
    "clone": changing.clone,
    "migrate": changing.migrate,
    "erase": changing.erase,
    "plan": changing.plan,
    "execute": changing.execute,
    "doctor": looking.doctor,
    "init": starting.init,
    "schema": starting.schema,
    "ingest": changing.ingest_files,
    "verbs": changing.list_verbs,
}


@app.callback()
def _shared_options(allow_base: AllowedBases = None) -> None:
    """Look at Lance datasets and keep them healthy."""
    allow_bases(allow_base)


for _name, _command in _COMMANDS.items():
    app.command(_name, epilog=shown_example(_name))(_command)
app.add_typer(changing.tags_app, name="tags")
app.add_typer(changing.branches_app, name="branches")


def main() -> None:
    """Run the command line of this process."""
    if sys.stdout is None:  # closed by whoever started the process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    app()
