"""A child that was forked while another thread compiled a kernel compiles and calls kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import lance_ops.kernels.compile.decorators  # noqa: F401 # it lets forks wait for compilations
from lance_ops.core.ndarrays import Int64Array
from tests.forked import held_by_a_thread, run_in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the test forks while a thread runs


def _total_of(numbers: Int64Array) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


total_of: Any = numba.njit(_total_of)  # `kernel` takes only functions of the room


def test_a_child_that_was_forked_during_a_compilation_compiles_a_kernel() -> None:
    with held_by_a_thread(global_compiler_lock, 0.5):
        assert run_in_child(lambda: int(total_of(np.arange(5)))) == 10
