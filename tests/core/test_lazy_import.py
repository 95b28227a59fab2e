"""Modules load while the garbage collector pauses, and the collector is then as it was before."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from lance_ops.core import lazy_import
from lance_ops.core.lazy_import import collector_paused, import_on_first_use, load_module
from tests.forked import held_by_a_thread, run_in_child

_MODULE = """
import gc
garbage = [[] for _ in range(10_000)]
for each in garbage:
    each.append(each)
was_enabled = gc.isenabled()
name = "loaded"
"""
_WAITING_MODULE = """
import a_package_that_loads_lazily as package
package.begun[__name__].set()
assert package.may_end[__name__].wait(60)
"""

pytestmark = pytest.mark.usefixtures("nothing_frozen")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a package of the modules `whole`, `broken`, `first` and `second`; forget it afterwards."""
    name = "a_package_that_loads_lazily"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "whole.py").write_text(_MODULE)
    (folder / "broken.py").write_text("raise RuntimeError('broken')")
    for waiting in ("first", "second"):
        (folder / f"{waiting}.py").write_text(_WAITING_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert gc.isenabled()
    yield name
    gc.enable()
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[loaded]


def _num_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_no_collection_looks_at_what_a_module_makes(package: str) -> None:
    num_before = _num_collections()
    module = load_module(f"{package}.whole")
    young = [each for generation in (0, 1) for each in gc.get_objects(generation)]
    assert _num_collections() <= num_before + 2  # one before the pause and one after it; 10,000 lists are a dozen
    assert not module.was_enabled
    assert gc.isenabled()
    assert gc.is_tracked(module.garbage)
    assert not any(each is module.garbage for each in young)
    assert gc.get_freeze_count() == 0


def test_a_module_that_fails_leaves_the_collector_enabled(package: str) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        load_module(f"{package}.broken")
    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled(package: str) -> None:
    gc.disable()
    assert not load_module(f"{package}.whole").was_enabled
    assert not gc.isenabled()


class _Import(NamedTuple):
    """An import in a thread, which goes on until `may_end` is set."""

    loaded: Future[ModuleType]
    may_end: threading.Event

    @classmethod
    def begin(cls, threads: ThreadPoolExecutor, package: str, name: str) -> _Import:
        parent, full_name = load_module(package), f"{package}.{name}"
        begun, may_end = threading.Event(), threading.Event()
        for events, event in (("begun", begun), ("may_end", may_end)):
            parent.__dict__.setdefault(events, {})[full_name] = event
        made = cls(threads.submit(load_module, full_name), may_end)
        assert begun.wait(60)
        return made

    def end(self) -> None:
        self.may_end.set()
        self.loaded.result(60)


def test_the_last_of_several_imports_enables_the_collector(package: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        first, second = (_Import.begin(threads, package, name) for name in ("first", "second"))
        first.end()
        assert not gc.isenabled()
        second.end()
        assert gc.isenabled()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the test forks while threads run
def test_a_child_forked_during_an_import_has_its_collector_enabled(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_import, "_LONGEST_WAIT_SECONDS", 0.1)  # this import ends after the fork
    with ThreadPoolExecutor(1) as threads:
        running = _Import.begin(threads, package, "first")
        assert not gc.isenabled()
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        running.end()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gc.isenabled()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_imports_what_another_thread_was_importing_when_it_was_forked(package: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = _Import.begin(threads, package, "first")
        ending = threading.Timer(0.2, running.may_end.set)
        ending.start()
        assert run_in_child(lambda: load_module(f"{package}.first").__name__) == f"{package}.first"
        running.end()
        ending.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_takes_a_lock_that_another_thread_held_when_it_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.RLock()
    monkeypatch.setattr(lazy_import._FORKS, "locks", [*lazy_import._FORKS.locks, lock])
    with held_by_a_thread(lock, 0.2):
        assert run_in_child(lambda: lock.acquire(timeout=10))
    assert lock.acquire(timeout=10)
    lock.release()


def test_frozen_objects_stay_frozen(package: str) -> None:
    gc.collect()
    gc.freeze()
    try:
        load_module(f"{package}.whole")
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_frozen_objects_are_counted_until_some_are_found(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_module(package)
    counts = [0, 7]
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.pop(0))
    for _ in range(4):
        with collector_paused():
            pass
    assert counts == []


def test_the_first_use_of_a_name_loads_its_module(package: str) -> None:
    load_module(package)
    getattr_ = import_on_first_use(package, {"name": "whole"})
    assert f"{package}.whole" not in sys.modules
    assert getattr_("name") == "loaded" == sys.modules[package].name
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        getattr_("other")
