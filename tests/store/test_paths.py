"""Which paths may name an object of a store."""

from __future__ import annotations

from itertools import product

import pytest

from lance_ops.core.errors import UnsafePath
from lance_ops.store.paths import check_path


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
