"""Three datasets of other policies, unattended: keys, rewritten files and new columns, with junk and killed runs.

The daemon of `test_daemon_story` has a code location of three datasets: one merges rows by key, one exchanges the rows
of files that are rewritten, and one takes new columns. Files land in waves, each with junk. Each wave kills the
ingestion of every dataset, at a request to the store that was drawn or when it has committed, and the upkeep of one.
After each wave every good row is there once, by key where there are keys. In the end the junk is mended, and every
check of every dataset is green.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from tests.dagster.mortal_location import AFTER_COMMIT, Orders, write_location
from tests.dagster.running_daemon import are_retried, running_daemon, sensors_with_a_cursor, team_instance, wait_for
from tests.dagster.test_daemon_story import (
    MOST_REQUESTS,
    SECONDS,
    SEED,
    Lake,
    declared,
    have_ended,
    num_succeeded,
    opened,
    parquet,
    recorded,
    red_checks,
    states,
)
from tests.groups import DAEMONS
from tests.s3_server import S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.soak, pytest.mark.timeout(1800), DAEMONS]

NUM_WAVES = 3
FILES_A_WAVE = 5

Row = Mapping[str, Any]


@dataclass
class Source(Lake, ABC):
    """Lands the files of one dataset, and knows the rows that its table must have."""

    name: ClassVar[str]
    raw: ClassVar[Mapping[str, Any]] = {}
    write: ClassVar[Mapping[str, Any]] = {}

    content: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of each good file, in the order in which the files landed."""
    new_ids: count[int] = field(default_factory=count)

    @abstractmethod
    def rows_of(self, key: str, number: int, before: list[Row]) -> list[Row]:
        """Draw the rows of a file that lands in a wave; `before` are those that it had, if it is written again."""

    def rewrite_some(self, number: int) -> None:
        """Write files of earlier waves again."""

    def rows(self) -> list[Row]:
        """Return the rows of the table, by id."""
        return sorted(chain.from_iterable(self.content.values()), key=lambda row: int(row["id"]))

    @property
    def config(self) -> DatasetConfig:
        plain = declared(self).model_dump(exclude_unset=True)
        raw = {**plain["raw"], **self.raw}
        return DatasetConfig.model_validate({**plain, "name": self.name, "alerts": [], "raw": raw, "write": self.write})

    def land_file(self, key: str, number: int) -> None:
        self.expected[key] = "ingested"
        before = self.content.pop(key, [])
        self.content[key] = self.rows_of(key, number, before)
        columns = dict.fromkeys(chain.from_iterable(self.content[key]))
        self.put(key, parquet({name: [row[name] for row in self.content[key]] for name in columns}))

    def land_all(self, number: int) -> None:
        """Land the files of a wave with its junk, mend the junk of the wave before, and write earlier files again."""
        if number:
            self.rewrite_some(number)
        self.mend(number)
        keys = [f"d{number}{each}" for each in range(FILES_A_WAVE + 1)]
        self.waves |= dict.fromkeys(keys, number)
        junk = self.draw.choice(keys)
        for key in keys:
            if key != junk:
                self.land_file(key, number)
        self.land_bad(junk, b"this is no Parquet")
        self.client.put_object(Bucket=self.bucket, Key=f"landing/w{number}/_SUCCESS", Body=b"")

    def mend(self, number: int) -> None:
        """Replace every junk file by a good one."""
        for key in [key for key, state in self.expected.items() if state == "quarantined"]:
            self.land_file(key, number)


@dataclass
class Keyed(Source):
    """Files update half of their rows by key, and bring the others. No two files of a wave have a key in common."""

    name = "keyed"
    write: ClassVar[Mapping[str, Any]] = {"mode": "upsert", "keys": ["id"]}

    known: list[int] = field(default_factory=list)
    """The ids that an earlier wave brought, and that no file of this wave has updated."""
    of_wave: int = 0

    def rows_of(self, key: str, number: int, before: list[Row]) -> list[Row]:
        if number != self.of_wave:
            self.known, self.of_wave = [int(row["id"]) for row in self.rows()], number
            self.draw.shuffle(self.known)
        old = [self.known.pop() for _ in range(min(5, len(self.known)))]
        return [{"id": each, "value": f"{key} of wave {number}"} for each in [*old, *_next(self.new_ids, 5)]]

    def rows(self) -> list[Row]:
        newest = {row["id"]: row for row in chain.from_iterable(self.content.values())}
        return [newest[each] for each in sorted(newest)]


