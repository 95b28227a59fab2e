"""`set_logger` sends this library's messages where the caller says."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from lance_ops import log


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("lance_ops", "pylance", "mine")]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        for added in set(logger.handlers) - set(handlers):
            logger.removeHandler(added)
            added.close()
        logger.setLevel(level)


@pytest.mark.parametrize("name", ["pylance", "mine", "lance_ops"])
def test_messages_of_the_library_and_of_the_named_logger_go_to_the_file(tmp_path: Path, name: str) -> None:
    log.set_logger(tmp_path / "log", name, logging.WARNING, "%(levelname)s %(message)s")
    logging.getLogger("lance_ops.maintenance.cleanup").warning("from within")
    logging.getLogger("lance_ops.maintenance.cleanup").info("too fine")
    logging.getLogger(name).error("from outside")
    assert (tmp_path / "log").read_text().splitlines() == ["WARNING from within", "ERROR from outside"]


def test_a_handler_gets_lines_that_name_level_logger_and_place() -> None:
    records: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(self.format(record))

    log.set_logger(log_handler=Kept(), level=logging.DEBUG)
    logging.getLogger("lance_ops.table").debug("seen")
    assert len(records) == 1
    assert " DEBUG lance_ops.table (test_log.py:" in records[0]
    assert not Path("pylance.log").exists()


@pytest.mark.interop
@pytest.mark.parametrize("text", [None, "", "debug", "trace", "lance=debug,warn", "info,lance=trace", "lance=debug"])
def test_the_environment_names_the_reference_s_level(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    reference = import_module("lance.log")
    if text is None:
        monkeypatch.delenv(log.ENV_NAME_PYLANCE_LOGGING_LEVEL, raising=False)
    else:
        monkeypatch.setenv(log.ENV_NAME_PYLANCE_LOGGING_LEVEL, text)
    assert log.get_log_level() == reference.get_log_level()
    mine, other = (inspect.signature(each.set_logger).parameters.values() for each in (log, reference))
    assert [(each.name, each.default) for each in mine] == [(each.name, each.default) for each in other]
