"""The pages in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from judgekit import Run, run
from judgekit.analysis.stored_labels import stored_labels
from judgekit.runs.rows import RunDescription
from judgekit.runs.store import RunStore
from judgekit.view import pages
from tests.browsers import LIGHT_AND_DARK, NEEDS_BROWSER, keeps_nobody_out
from tests.hostile import HOSTILE
from tests.view.conftest import Kind, Served, as_read_from_a_file, samples, serving

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
expect = sync_api.expect

PAGES = (
    *("/", "/runs/1", "/runs/1#/samples", "/runs/1#/sample/3", "/runs/1/compare/2", "/runs/1/label/topic_adherence"),
    *("/runs/1/trend/tool_call_f1", "/compare?run=1&run=2&run=3"),
)

pytestmark = NEEDS_BROWSER


@pytest.fixture
def visit(new_page):
    """Opens the pages of a server."""

    @contextmanager
    def visiting(served: Served, **options: object) -> Iterator:
        with new_page(served.base, "about:", **options) as page:
            page.goto(served.access.url)
            page.wait_for_url(f"{served.base}/")
            page.wait_for_selector("html[data-ready]")
            yield page

    return visiting


def turn_to(page, served: Served, path: str) -> None:
    page.goto("about:blank")
    page.goto(f"{served.base}{path}")
    page.wait_for_selector("html[data-ready]")


def begin(page, name: str) -> None:
    """Starts to label under a name."""
    page.fill("#who", name)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]", state="detached")


@LIGHT_AND_DARK
def test_pages_are_accessible_and_do_not_scroll_sideways(demo, visit, scheme, viewport):
    with visit(demo, viewport=viewport, color_scheme=scheme) as page:
        for path in PAGES:
            turn_to(page, demo, path)
            if "label" in path:
                begin(page, "Ann")
            keeps_nobody_out(page, path)


def test_runs_are_filtered_in_the_address_and_compared(demo, visit):
    with visit(demo) as page:
        expect(page.locator(".runs tbody tr")).to_have_count(3)
        page.fill("input[name=q]", "topic_adherence")
        expect(page.locator(".runs tbody tr")).to_have_count(1)
        assert page.url.endswith("?q=topic_adherence")
        turn_to(page, demo, "/?judge=demo/handwritten")
        expect(page.locator(".runs tbody tr")).to_have_count(1)
        turn_to(page, demo, "/")
        page.check("input[name=run-1]")
        page.check("input[name=run-2]")
        page.click("text=Compare run 2 with run 1")
        expect(page.locator("h1")).to_have_text("Run 2 compared with run 1")
        turn_to(page, demo, "/")
        for number in (3, 1, 2):
            page.check(f"input[name=run-{number}]")
        page.click("text=Compare 2 runs with run 1")
        expect(page.locator("main")).to_contain_text("No sample has another value.")
        expect(page.locator("main section").first).to_contain_text("signature of topic_adherence")


def test_a_long_run_is_shown_before_its_scores_are_counted(tmp_path, visit, monkeypatch):
    monkeypatch.setattr(pages, "_COUNTED_AT_ONCE", 10)
    for value in (0, 1):
        run(samples(30, first=value), [Kind()], store=tmp_path / "runs.sqlite")
    with serving(tmp_path / "runs.sqlite") as served, visit(served) as page:
        page.route("**/runs/1.json", lambda route: None)  # which is not answered
        turn_to(page, served, "/runs/1")
        expect(page.locator(".overview")).to_contain_text("all scores are being read")
        expect(page.locator(".overview td[data-name=score]")).to_have_text("0.500")
        page.unroute("**/runs/1.json")
        turn_to(page, served, "/runs/1")
        expect(page.locator(".overview")).not_to_contain_text("all scores are being read")
        turn_to(page, served, "/compare?run=1&run=2")
        expect(page.locator("main")).to_contain_text("0 worse, 0 better")


def test_a_trend_leads_to_the_comparison_of_neighbors(demo, visit):
    with visit(demo) as page:
        page.locator("a", has_text="trend").first.click()
        expect(page.locator("h1")).to_have_text("Trend of tool_call_f1")
        expect(page.locator("svg.trend circle")).to_have_count(3)
        page.locator("svg.trend a").last.focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Run 3 compared with run 2")


def test_a_sample_shows_its_scores_over_runs(demo, visit):
    with visit(demo) as page:
        turn_to(page, demo, "/runs/2#/sample/3")
        expect(page.locator(".history tbody tr")).to_have_count(3)
        expect(page.locator(".history [aria-current=true]")).to_contain_text("run 2")
        page.click(".history >> text=with run 1")
        expect(page.locator("h1")).to_contain_text("#3")
        assert "/runs/1/compare/2#/sample/3" in page.url


def test_compared_samples_are_read_as_they_come_into_sight(tmp_path, visit):
    run(samples(300), [Kind()], store=tmp_path / "runs.sqlite")
    run(samples(300, first=1), [Kind(always=1.0)], store=tmp_path / "runs.sqlite")
    with serving(tmp_path / "runs.sqlite") as served, visit(served) as page:
        read = []
        page.on("request", lambda request: read.append(request.url))
        turn_to(page, served, "/runs/1/compare/2#/samples")
        expect(page.locator(".status")).to_have_text("301 of 301 samples")
        assert len([url for url in read if "/samples.json" in url]) == 1
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        expect(page.locator(".row .id").last).to_have_text("0")
        page.locator(".row .id").last.click()
        expect(page.locator("h1")).to_have_text("#a0 0")
        expect(page.locator("main")).to_contain_text("This sample is not in this run.")
        turn_to(page, served, "/runs/1/compare/2#/samples?change=better&scorer=kind")
        expect(page.locator(".status")).to_have_text("149 of 301 samples")
        expect(page.locator(".row .value").nth(0)).to_contain_text("▲")
        turn_to(page, served, "/runs/1/compare/2#/sample/3?change=better")
        expect(page.locator(".neighbors")).to_contain_text("2 of 149")
        page.keyboard.press("j")
        expect(page.locator("h1")).to_have_text("#5 6")
        expect(page.locator(".half")).to_have_count(2)


def test_a_long_list_is_read_as_it_comes_into_sight(tmp_path, visit):
    run(samples(1_000), [Kind()], store=tmp_path / "runs.sqlite")
    with serving(tmp_path / "runs.sqlite") as served, visit(served) as page:
        read = []
        page.on("request", lambda request: read.append(request.url))
        turn_to(page, served, "/runs/1#/samples")
        expect(page.locator(".status")).to_have_text("1,000 of 1,000 samples")
        assert len([url for url in read if "/samples.json" in url]) == 1
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        expect(page.locator(".row .id").last).to_have_text("999")
        assert len([url for url in read if "/samples.json" in url]) <= 3
        page.fill("input[name=value]", "<0.5")
        page.keyboard.press("Tab")
        expect(page.locator(".status")).to_have_text("500 of 1,000 samples")
        page.fill("#search", "question 77")
        expect(page.locator(".status")).to_have_text("5 of 1,000 samples")
        expect(page.locator(".row .id").nth(1)).to_have_text("772")
        turn_to(page, served, "/runs/1#/sample/598?value=%3C0.5")
        expect(page.locator(".neighbors")).to_contain_text("300 of 500")
        page.wait_for_selector(".neighbors a[rel=next]")
        page.keyboard.press("j")
        expect(page.locator("h1")).to_have_text("#600 600")
        page.keyboard.press("k")
        expect(page.locator("h1")).to_have_text("#598 598")


def test_twenty_labels_take_twenty_keys(served, visit):
    with visit(served) as page:
        turn_to(page, served, "/runs/1/label/kind?n=20")
        begin(page, "Ann")
        page.evaluate("addEventListener('keydown', () => (window.pressed = (window.pressed ?? 0) + 1))")
        for _ in range(20):
            page.keyboard.press("1")
        expect(page.locator("#stored")).to_contain_text("all stored")
        assert page.evaluate("window.pressed") == 20
        assert len({label.number for label in stored_labels(Run.stored(1, served.path))}) == 20
        expect(page.locator("#audit")).to_contain_text("n=20")
        page.click("#audit")
        expect(page.locator("#top [aria-current]")).to_have_text("Audit")


def test_samples_are_searched_and_shown(demo, visit):
    with visit(demo) as page:
        turn_to(page, demo, "/runs/1#/samples?q=meter")
        expect(page.locator(".samples .status")).not_to_contain_text("searched so far")
        page.locator(".row .id").first.click()
        expect(page.locator(".talk .message").first).to_be_visible()


def test_rows_show_their_previews_also_after_the_run_has_changed(served, visit):
    with visit(served) as page:
        turn_to(page, served, "/runs/1#/samples")
        expect(page.locator(".rows .question").first).to_have_text("user Question 0?")
        before = page.locator(".rows .row").first.element_handle()
        RunStore(served.path).describe(1, RunDescription("night build"))
        page.wait_for_function("row => !row.isConnected", arg=before)
        expect(page.locator(".rows .question").first).to_have_text("user Question 0?")
        turn_to(page, served, "/runs/1")
        expect(page.locator("h1")).to_have_text("Run 1 night build")


def test_a_label_appears_in_the_audit_of_another_tab(served, visit):
    with visit(served) as page, visit(served) as other:
        turn_to(other, served, "/runs/1")
        expect(other.locator("#top nav >> text=Audit")).to_be_hidden()
        turn_to(page, served, "/runs/1/label/kind?n=12")
        begin(page, "Ann")
        for _ in range(12):
            page.keyboard.press("1")
        expect(page.locator("#stored")).to_contain_text("all stored")
        expect(page.locator("#count")).to_have_text("12 of 12 labeled")
        expect(other.locator("#top nav >> text=Audit")).to_be_visible()
        other.click("#top nav >> text=Audit")
        expect(other.locator("main")).to_contain_text("kind")
        assert len(stored_labels(Run.stored(1, served.path))) == 12
        turn_to(page, served, "/runs/1/label/kind?n=12")
        begin(page, "Ann")
        expect(page.locator("#count")).to_have_text("12 of 12 labeled")
        begin_again = page.evaluate("localStorage.getItem('judgekit-annotator')")
        assert begin_again == "Ann"
        turn_to(page, served, "/runs/1/label/kind?n=12")
        begin(page, "Bob")
        expect(page.locator("#count")).to_have_text("0 of 12 labeled")


RUN = """
import sys, time
from judgekit import AIMessage, HumanMessage, Sample, Score, run, scorer

