"""Send the messages of this library to a file or a handler, under the reference's names."""

from __future__ import annotations

import logging
import os
from os import PathLike

__all__ = ["ENV_NAME_PYLANCE_LOGGING_LEVEL", "LOGGER", "get_log_level", "set_logger"]

ENV_NAME_PYLANCE_LOGGING_LEVEL = "LANCE_LOG"
"""The environment variable that names a level; parts such as `lance=debug` are the reference's own."""

LOGGER = logging.getLogger("lance_ops")
"""The parent of all loggers of this library."""

_FORMAT = "%(asctime)s %(levelname)s %(name)s (%(filename)s:%(lineno)d): %(message)s"


def get_log_level() -> str:
    """Return the level that the environment names, for `set_logger`; INFO if it names none.

    Python has no level below DEBUG, so TRACE is DEBUG.
    """
    parts = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "").upper().split(",")
    level = next((part.strip() for part in parts if part.strip() and "=" not in part), "INFO")
    return "DEBUG" if level == "TRACE" else level


def set_logger(
    file_path: str | PathLike[str] | None = "pylance.log",
    name: str = "pylance",
    level: int | str = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Send the messages of this library, and those of the logger `name`, to a file or to a handler.

    Every call adds a destination. Without a call, the application's own configuration of `logging` applies.
    """
    handler = log_handler if log_handler is not None else logging.FileHandler(file_path or "pylance.log")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    for logger in {LOGGER, logging.getLogger(name)}:
        logger.setLevel(level)
        logger.addHandler(handler)
