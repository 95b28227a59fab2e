"""Modules load while the garbage collector pauses, and the collector is then as it was before."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_ops.core.lazy_import import import_on_first_use, load_module

_MODULE = """
import gc
garbage = [[] for _ in range(10_000)]
for each in garbage:
    each.append(each)
was_enabled = gc.isenabled()
name = "loaded"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a package of two modules, `whole` and `broken`, that is forgotten afterwards."""
    name = "a_package_that_loads_lazily"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "whole.py").write_text(_MODULE)
    (folder / "broken.py").write_text("raise RuntimeError('broken')")
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


def test_frozen_objects_stay_frozen(package: str) -> None:
    gc.collect()
    gc.freeze()
    try:
        load_module(f"{package}.whole")
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_the_first_use_of_a_name_loads_its_module(package: str) -> None:
    load_module(package)
    getattr_ = import_on_first_use(package, {"name": "whole"})
    assert f"{package}.whole" not in sys.modules
    assert getattr_("name") == "loaded" == sys.modules[package].name
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        getattr_("other")
