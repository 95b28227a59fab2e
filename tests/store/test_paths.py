"""Which paths may name an object of a store."""

from __future__ import annotations

import re
from itertools import product

import pytest

from lance_ops.core.errors import UnsafePath
from lance_ops.store import paths
from lance_ops.store.paths import check_path, check_paths


def _is_taken(path: str) -> bool:
    try:
        return check_path(path) == path
    except UnsafePath:
        return False


@pytest.mark.parametrize("length", range(7))
def test_a_path_is_taken_if_each_of_its_components_is_a_name(length: int) -> None:
    paths = ["".join(each) for each in product("/.a", repeat=length)]
    taken = [path for path in paths if all(part not in ("", ".", "..") for part in path.split("/"))]
    assert [path for path in paths if _is_taken(path)] == taken
    assert not any(map(_is_taken, [f"{path}{bad}a" for path in paths for bad in "\0\\"]))


def test_paths_are_taken_together_if_each_of_them_is_taken() -> None:
    components = ["", ".", "..", ".a", "a", "a/b", "/a", "a/", "a//b", "a/../b", "a\\b", "a\0b", "a\n"]
    for several in (*product(components, repeat=2), *product(components, repeat=3)):
        refused = [path for path in several if not _is_taken(path)]
        if refused:
            with pytest.raises(UnsafePath) as error:
                check_paths(several)
            with pytest.raises(UnsafePath, match=f"^{re.escape(str(error.value))}$"):
                check_path(refused[0])
        else:
            check_paths(several)
    check_paths([])


def test_many_safe_paths_are_checked_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(paths, "check_path", looks.append)
    check_paths(f"data/{number}.lance" for number in range(100))
    assert len(looks) == 1
