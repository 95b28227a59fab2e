"""Read many hostile files in a process with a limited address space: `python -m tests.fuzz.survey`.

Prints the number of each outcome as JSON, or fails with an exception at the first file that is misread.
"""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import Iterator
from random import Random

import pyarrow as pa

from lance_ops.kernels.warm import warm
from tests.fuzz.bombs import BOMBS, write
from tests.fuzz.mutations import mutate_bytes, mutate_file, mutate_manifest
from tests.fuzz.reading import MAX_BYTES, Misread, read_deletions, read_file, read_manifest
from tests.fuzz.seeds import deletion_seeds, file_seeds, manifest_seeds

_MUTANTS_OF_EACH = 2
_VERSIONS = ("0.1", "2.0", "2.1", "2.2")


def main() -> None:
    """Read all hostile files and print the outcomes."""
    warm()
    read_file(write(pa.array([1]), _VERSIONS[-1]))  # Arrow's allocator reserves addresses when it is first used
    _limit_memory()
    random = Random(1)
    outcomes = {name: read_file(make()) for name, (make, _) in BOMBS.items()}
    counts = {
        "cut": Counter(read_file(data) for data in _cut()),
        "mutated": Counter(read_file(data) for data in _mutated(random)),
        "manifests": Counter(
            read_manifest(mutate_manifest(data, random))
            for _, data in manifest_seeds(reference=False)
            for _ in range(200)
        ),
        "deletions": Counter(
            read_deletions(mutate_bytes(data, random)) for _, data in deletion_seeds() for _ in range(50)
        ),
    }
    print(json.dumps({"bombs": outcomes, **counts}))


def _limit_memory() -> None:
    """Limit the address space, since memory that a file reserves but does not touch is not counted as used."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    limit = mapped + 2 * MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _cut() -> Iterator[bytes]:
    """Yield a small file of every version, truncated to every length."""
    column = pa.array([[1, 2], [], [3]])
    for version in _VERSIONS:
        whole = write(column, version)
        if read_file(whole) != "rows":
            raise Misread(f"an intact file of version {version}")
        for length in range(len(whole)):
            yield whole[:length]


def _mutated(random: Random) -> Iterator[bytes]:
    for _, data in file_seeds(reference=False):
        for _ in range(_MUTANTS_OF_EACH):
            yield mutate_file(data, random)


if __name__ == "__main__":
    main()
