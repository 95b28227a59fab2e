"""Simulate a distributed verb second by second: cores take fragments, and a store and a network bound them.

The driver plans, tasks run, outcomes return, one commit ends the verb. All costs are given; `recorded` measures them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cluster", "Outcome", "Store", "Work", "simulate"]

_MOST_SECONDS = 10**6


@dataclass(frozen=True)
class Cluster:
    """Executors alike; `task_s` is what Spark spends on a task whatever it does, in its worker."""

    executors: int = 1_000
    cores: int = 4
    network_bytes_s: float = 1.25e9
    task_s: float = 0.027
    tasks_per_core: int = 3

    @property
    def all_cores(self) -> int:
        return self.executors * self.cores

    @property
    def all_tasks(self) -> int:
        return self.all_cores * self.tasks_per_core


@dataclass(frozen=True)
class Store:
    """Requests a second that an object store grants to each prefix; S3 states these."""

    prefixes: int = 1
    gets_s: float = 5_500
    puts_s: float = 3_500


@dataclass(frozen=True)
class Work:
    """A verb: what one fragment costs a core, the store and the network, and what the driver does before and after."""

    name: str
    fragments: int
    cpu_s: float
    gets: float
    puts: float
    moved_bytes: float
    plan_s: float
    commit_s: float
    driver_bytes: float


@dataclass(frozen=True)
class Outcome:
    """How long each part took, the most requests in a second, and what bound the tasks most of the time."""

    plan_s: float
    tasks_s: float
    commit_s: float
    gets_s: float
    puts_s: float
    limit: str

    @property
    def total_s(self) -> float:
        return self.plan_s + self.tasks_s + self.commit_s


def simulate(work: Work, cluster: Cluster, store: Store) -> Outcome:
    """Run a verb to its end. Each second, the scarcest of cores, network and requests decides how much is done."""
    done, seconds, bound, peak = 0.0, 0, dict[str, int](), 0.0
    starting = min(cluster.all_tasks, work.fragments) * cluster.task_s / cluster.all_cores
    while done < work.fragments:
        if seconds == _MOST_SECONDS:
            raise ValueError(f"{work.name} does not end")
        rest = work.fragments - done
        busy = min(cluster.all_cores, rest)  # at the end fewer fragments are left than cores
        able = {
            "cores": busy / work.cpu_s,
            "network": cluster.executors * cluster.network_bytes_s / work.moved_bytes,
            "GET requests of a prefix": store.prefixes * store.gets_s / work.gets if work.gets else float("inf"),
            "PUT requests of a prefix": store.prefixes * store.puts_s / work.puts if work.puts else float("inf"),
        }
        limit = min(able, key=lambda name: able[name])
        made = min(able[limit], rest)
        done, seconds, peak = done + made, seconds + 1, max(peak, made)
        bound[limit] = bound.get(limit, 0) + 1
    most = max(bound, key=lambda name: bound[name])
    return Outcome(work.plan_s, seconds + starting, work.commit_s, peak * work.gets, peak * work.puts, most)
