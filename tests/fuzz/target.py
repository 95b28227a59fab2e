"""Fuzz targets for atheris: `python -m tests.fuzz.target files -max_total_time=600 CORPUS`, or `tables CORPUS`.

Mutations know the format: they change messages and buffers, and write a container that fits them. If the corpus folder
is empty, it is first filled with small files of every kind. `make fuzz` runs both targets with numba's bounds checks.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypeAlias

import atheris

from lance_ops.kernels.warm import warm  # imported first: numba cannot compile instrumented code

Read: TypeAlias = Callable[[bytes], object]
Mutate: TypeAlias = Callable[[bytes, Random, int], bytes]
MakeSeeds: TypeAlias = Callable[[], Iterator[tuple[str, bytes]]]

_DELETIONS, _MANIFEST = b"D", b"M"


def main() -> None:
    """Run the target that an argument names; the other arguments are for libFuzzer."""
    arguments = sys.argv[1:]
    name = next(argument for argument in arguments if argument in ("files", "tables"))
    arguments.remove(name)
    with atheris.instrument_imports(include=["lance_ops"]):
        from tests.fuzz import mutations, reading, seeds
    warm()

    def read_table_file(data: bytes) -> None:
        (reading.read_deletions if data[:1] == _DELETIONS else reading.read_manifest)(data[1:])

    def mutate_table_file(data: bytes, random: Random, max_size: int) -> bytes:
        kind, rest = data[:1], data[1:]
        changed = mutations.mutate_bytes if kind == _DELETIONS else mutations.mutate_manifest
        return kind + changed(rest, random)[: max_size - 1]

    def table_seeds() -> Iterator[tuple[str, bytes]]:
        yield from ((name, _MANIFEST + data) for name, data in seeds.manifest_seeds())
        yield from ((name, _DELETIONS + data) for name, data in seeds.deletion_seeds())

    targets: dict[str, tuple[Read, Mutate, MakeSeeds]] = {
        "files": (reading.read_file, mutations.mutate_file, seeds.file_seeds),
        "tables": (read_table_file, mutate_table_file, table_seeds),
    }
    read, mutate, make_seeds = targets[name]
    _fill(Path(next(argument for argument in arguments if not argument.startswith("-"))), make_seeds)

    def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
        return mutate(data, Random(seed), max_size)

    atheris.Setup([sys.argv[0], *arguments], read, custom_mutator=custom_mutator)
    atheris.Fuzz()


def _fill(corpus: Path, make_seeds: MakeSeeds) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        for _, data in make_seeds():
            (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


if __name__ == "__main__":
    main()