@scorer(name="slow")
def slow(sample: Sample) -> Score:
    return Score.scored("slow", 1.0)

def recorded():
    for number in range(12):
        time.sleep(0.2)
        yield Sample.of([HumanMessage("?"), AIMessage("!")], id=str(number))

run(recorded(), [slow], store=sys.argv[1])
"""


def test_a_run_of_another_process_is_followed_to_its_end(served, visit):
    with visit(served) as page:
        expect(page.locator(".runs tbody tr")).to_have_count(2)
        with subprocess.Popen([sys.executable, "-c", RUN, str(served.path)]) as scoring:  # noqa: S603 - Python itself
            expect(page.locator(".runs tbody tr")).to_have_count(3, timeout=30_000)
            expect(page.locator(".runs tbody tr").first).to_contain_text("running")
            expect(page.locator(".runs tbody tr").first).to_contain_text("ended", timeout=60_000)
            assert scoring.wait() == 0
        expect(page.locator(".runs tbody tr").first).to_contain_text("1.000")


def test_what_was_recorded_stays_text(tmp_path, visit):
    evil = "".join(HOSTILE)
    path = tmp_path / "runs.sqlite"
    for _ in range(2):
        run([sample.model_copy(update={"domain": evil}) for sample in samples(3)], [Kind()], store=path)
    as_read_from_a_file(path, 1, 2)
    with serving(path) as served, served.opened() as client:
        served.post(client, "/runs/1/description", {"name": evil[:90], "note": evil})
        served.post(client, "/runs/1/label/kind", {"annotator": evil[:90], "number": 0, "value": "yes", "reason": evil})
        with visit(served) as page:
            for address in (
                *("/", "/runs/1", "/runs/1#/samples", "/runs/1#/sample/0", "/runs/1#/audit", "/runs/1/label/kind"),
                *("/runs/1/trend/kind", "/runs/1/compare/2", "/compare?run=1&run=2"),
            ):
                turn_to(page, served, address)
                assert page.locator("main script, main img, main [onerror], main [onload], main style").count() == 0
