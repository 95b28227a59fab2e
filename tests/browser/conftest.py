"""A live `dagster dev` with the daemon, on the shipped settings, and a browser that looks at it.

All fixtures end with the module: while the browser's client lives, this process has a running event loop, and the
code of other tests refuses to wait in one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import lance
import pyarrow as pa
import pyarrow.parquet
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from playwright.sync_api import TimeoutError as TooLate

import lance_ops
from lance_ops.dagster.instances import instance_file
from tests.browser.chromium import chromium
from tests.processes import free_port

REPOSITORY = Path(__file__).parents[2]
LOCATION = "tests.browser.deployed"
DAYS = [f"2026-09-{day:02}" for day in range(1, 31)]
PATIENCE = 240_000
"""How many milliseconds a test waits at most until a page shows something."""

SHORT_QUEUE = """
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config: {dequeue_interval_seconds: 1}
"""
"""Runs are taken from the queue each second instead of each five: nothing else differs from the shipped settings."""

IN_THE_BACKGROUND = {
    "silver_maintenance": "{}",
    "people_erase": (
        "ops:\n  erase:\n    config: {predicate: \"customer = 'anna'\", dry_run: false, reason: request 17}\n"
    ),
}
"""Jobs with their configuration. They are launched first, because none of their runs waits for another one."""

expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class Live:
    """A running deployment: the folder of its data and the address of its pages."""

    root: Path
    url: str

    def table(self, name: str) -> lance_ops.LanceDataset:
        return lance_ops.dataset(str(self.root / "lake" / f"{name}.lance"))


@dataclass(frozen=True)
class Look:
    """A page of the browser on the deployment, and where its screenshots are kept."""

    page: Page
    live: Live
    pictures: Path

    def at(self, path: str) -> Page:
        """Go to a path; return the page."""
        self.page.goto(self.live.url + path, wait_until="domcontentloaded")
        return self.page

    def at_once_it_shows(self, path: str, text: str) -> Page:
        """Go to a path, again and again until it shows a text: not all of Dagster's pages follow what happens."""
        deadline = time.monotonic() + PATIENCE / 1000
        shown = self.page.get_by_text(text, exact=True).first
        while True:
            self.at(path)
            try:
                shown.wait_for(timeout=5000)
            except TooLate:
                assert time.monotonic() < deadline, f"{path} did not show {text!r}"
            else:
                return self.page

    def launch(self, job: str, config: str | None = None) -> Page:
        """Launch a job from its launchpad, and wait for its success."""
        return self.succeeded(self.begin(job, config))

    def begin(self, job: str, config: str | None = None) -> str:
        """Launch a job, perhaps with another configuration than the one on offer; return the path of its run."""
        if config is not None:
            self.at(f"/locations/{LOCATION}/jobs/{job}/playground")
            self.page.locator(".CodeMirror").first.click()
            expect(self.page.get_by_text("No errors")).to_be_visible()
            self.page.keyboard.press("Control+A")
            self.page.keyboard.insert_text(config)
        launch = self.page.get_by_role("button", name="Launch run")
        expect(launch).to_be_enabled()
        launch.click()
        self.page.wait_for_url(re.compile("/runs/"))
        return urlsplit(self.page.url).path

    def succeeded(self, run: str) -> Page:
        """Wait until the page of a run shows its success."""
        if urlsplit(self.page.url).path != run:
            self.at(run)
        expect(self.page.get_by_text("Success", exact=True).first).to_be_visible()
        return self.page

    def markdown(self, name: str) -> Locator:
        """Open the page of Markdown that the newest metadata entry of this name shows."""
        entry = self.page.locator("tr").filter(has=self.page.get_by_text(name, exact=True)).last
        entry.get_by_text("Show Markdown").click()
        return self.page.get_by_role("dialog")

    def keep(self, name: str) -> None:
        """Keep a screenshot."""
        self.page.screenshot(animations="disabled", path=self.pictures / f"{name}.png")


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """Make the folder of all data; its short name stands in the screenshots."""
    with tempfile.TemporaryDirectory(prefix="data-", ignore_cleanup_errors=True) as folder:  # runs may still write
        yield Path(folder)