@dataclass
class Rewritten(Source):
    """Files of earlier waves are written again, with some of their rows and with others."""

    name = "rewritten"
    raw: ClassVar[Mapping[str, Any]] = {"changed": "replace"}
    write: ClassVar[Mapping[str, Any]] = {"batch_column": "batch"}

    def rows_of(self, key: str, number: int, before: list[Row]) -> list[Row]:
        return [*before[:5], *({"id": each, "value": f"wave {number}"} for each in _next(self.new_ids, 10))]

    def rewrite_some(self, number: int) -> None:
        in_table = sorted(key for key, state in self.expected.items() if state == "ingested")
        for key in self.draw.sample(in_table, 2):
            self.land_file(key, number)

    def rows(self) -> list[Row]:
        of_batches = [row | {"batch": key} for key, found in self.content.items() for row in map(dict, found)]
        return sorted(of_batches, key=lambda row: int(row["id"]))


@dataclass
class Growing(Source):
    """Every other file of a wave has a column that the table lacks when the wave lands."""

    name = "growing"
    raw: ClassVar[Mapping[str, Any]] = {"schema_mode": "add"}

    def rows_of(self, key: str, number: int, before: list[Row]) -> list[Row]:
        new = {f"c{number}": number} if int(key[-1]) % 2 else {}
        return [{"id": each, "value": key} | new for each in _next(self.new_ids, 10)]

    def rows(self) -> list[Row]:
        found = super().rows()
        columns = ["id", "value", *sorted(set(chain.from_iterable(found)) - {"id", "value"})]
        return [{name: row.get(name) for name in columns} for row in found]


SOURCES = (Keyed, Rewritten, Growing)


def test_waves_of_files_end_in_every_good_row_once_whatever_the_policy(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dagster_postgres")
    draw = random.Random(SEED)
    sources = [source(s3_server, s3_server.new_bucket(), draw) for source in SOURCES]
    configs = [source.config for source in sources]
    orders = Orders(tmp_path / "orders")
    location = write_location(tmp_path / "location.py", orders, *configs, interval_seconds=4)
    with team_instance(tmp_path) as environment, running_daemon(location, environment, monkeypatch) as instance:
        wait_for(lambda: bool(sensors_with_a_cursor(instance)), SECONDS)
        for number in range(NUM_WAVES):
            doomed = [f"{sources[number % len(sources)].name}_upkeep", *(f"{each.name}_ingest" for each in sources)]
            for job in doomed:
                is_late = job.endswith("ingest") and draw.random() < 0.5
                orders.doom(job, AFTER_COMMIT if is_late else draw.randint(1, MOST_REQUESTS))
            for source in sources:
                source.land_all(number)
            wait_until_settled(sources, instance, f"wave {number} is not settled")
            for job in doomed:
                wait_for(partial(orders.are_met, f"doom/{job}"), SECONDS, f"no run of {job} came to its death")
                orders.forget(f"doom/{job}")
            wait_for(partial(are_retried, instance, (number + 1) * len(doomed)), SECONDS, "a killed run is not retried")
            wait_for(partial(have_ended, instance, doomed[0]), SECONDS, f"a retry of {doomed[0]} does not end")
            check_rows(sources)
        for source in sources:
            source.mend(NUM_WAVES)
        wait_until_settled(sources, instance, "the mended files are not settled")
        check_rows(sources)
        for config in configs:
            job = f"{config.name}_checks"
            wait_for(partial(have_ended, instance, f"{config.name}_upkeep"), SECONDS, "upkeep does not end")
            orders.launch(f"in the end of {config.name}", job)
            wait_for(partial(has_succeeded, instance, job), SECONDS, f"{job} does not end well")
            assert red_checks(config, instance) == {}


def wait_until_settled(sources: Sequence[Source], instance: dg.DagsterInstance, what: str) -> None:
    """Wait until each file is in its table or named, and Dagster has recorded those in the table."""
    for source in sources:
        wait_for(partial(is_settled, source, instance), SECONDS, f"{source.name}: {what}", every=2)
        wait_for(partial(is_recorded, source, instance), SECONDS, f"{source.name}: a batch has no record")


def is_settled(source: Source, instance: dg.DagsterInstance) -> bool:
    return states(source.config, instance) == source.expected


def is_recorded(source: Source, instance: dg.DagsterInstance) -> bool:
    return recorded(instance, DatasetNames(source.name)) >= source.content.keys()


def has_succeeded(instance: dg.DagsterInstance, job: str) -> bool:
    return num_succeeded(instance, job) > 0


def check_rows(sources: Sequence[Source]) -> None:
    """Compare each table with the rows that it must have, each once."""
    for source in sources:
        table = opened(source.config).to_table()
        assert table.sort_by("id").to_pylist() == source.rows(), source.name


def _next(ids: count[int], num_ids: int) -> list[int]:
    return [next(ids) for _ in range(num_ids)]
