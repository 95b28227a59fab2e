"""The page of results: what is below 1.0 first, then the table of all operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from tests.bench.results import geometric_mean
from tests.bench.s3.rounds import LATENCY_SECONDS, WITH_FSSPEC, Measured

__all__ = ["page"]

_FIRST_WRITE = """\
A first write makes one request more than the reference. It proves, once for a process and bucket, that the server
honours a conditional create: the transaction's file, which is new, is created once more with the same bytes. The second
create must be refused. The commit cannot be the proof: a server that ignores the condition would have replaced another
writer's version before this is found out. Nor can the dataset remember the proof, since a table may be copied to
another server."""
_METHODS = ("GET", "HEAD", "LIST", "PUT", "POST", "DELETE")


def page(setting: Mapping[str, str], results: Mapping[str, Mapping[str, Measured]]) -> str:
    """Return the page in Markdown."""
    ratios = {name: _ratio(measured, "seconds") for name, measured in results.items()}
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < 1)
    more = [name for name, each in results.items() if _total(each["ours"]) > _total(each["pylance"])]
    larger = [name for name, each in results.items() if each["ours"].typical_bytes > 2 * each["pylance"].typical_bytes]
    means = geometric_mean(ratios.values()), geometric_mean(_ratio(each, "cpu_seconds") for each in results.values())
    lines = [
        "# Benchmark on an object store",
        "",
        "`make bench-s3` writes this page. It measures this library against `pylance` on S3: moto, behind a proxy that",
        f"holds each request back for {1e3 * LATENCY_SECONDS:.0f} ms and counts it. Each contender has a process and a",
        "table of its own (200,000 rows in 8 fragments, then 15), opens a new handle for each operation, and uses all",
        "cores; they take turns operation by operation. Ratios are theirs / ours: above 1, ours is better. A process",
        "knows the manifests that it has read or written, so a new handle on such a version makes one request.",
        "Ours uses the default client of an installation with the extra `obstore`, which `all` includes.",
        "",
        " · ".join(f"{name}: {value}" for name, value in setting.items()),
        "",
        f"- **Slower than the reference**: {_list(f'{name} ({ratio:.2f})' for ratio, name in slower)}.",
        f"- **More requests than the reference**: {_list(more)}.",
        f"- **More than twice the reference's bytes**: {_list(larger)}.",
        f"- Geometric mean of the {len(ratios)} ratios of seconds: {means[0]:.2f}; of CPU seconds: {means[1]:.2f}.",
        _with_fsspec(results),
        "",
        "| operation | seconds, pylance | ours | ratio | requests, pylance | ours | MB, pylance | ours |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(name, measured, ratios[name]) for name, measured in results.items()),
        "",
        _FIRST_WRITE,
        "",
        "Requests by method:",
        "",
        f"| operation | {' | '.join(f'{method}, pylance | ours' for method in _METHODS)} |",
        f"|---|{'---|---|' * len(_METHODS)}",
        *(_methods(name, measured) for name, measured in results.items()),
        "",
    ]
    return "\n".join(lines)


def _with_fsspec(results: Mapping[str, Mapping[str, Measured]]) -> str:
    """Return the line on our library with the client that is not the default."""
    of = {name: _ratio(each, "seconds", WITH_FSSPEC) for name, each in results.items()}
    cpu = geometric_mean(_ratio(each, "cpu_seconds", WITH_FSSPEC) for each in results.values())
    slower = _list(f"{name} ({ratio:.2f})" for name, ratio in sorted(of.items(), key=lambda each: each[1]) if ratio < 1)
    means = f"{geometric_mean(of.values()):.2f}; of CPU seconds: {cpu:.2f}"
    return f'- With `store_client="fsspec"`: geometric mean of seconds: {means}. Slower than the reference: {slower}.'


def _row(name: str, measured: Mapping[str, Measured], ratio: float) -> str:
    theirs, ours = measured["pylance"], measured["ours"]
    cells = (
        f"{median(theirs.seconds):.2f}",
        f"{median(ours.seconds):.2f}",
        f"{ratio:.2f}",
        f"{_total(theirs)}",
        f"{_total(ours)}",
        f"{theirs.typical_bytes / 1e6:.2f}",
        f"{ours.typical_bytes / 1e6:.2f}",
    )
    return f"| {name} | {' | '.join(cells)} |"


def _methods(name: str, measured: Mapping[str, Measured]) -> str:
    cells = (f"{measured[who].typical_requests[method]}" for method in _METHODS for who in ("pylance", "ours"))
    return f"| {name} | {' | '.join(cells)} |"


def _total(measured: Measured) -> int:
    return measured.typical_requests.total()


def _ratio(measured: Mapping[str, Measured], measure: str, ours: str = "ours") -> float:
    """Return the median over the rounds of theirs divided by ours."""
    pairs = zip(getattr(measured["pylance"], measure), getattr(measured[ours], measure), strict=True)
    return float(median(theirs / max(ours, 1e-9) for theirs, ours in pairs))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