@pytest.fixture(scope="module")
def live(root: Path) -> Iterator[Live]:
    """Run `dagster dev` on a month of landed files, three tables of the lake, and a fleet of three neglected ones."""
    prepare(root)
    port = free_port()
    home = root / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(instance_file("laptop") + SHORT_QUEUE)
    with dg.DagsterInstance.from_config(str(home)) as instance:  # initialised before several processes open it
        instance.add_dynamic_partitions("trips_batches", DAYS)
    environment = {
        **os.environ,
        "BROWSED_ROOT": str(root),
        "DAGSTER_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "dagster", "dev", "-m", LOCATION, "--host", "127.0.0.1", "--port", str(port)]
    with (root / "dev.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=root, stdout=log, stderr=subprocess.STDOUT)
    try:
        live = Live(root, f"http://127.0.0.1:{port}")
        await_assets(live, process)
        lance.write_dataset(pa.table({"id": range(1000, 1100)}), live.table("readings").uri, mode="append")
        yield live
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        process.kill()
        process.wait()


def prepare(root: Path) -> None:
    """Land the files, which are too new for the sensor to ask for them, and write the tables."""
    (root / "landing").mkdir()
    for number, day in enumerate(DAYS):
        path = root / "landing" / f"{day}.parquet"
        pyarrow.parquet.write_table(pa.table({"id": range(10 * number, 10 * number + 10), "day": [day] * 10}), path)
        os.utime(path, (time.time() + 10**6,) * 2)
    customers = ["anna", "bert", "cleo"]
    for name in ("orders", "people"):
        for start in range(0, 30, 10):
            rows = pa.table({"id": range(start, start + 10), "customer": [customers[i % 3] for i in range(10)]})
            lance_ops.write_dataset(rows, str(root / "lake" / f"{name}.lance"), mode="append" if start else "create")
    readings = str(root / "lake" / "readings.lance")
    for hour in range(6):
        rows = pa.table({"id": range(100 * hour, 100 * hour + 50 + 20 * hour)})
        lance_ops.write_dataset(rows, readings, mode="append" if hour else "create")
    data = lance_ops.dataset(readings)
    data.delete("id % 7 = 0")
    data.tags.create("before-compaction", data.version)
    data.optimize.compact_files()
    for name, num_fragments in (("clicks", 30), ("visits", 12), ("users", 1)):
        lance_ops.write_dataset(
            pa.table({"id": range(num_fragments)}), str(root / "silver" / name), max_rows_per_file=1
        )


def await_assets(live: Live, process: subprocess.Popen[bytes]) -> None:
    """Return once the web server knows the code location's assets."""
    query = json.dumps({"query": "{ assetNodes { id } }"}).encode()
    request = urllib.request.Request(f"{live.url}/graphql", query, {"content-type": "application/json"})
    deadline = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                if (json.load(answer)["data"] or {}).get("assetNodes"):
                    return
        except OSError:
            pass
        log = (live.root / "dev.log").read_text()[-2000:]
        assert process.poll() is None and time.monotonic() < deadline, f"dagster dev did not start: {log}"
        time.sleep(0.25)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """Run a browser whose pages share what Dagster's pages load."""
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        context = started.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
        context.set_default_timeout(PATIENCE)
        yield context


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where screenshots are kept: the folder that `SCREENSHOTS` names, or a temporary one."""
    named = os.environ.get("SCREENSHOTS")
    return Path(named) if named else tmp_path_factory.mktemp("pictures")


@pytest.fixture
def look(live: Live, browser: BrowserContext, pictures: Path) -> Iterator[Look]:
    page = browser.new_page()
    yield Look(page, live, pictures)
    page.close()


@pytest.fixture(scope="module", autouse=True)
def background_runs(live: Live, browser: BrowserContext, pictures: Path) -> dict[str, str]:
    """Launch a backfill of all thirty days at once, as a person does, and two jobs; return the paths of their runs.

    They go on while other pages are looked at.
    """
    page = browser.new_page()
    page.goto(f"{live.url}/assets/trips/batches?view=partitions", wait_until="domcontentloaded")
    expect(page.get_by_text(DAYS[0]).first).to_be_visible()
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="All", exact=True).click()
    dialog.get_by_role("button", name="Launch").click()
    expect(page.get_by_text("Created backfill")).to_be_visible()
    look = Look(page, live, pictures)
    runs = {job: look.begin(job, config) for job, config in IN_THE_BACKGROUND.items()}
    page.close()
    return runs
