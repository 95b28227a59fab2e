"""What a person sees and clicks in Dagster's pages, on a live deployment."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DAYS, Look

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.timeout(1200)]


def test_a_plan_is_previewed_in_the_launchpad_and_executed_by_its_link(look: Look) -> None:
    config = 'ops:\n  delete_rows:\n    config:\n      predicate: "id < 5"\n      reason: bad delivery\n'
    look.launch("orders_delete_rows", config)
    preview = look.markdown("lance/plan")
    for text in ("Delete 5 of 30 rows", "Rows that would go", "after (estimate)"):
        expect(preview.get_by_text(text)).to_be_visible()
    look.keep("preview")
    assert look.live.table("orders").count_rows() == 30
    preview.get_by_role("link", name="Open the launchpad with this plan").click()
    expect(look.page.locator(".CodeMirror-code").first).to_contain_text("execute:")
    look.launch("orders_delete_rows")
    expect(look.markdown("lance/before_after")).to_contain_text("deleted rows still stored")
    assert look.live.table("orders").count_rows() == 25


def test_an_erasure_ends_with_a_report_that_proves_it(look: Look, background_runs: dict[str, str]) -> None:
    page = look.succeeded(background_runs["people_erase"])
    path = page.get_by_text(re.compile(r"_lance_ops/erasures/.*\.html")).first
    expect(path).to_be_visible()
    (report,) = (look.live.root / "lake" / "people.lance" / "_lance_ops" / "erasures").glob("*.html")
    page.goto(report.as_uri())
    expect(page.get_by_text("Proven: no remaining file").first).to_be_visible()
    assert "anna" not in page.inner_text("body")
    look.keep("erasure")
    assert look.live.table("people").count_rows("customer = 'anna'") == 0
    assert look.live.table("people").count_rows() == 18


def test_a_night_of_the_fleet_is_a_table_of_what_was_done(look: Look, background_runs: dict[str, str]) -> None:
    look.succeeded(background_runs["silver_maintenance"])
    page = look.at("/assets/silver?view=events")
    for name in ("clicks", "visits"):
        expect(page.get_by_role("row").filter(has_text=name).last).to_contain_text("done")
    look.keep("fleet")


def test_a_backfill_of_thirty_days_is_one_commit_that_was_checked(look: Look) -> None:
    look.at_once_it_shows("/assets/trips", "300")
    page = look.at_once_it_shows("/assets/trips/batches?view=partitions", f"Materialized ({len(DAYS)})")
    look.keep("backfill")
    data = look.live.table("trips")
    assert (data.version, data.count_rows()) == (1, 300)
    page = look.at_once_it_shows("/assets/trips?view=checks", "batches_exactly_once")
    listed = page.get_by_text(re.compile(r"^Checks \(\d+\)$")).first.inner_text()
    num_checks = int(listed.removeprefix("Checks (").removesuffix(")"))
    assert num_checks >= 9
    # A backfill asks for no check `intact`, which reads files again.
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(num_checks - 1)
    look.keep("checks")


def test_the_graph_shows_each_dataset_with_its_batches_and_the_fleet(look: Look) -> None:
    page = look.at("/asset-groups")
    for name in ("batches", "trips", "orders", "people", "readings", "silver"):
        expect(page.get_by_text(name, exact=True).first).to_be_visible()
    expect(page.get_by_text(f"{len(DAYS)} partitions")).to_be_visible()
    look.keep("graph")


def test_a_commit_of_another_writer_stands_in_the_timeline(look: Look) -> None:
    data = look.live.table("readings")
    page = look.at_once_it_shows("/assets/readings?view=events", f"version {data.version}: Append")
    rows = page.get_by_role("row").filter(has_text="dagster/row_count")
    expect(rows.last).to_contain_text(str(data.count_rows()))
    for name in ("trend", "timeline"):
        shown = look.markdown(f"lance/{name}")
        picture = shown.get_by_role("img").last
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.naturalWidth") > 0, "the browser draws the chart"
        look.keep(name)
        shown.get_by_role("button", name="Close").first.click()
        expect(shown).to_have_count(0)
