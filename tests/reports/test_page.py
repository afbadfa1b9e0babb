"""The report in a real browser."""

import random
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from judgekit import Judge, Run, SystemMessage, ToolCall, ToolCallF1, ToolMessage, compare, read, report, run, scorer
from judgekit.analysis.audit import audit as find
from judgekit.analysis.findings import Audit
from judgekit.analysis.gates import check_gates
from judgekit.analysis.labels import HumanLabel
from judgekit.constraints import Forbid
from judgekit.failures.finding import find_failures
from judgekit.judges.scripted import ScriptedJudge
from judgekit.reports.glossary import TERMS, terms_in
from judgekit.reports.html import html_report
from judgekit.runs.audit_records import Correction
from judgekit.runs.rows import RunDescription
from judgekit.score import JudgeCall, Score
from judgekit.scorers.goal import AgentGoalAccuracyWithReference
from judgekit.scorers.groundedness import Groundedness
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.constraints import ToolConstraints
from judgekit.scorers.topic import TopicAdherence
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.recording import Label
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace
from judgekit.traces.turns import find_turns
from tests.browsers import DESKTOP, LIGHT_AND_DARK, NEEDS_BROWSER, PHONE, keeps_nobody_out, unfold
from tests.failures.conftest import analyzed, failing  # noqa: F401 - a fixture
from tests.hostile import HOSTILE
from tests.scorers.test_turns import answering, conversation, planted

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
expect = sync_api.expect

STATUS = ".samples .status"
INJECTED = "main script, main img, main [onerror], main [onload], main style"
pytestmark = NEEDS_BROWSER


def turn_to(page, hash: str) -> None:
    page.evaluate("hash => { location.hash = hash; }", hash)
    page.wait_for_timeout(60)


def shown(page) -> str:
    return page.inner_text("main")


# --- reports


def write_page(path: Path, *reported: object) -> Path:
    path.write_text("".join(html_report(*reported)), encoding="utf-8")
    return path


@scorer
async def halves(sample: Sample) -> Score:
    """Scores of all kinds, by the sample's name."""
    number = int(sample.id.removeprefix("task-"))
    if number % 50 == 7:
        return Score.skipped("halves", "there is nothing to halve")
    if number % 50 == 9:
        return Score.abstained("halves", "nobody could tell")
    if number % 50 == 8:
        raise ValueError(f"no half of {number}")
    value = (number % 11) / 10
    return Score.scored(
        "halves", value, label="whole" if value == 1 else "part", reason=f"{value} of it, see message 2"
    )


@scorer
async def half_of_all(_: Sample) -> float:
    return 0.5


@scorer
async def evens(sample: Sample) -> float:
    return float(int(sample.id.removeprefix("task-")) % 2 == 0)


WORDS = [
    *("refund", "order", "flight", "ticket", "cancel", "booking", "policy", "agent", "customer", "change", "date"),
    *("seat", "baggage", "upgrade", "gift", "card"),
]


def sample(number: int, said: str = "") -> Sample:
    draw = random.Random(number)  # noqa: S311 - not a secret
    words = " ".join(draw.choices(WORDS, k=60))
    messages = [
        SystemMessage("You help customers of an airline. " * 6),
        HumanMessage(f"{words} {number * 7919 % 1_000_003:07}."),
        AIMessage("Let me see.", tool_calls=[ToolCall("get_order", {"order": number})]),
        ToolMessage('{"status": "shipped", "parts": [1, 2, 3]}', is_error=number % 10 == 0),
        AIMessage(said or " ".join(draw.choices(WORDS, k=60))),
    ]
    return Sample.of(
        messages, id=f"task-{number}", domain=("air", "rail")[number % 2], label=("yes", "no")[number % 3 > 0]
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """A report of ten times as many samples as its list has rows at once."""
    folder = tmp_path_factory.mktemp("long")
    scored = run(map(sample, range(1_000)), [halves, evens], store=folder / "runs.sqlite")
    report(scored, folder / "report.html")
    return folder / "report.html"


def score_examples(examples: Path, store: Path | None = None) -> Run:
    """A run of the example conversations, with judges' replies."""
    judge = Judge("demo/handwritten", cache=examples / "replies.jsonl", cache_mode="replay")
    scorers = [ToolCallAccuracy(), ToolCallF1(), TopicAdherence(judge), AgentGoalAccuracyWithReference(judge)]
    return run(read(examples / "conversations.jsonl"), scorers, store=store)


@pytest.fixture(scope="module")
def demo(tmp_path_factory, examples) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    report(score_examples(examples, folder / "runs.sqlite"), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def gated(tmp_path_factory, examples) -> Path:
    """The report of the example conversations, with gates of which some are not met."""
    path, scored = tmp_path_factory.mktemp("gated") / "report.html", score_examples(examples)
    gates = ["tool_call_f1 >= 0.9", "tool_call_f1.min >= 0.7", "failed <= 1%"]
    report(scored, path, check_gates(scored, [*gates, "agent_goal_accuracy_with_reference.lower >= 0.7"]))
    return path


@pytest.fixture(scope="module")
def audited(tmp_path_factory, examples, audit_saying) -> Path:
    """The report of the example conversations, with what an audit found of a judge."""
    audit = audit_saying("", scorer="agent_goal_accuracy_with_reference", index=13)
    return write_page(tmp_path_factory.mktemp("audited") / "report.html", score_examples(examples), audit)


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    """Two runs beside each other: another agent, and some samples of one run only."""

    @scorer(name="halves")
    async def doubles(sample: Sample) -> Score:
        found = await halves.ascore(sample)
        return (
            found if found.value is None else Score.scored("halves", min(1.0, 1.2 - found.value), reason="turned round")
        )

    folder = tmp_path_factory.mktemp("compared")
    before = run([sample(number) for number in range(60)], [halves, evens], store=folder / "runs.sqlite")
    after = run(
        [sample(number, "All is done.") for number in range(5, 65)], [doubles, evens], store=folder / "runs.sqlite"
    )
    return write_page(folder / "report.html", compare(before, after))


# --- speed


def test_of_a_thousand_samples_those_in_sight_are_drawn_and_all_are_searched(long, opened):
    assert long.stat().st_size < 2_000_000
    with opened(long, "#/samples") as page:
        page.wait_for_selector("html[data-ready=read]")
        for words, count in (("task-99", 11), ("nobody says this", 0), ("", 1_000)):
            page.fill("#search", words)
            expect(page.locator(STATUS)).to_have_text(f"{count:,} of 1,000 samples")
            assert page.locator(".rows .row").count() < 100


# --- what there is to see


def test_the_overview_has_a_line_a_scorer_and_signatures_behind_a_fold(demo, opened):
    with opened(demo, "#/") as page:
        text = shown(page)
        assert "14 of 14" in text
        assert "12 of 14" in text
        assert page.locator("tbody tr th a", has_text="tool_call_f1").count() == 1
        assert page.locator(".histogram").count() == 4
        assert page.locator("svg.interval").first.get_attribute("aria-label").startswith("0.637, interval")
        assert page.locator(".gates").count() == 0
        assert page.locator("main h2").first.inner_text() == "Scores"
        signature = Run.stored(1, demo.parent / "runs.sqlite").scorers[0].signature
        assert "signature" not in page.locator(".lines thead").inner_text()
        assert signature not in shown(page)
        unfold(page)
        assert signature in shown(page)
        page.click("text=topic_adherence")
        assert page.evaluate("location.hash").startswith("#/samples?scorer=topic_adherence")


def test_a_sample_shows_its_conversation_its_scores_and_what_judges_were_asked(demo, opened):
    with opened(demo, "#/sample/2/agent_goal_accuracy_with_reference") as page:
        assert page.inner_text("h1") == "#2 wrong_argument"
        assert page.locator(".message").count() == 10
        assert page.locator(".score h3").first.inner_text() == "agent_goal_accuracy_with_reference"
        assert page.locator(".score").count() == 4
        assert page.evaluate("document.querySelector('.scores').scrollTop") == 0
        box = page.locator(".talk .expected")
        assert box.bounding_box()["y"] < page.locator(".message").first.bounding_box()["y"] < DESKTOP["height"]
        assert "A 45-minute meeting" in box.inner_text()
        first = box.locator(".expected-calls li").first.inner_text()
        assert first.startswith('find_free_slots {"date": "2025-09-12", "attendees": [')
        box.locator("summary").click()
        assert "A 45-minute meeting" not in box.inner_text()
        assert "30" in page.locator(".diff.differs mark").nth(1).inner_text()
        chosen = page.locator(".score.is-chosen")
        assert "agent_goal_accuracy_with_reference" in chosen.inner_text()
        cited = [
            page.locator(".is-cited .place").nth(at).inner_text() for at in range(page.locator(".is-cited").count())
        ]
        linked = chosen.locator(".cites .jump").all_inner_texts()
        assert cited == sorted(linked, key=int)
        chosen.locator(".cites .jump").last.click()
        assert page.evaluate("document.activeElement.id") == f"b-message-{linked[-1]}"
        chosen.get_by_text("judge request").click()
        expect(chosen.locator(".asked .lead").first).to_contain_text("answered as handwritten")
        chosen.get_by_text("prompt as sent").click()
        chosen.get_by_text("reply as received").click()
        expect(chosen.locator(".asked pre").nth(1)).to_contain_text("calls find_free_slots")
        expect(chosen.locator(".asked pre").last).to_contain_text('"verdict": "not_achieved"')
        assert page.locator(".call pre").count() == 0  # folded
        page.click(".call summary")
        assert '"duration_minutes"' in page.inner_text(".call pre") or '"attendees"' in page.inner_text(".call pre")
        page.click(".message.tool .result summary")
        assert page.inner_text(".message.tool pre").startswith('{\n  "date"')


def test_a_damaged_conversation_is_named_in_its_place(tmp_path, opened):
    report(
        run([sample(number) for number in range(3)], [halves], store=tmp_path / "runs.sqlite"), tmp_path / "whole.html"
    )
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db, db:
        db.execute("UPDATE conversations SET sample = x'00' WHERE number = 1")
    report(Run.stored(1, tmp_path / "runs.sqlite"), tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/sample/1") as page:
        expect(page.locator(".talk")).to_contain_text("is not stored with the run, or is damaged there")
        turn_to(page, "#/sample/2")
        expect(page.locator(".talk .message").first).to_be_visible()


def test_on_a_phone_a_button_leads_past_the_scores(demo, opened):
    with opened(demo, "#/sample/2", viewport=PHONE) as page:
        page.click(".to-talk")
        expect(page.locator(".talk h2")).to_be_focused()
        expect(page.locator(".message").first).to_be_in_viewport()


def test_all_scores_are_printed_dark_on_light(long, opened):
    with opened(long, "#/sample/1", color_scheme="dark", viewport={"width": 1200, "height": 300}) as page:
        page.emulate_media(media="print")
        scores = page.locator(".scores")
        assert scores.evaluate("one => getComputedStyle(one).maxHeight") == "none"
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_what_a_judge_quotes_and_cites_is_marked_where_it_stands(tmp_path, opened):
    @scorer
    def quoting(sample: Sample) -> Score:
        quote = {"message": 1, "quote": "| the seam   (left)", "found": True}
        verdict = {"shown_first": "baseline", "evidence_first": [2], "evidence_second": [1]}
        return Score.scored("quoting", 1.0, details={"evidence": [quote], "verdicts": [verdict]})

    made = Sample.of([HumanMessage("I saw\nthe seam\n(left) leak."), AIMessage("Oh.")], id="a")
    both = made.model_copy(update={"baseline": made.trace})
    report(run([both], [quoting], store=tmp_path / "runs.sqlite"), tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/sample/0/quoting") as page:
        assert page.locator("mark.quote").all_text_contents() == ["the seam\n(left)"]
        cited = page.evaluate("[...document.querySelectorAll('.is-cited')].map((one) => one.id)")
        assert cited == ["b-message-1", "b-baseline-2"]
        page.click(".cites .jump >> text=baseline 2")
        assert page.evaluate("document.activeElement.id") == "b-baseline-2"
        turn_to(page, "#/samples")  # of one scorer, with its reasons
        assert page.locator(".heads .cell").all_inner_texts() == ["#", "id", "quoting", "reason"]


def test_filters_and_order_leave_and_sort_what_they_say(long, opened):
    with opened(long, "#/samples?scorer=halves&status=failed") as page:
        expect(page.locator(STATUS)).to_have_text("20 of 1,000 samples")
        page.select_option("select[name=status]", "abstained")
        expect(page.locator(STATUS)).to_have_text("20 of 1,000 samples")
        assert page.locator(".rows .id").first.inner_text() == "task-9"
        page.select_option("select[name=status]", "")
        page.select_option("select[name=sort]", "high:halves")
        assert page.locator(".rows .number").first.inner_text() == "1.00"
        page.select_option("select[name=label]", '["whole"]')
        expect(page.locator(STATUS)).to_have_text("84 of 1,000 samples")
        page.select_option("select[name=domain]", "rail")
        expect(page.locator(STATUS)).to_have_text("41 of 1,000 samples")
        page.go_back()
        expect(page.locator(STATUS)).to_have_text("84 of 1,000 samples")
        page.click("text=clear all")
        expect(page.locator(STATUS)).to_have_text("1,000 of 1,000 samples")


def test_rows_show_questions_answers_and_whole_names_and_what_failed_stands_out(demo, opened):
    with opened(demo, "#/samples?sort=low:tool_call_accuracy") as page:
        page.wait_for_selector("html[data-ready=read]")
        low, full = page.locator(".rows .number.low").first, page.locator(".rows .number.full").first
        weight = "one => Number(getComputedStyle(one).fontWeight)"
        assert low.evaluate(weight) > 700
        assert full.evaluate(weight) < 500
        assert low.evaluate("one => getComputedStyle(one, '::before').content").startswith('"\u25be"')
        assert {text[:4] for text in page.locator(".rows .number.full").all_inner_texts()} == {"1.00"}
        assert page.locator(".rows .number.partial").first.evaluate(weight) == 600
        row, heads = page.locator(".rows .row", has_text="wrong_argument"), page.locator(".heads a")
        expect(row.locator(".question")).to_contain_text("user Can you find a slot with Tomasz")
        expect(row.locator(".answer")).to_contain_text("agent Done.")
        assert heads.last.inner_text().replace("\n", "") == "agent_goal_accuracy_with_reference"
        cut = "all => all.filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight).length"
        assert heads.evaluate_all(cut) == 0
        turn_to(page, "#/samples?scorer=tool_call_f1")
        expect(row.locator(".question")).to_contain_text("user Can you find a slot with Tomasz")


def test_values_are_filtered_by_what_the_address_says(long, opened):
    with opened(long, "#/samples?scorer=halves&value=%3C0.5") as page:
        expect(page.locator(STATUS)).to_have_text("428 of 1,000 samples")
        assert page.input_value("input[name=value]") == "<0.5"
        for text, samples in (("1", 84), ("<=0", 85), (">= .5", 512), ("!=1", 856)):
            page.fill("input[name=value]", text)
            page.press("input[name=value]", "Enter")
            expect(page.locator(STATUS)).to_have_text(f"{samples} of 1,000 samples")
        assert "value=%21%3D1" in page.evaluate("location.hash")
        page.fill("input[name=value]", "<high>")
        page.press("input[name=value]", "Enter")
        expect(page.locator(STATUS)).to_contain_text("the value <high> is no number such as 0.5, <0.5 or >=0.5")
        assert page.get_attribute("input[name=value]", "aria-invalid") == "true"


def test_a_phone_shows_the_value_of_each_scorer_by_its_name(demo, opened):
    with opened(demo, "#/samples", viewport=PHONE) as page:
        page.wait_for_selector("html[data-ready=read]")
        names = page.locator(".rows .row").first.locator(".scorer-name")
        assert [name.strip() for name in names.all_inner_texts()] == [
            *("tool_call_accuracy", "tool_call_f1", "topic_adherence", "agent_goal_accuracy_with_reference")
        ]
        assert names.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")
        for value in page.locator(".rows .row").first.locator(".value .number").all():
            box = value.bounding_box()
            assert 0 < box["x"] < box["x"] + box["width"] < PHONE["width"]
        cut = "all => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length"
        assert page.locator(".rows .row").evaluate_all(cut) == 0


def test_a_bar_of_the_distribution_leads_to_its_samples(demo, opened):
    with opened(demo, "#/") as page:
        page.locator(".histogram").nth(0).locator("a").first.click()
        expect(page.locator(STATUS)).to_have_text("5 of 14 samples")  # those with tool_call_accuracy under 0.1
        assert {text[:4] for text in page.locator(".rows .value .number").all_inner_texts()} == {"0.00"}


def test_a_slice_leads_to_its_samples(long, opened):
    with opened(long, "#/") as page:
        for name, samples in (("rail", "500"), ("no", "666")):  # a domain, a label
            turn_to(page, "#/")
            unfold(page)
            page.locator(".slices th a").get_by_text(name, exact=True).click()
            expect(page.locator(STATUS)).to_have_text(f"{samples} of 1,000 samples")


def test_keys_lead_through_the_samples(long, opened):
    with opened(long, "#/") as page:
        page.keyboard.press("/")
        page.wait_for_selector("#search:focus")
        page.keyboard.type("task-424")
        expect(page.locator(STATUS)).to_have_text("1 of 1,000 samples")
        page.wait_for_url("**q=task-424")  # so that the address can be passed on
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector("article.sample")
        assert page.inner_text("h1") == "#424 task-424"
        page.keyboard.press("Escape")
        page.wait_for_selector(".samples")
        assert page.input_value("#search") == "task-424"
        page.goto(f"{long.as_uri()}#/sample/10")
        page.wait_for_selector("text=#10")
        for key, number in (("j", 11), ("j", 12), ("k", 11)):
            page.keyboard.press(key)
            expect(page.locator("h1")).to_have_text(f"#{number} task-{number}")
        page.keyboard.press("?")
        assert page.locator("dialog[open]").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0


def test_a_list_that_is_scrolled_is_there_again_on_the_way_back(long, opened):
    with opened(long, "#/samples") as page:
        page.evaluate("scrollTo(0, 28000)")
        expect(page.locator(".rows .id", has_text="task-501")).to_have_count(1)
        page.locator(".rows .id", has_text="task-501").click()
        page.wait_for_selector("article.sample")
        page.go_back()
        page.wait_for_selector(".samples")
        assert page.evaluate("scrollY") == pytest.approx(28_000, abs=400)


def test_two_runs_stand_beside_each_other(compared, opened):
    with opened(compared, "#/") as page:
        assert page.inner_text("h1") == "Run 2 compared with run 1"
        row = page.locator(".differences tbody tr", has_text="halves")
        worse, better = (int(row.locator(f"td[data-name={name}] a").inner_text()) for name in ("worse", "better"))
        row.locator("td[data-name=worse] a").click()
        page.wait_for_selector(".samples")
        expect(page.locator(STATUS)).to_have_text(f"{worse} of 65 samples")
        page.select_option("select[name=change]", "changed")
        expect(page.locator(STATUS)).to_have_text(f"{worse + better} of 65 samples")
        page.select_option("select[name=change]", "one side")
        expect(page.locator(STATUS)).to_have_text("10 of 65 samples")
        page.locator(".rows .id").last.click()
        page.wait_for_selector("article.sample")
        assert "This sample is not in this run." in shown(page)
        page.goto(f"{compared.as_uri()}#/sample/15")
        page.wait_for_selector("text=#15")
        assert page.locator(".talk").count() == 2
        assert "All is done." in page.locator(".talk").nth(1).inner_text()
        assert "All is done." not in page.locator(".talk").nth(0).inner_text()
        assert "turned round" in page.locator(".half").nth(1).inner_text()
        assert page.locator(".half").count() == 2  # what did not change is folded
        page.click("text=both reasons")
        expect(page.locator(".half")).to_have_count(4)  # the page fills it as it opens


def test_a_comparison_is_one_table_each_run_is_behind_a_fold_and_only_evidence_has_a_color(compared, opened):
    with opened(compared, "#/") as page:
        assert page.locator("main table:visible").count() == 1
        row = page.locator(".differences tbody tr", has_text="halves")
        assert "no evidence" in row.locator("th").inner_text()
        assert row.locator(".better, .worse, .arrow:not(:empty)").count() == 0
        page.click("summary >> text=B: run 2")
        expect(page.locator(".lines:not(.differences) tbody tr")).to_have_count(2)
        unfold(page)
        assert page.locator(".lines:not(.differences)").count() == 2
        left_out = row.locator("td[data-name='left out'] a")
        number = left_out.inner_text()
        left_out.click()
        page.wait_for_selector(".samples")
        expect(page.locator(STATUS)).to_have_text(f"{number} of 65 samples")
        assert page.locator(".rows .badge").count() == int(number)


def test_what_labels_contradict_is_the_first_sentence_and_the_judges_own_stands_below_the_corrected(opened, tmp_path):
    @scorer
    def tone(sample: Sample) -> float:
        return sample.metadata["passes"]

    before, after = (
        run(
            [Sample(id=f"s{number}", metadata={"passes": float(number % 10 < share)}) for number in range(100)],
            [tone],
            store=tmp_path / "runs.sqlite",
        )
        for share in (4, 8)
    )
    labels = [
        HumanLabel(sample=f"s{number}", scorer="tone", value=float(number * side.number % 10 < 5), run=side.number)
        for side in (before, after)
        for number in range(100)
    ]
    path = write_page(tmp_path / "report.html", compare(before, after, labels=labels))
    with opened(path, "#/") as page:
        first = page.locator(".overview .note").first.inner_text()
        assert first.startswith(
            "tone: the judge and human labels disagree: corrected by the labels, there is no evidence"
        )
        row = page.locator(".differences tbody tr")
        assert row.locator("th").inner_text().split("\n") == [
            *("tone", "no evidence of a difference", "by the judge alone: better")
        ]
        assert row.locator("td[data-name=B]").inner_text().split("\n") == ["0.600", "corrected", "judge 0.800"]


def test_the_age_of_an_audit_is_that_of_today_however_old_the_page_is(run_with_audit, opened, tmp_path):
    run = run_with_audit("kappa")
    text, at = "".join(html_report(run)), run.started_at
    for days, age in ((0, "less than a day ago"), (1, "1 day ago"), (40, "40 days ago")):
        (tmp_path / "page.html").write_text(text.replace(at.isoformat(), (at - timedelta(days)).isoformat()))
        with opened(tmp_path / "page.html", "#/") as page:
            said = page.locator(".lines td[data-name=audit]").first.inner_text()
            assert said == f"audited {age}: kappa .71 [.58, .82], n=120"


def test_the_report_of_an_audit_opens_at_it_and_leads_to_the_samples_on_which_people_and_the_judge_differ(
    audited, opened
):
    with opened(audited) as page:
        assert (page.inner_text("h1"), page.evaluate("location.hash")) == ("Audit", "#/audit")
        page.click("#top nav a >> text=Overview")
        expect(page.locator("h1")).to_have_text("Run 1")
        row = page.locator(".lines tbody tr", has_text="agent_goal")
        assert row.locator("td[data-name=audit]").inner_text().startswith("audited: kappa .71 [.58, .82]")
        assert page.locator(".lines tbody tr", has_text="tool_call_f1").locator(".unaudited").count() == 0
        row.locator("td[data-name=audit] a").click()
        page.wait_for_selector(".audit")
        assert page.locator("#top nav [aria-current]").inner_text() == "Audit"
        assert (
            page.locator(".headline").inner_text()
            == "corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 from 2 people"
        )
        assert page.locator(".estimates").get_attribute("aria-label") == (
            "judge's mean (raw) 0.643, interval 0.588 to 0.694; corrected mean (PPI++) 0.581, interval 0.511 to 0.649"
        )
        assert page.locator(".confusion tbody td").all_inner_texts() == ["63", "5", "12", "0"]
        assert page.locator(".disagreement a").count() == 1  # the sample of the other one is not in the file
        page.click(".disagreement a")
        page.wait_for_selector("article.sample")
        said = page.locator(".score.is-chosen .opinion").all_inner_texts()
        assert said == ["anna no 0.00 nothing came", "a person no 0.00"]
        page.keyboard.press("Escape")
        turn_to(page, "#/audit")
        page.keyboard.press("Escape")
        expect(page.locator("h1")).to_have_text("Run 1")


def test_what_is_not_corrected_says_why_and_shows_the_raw_mean_alone(tmp_path, audit_saying, opened):
    [found] = audit_saying("").scorers
    refused = found.model_copy(update={"correction": Correction(unavailable_reason="5 labels are too few")})
    path = write_page(tmp_path / "report.html", run([sample(1)], [halves]), Audit(run=1, scorers=[refused]))
    with opened(path, "#/audit") as page:
        mean = page.locator(".card").first
        assert "not corrected: 5 labels are too few" in mean.inner_text()
        assert mean.locator(".dot").count() == 1


MARKDOWN = """# Your *options*

I compared **three flights** for *you*, `BA 117` first: __init__, 2*3*4 and my_file_name stay.

| flight | price |
|:--|--:|
| BA 117 | **$412** |
| <img src=x onerror=alert(1)> | a \\| b |

1. Book it
   with a bag
2. Wait
   - until Friday

> The fare includes one bag.

See [the <b>rules</b>](javascript:alert(2)) and ![seat](https://evil.example/x.png).

---
```python
"**as is** <script>alert(3)</script>"
```"""


def test_markdown_is_rendered_as_text_with_what_judges_quote_marked(tmp_path, opened):
    @scorer
    def quoting(sample: Sample) -> Score:
        quotes = [
            {"message": 2, "quote": quote} for quote in ("| BA 117 | **$412** |", "compared **three flights** for")
        ]
        return Score.scored("quoting", 1.0, details={"evidence": quotes})

    report(run([Sample.of([HumanMessage("*now*"), AIMessage(MARKDOWN)])], [quoting]), tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/sample/0") as page:
        shown = page.locator("#b-message-2 .markdown")
        assert shown.locator(".heading").inner_text() == "Your options"
        assert shown.locator("strong").all_inner_texts() == ["three flights", "$412"]
        assert shown.locator("em").all_inner_texts() == ["options", "you"]
        assert shown.locator("code").all_inner_texts() == ["BA 117"]
        assert "__init__, 2*3*4 and my_file_name stay." in shown.inner_text()
        assert shown.locator("th").all_inner_texts() == ["flight", "price"]
        cells = ["BA 117", "$412", "<img src=x onerror=alert(1)>", "a \\| b"]
        assert shown.locator("td").all_inner_texts() == cells
        assert [" ".join(one.split()) for one in shown.locator("li").all_inner_texts()] == [
            *("1. Book it with a bag", "2. Wait", "• until Friday")
        ]
        assert shown.locator("blockquote").inner_text() == "The fare includes one bag."
        # an address with brackets is left
        assert "the <b>rules</b> (javascript:alert(2)) and" not in shown.inner_text()
        assert "seat (https://evil.example/x.png)" in shown.inner_text()
        assert shown.locator("pre").inner_text() == '"**as is** <script>alert(3)</script>"'
        assert shown.locator("mark.quote").all_inner_texts() == ["compared ", "three flights", " for", "BA 117", "$412"]
        assert page.locator("main a[href*=evil], main img, main script, main b").count() == 0
        page.locator("#b-message-2").get_by_role("button", name="as recorded").click()
        assert shown.evaluate("one => one.textContent") == MARKDOWN
        page.locator("#b-message-2").get_by_role("button", name="as Markdown").click()
        assert shown.locator("th").count() == 2


ODD = [
    *("*" * 20_000, "`" * 20_000, "[" * 20_000, "|" * 19_000 + "\n" + "|-" * 400, "**a " * 5_000, "*a " * 6_000),
    *("> " * 9_000, "- " * 9_000, "#" * 19_000, "![a](" * 3_000, "```\n" * 4_001, "| a |\n|---|\n" * 1_500),
    *("\r\n- a\r\n" * 2_000, "\n".join(" " * depth + "- a" for depth in range(150)), "***a** b*", "**", "a\n|"),
    *("|-|\n|-|", "~~~", "\n" * 19_000),
]


@LIGHT_AND_DARK
def test_markdown_keeps_nobody_out(tmp_path, opened, viewport, scheme):
    made = [Sample.of([HumanMessage("# a"), AIMessage(text)]) for text in (MARKDOWN, *ODD[:7], "".join(HOSTILE))]
    scored = run(made, [half_of_all], store=tmp_path / "runs.sqlite")
    scored.store.describe(1, RunDescription("n" * 200, "note " * 200, ("nightly", "t" * 50)))
    report(scored, tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/", viewport=viewport, color_scheme=scheme) as page:
        for view in ("#/", "#/samples?value=high", *(f"#/sample/{number}" for number in range(len(made)))):
            turn_to(page, view)
            unfold(page)
            if view in {"#/", "#/samples?value=high", "#/sample/0"}:
                keeps_nobody_out(page, view)
            assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], view


def test_no_markdown_takes_long_or_loses_a_word(tmp_path, opened):
    path = write_page(tmp_path / "report.html", run([sample(1)], [evens]))
    rendered = """(text) => {
      const since = performance.now();
      written(text, []);
      const took = performance.now() - since;
      return [took, written(text, [{ pattern: /a/g, kind: "hit" }]).textContent];
    }"""
    with opened(path, "#/") as page:
        for text in (*ODD, *HOSTILE, "".join(HOSTILE)):
            took, shown = page.evaluate(rendered, text)
            assert took < 5_000, text[:20]
            assert shown.count("a") >= text.count("a"), text[:20]
        draw = random.Random(7)  # noqa: S311 - not a secret
        for _ in range(500):
            text = "".join(
                draw.choices(["*", "**", "`", "|", "-", "\n", "word", " ", "[a](b)", "#", ">", "1.", "```"], k=30)
            )
            assert page.evaluate(rendered, text)[1].count("word") >= text.count("word"), text


def test_rows_of_matched_calls_show_their_arguments(tmp_path, opened):
    calls = [ToolCall("get_order", {"order": number}, id=str(number)) for number in range(3)]
    results = [ToolMessage("{}", tool_call_id=str(number)) for number in range(3)]
    made = Sample.of([AIMessage("", tool_calls=calls), *results], reference_tool_calls=[calls[1], calls[0], calls[2]])
    report(run([made], [ToolCallF1()]), tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/sample/0") as page:
        rows = page.locator(".diff.equal td[data-name=made]")
        assert rows.all_inner_texts() == [f'1 get_order {{"order": {number}}}' for number in (1, 0, 2)]


def test_the_head_names_the_run_and_its_agents(tmp_path, opened):
    evil = "".join(HOSTILE)
    made = [
        sample(number).model_copy(update={"metadata": {"agent": f"bot {number % 5} {evil}"}}) for number in range(9)
    ]
    scored = run(made, [evens], store=tmp_path / "runs.sqlite")
    scored.store.describe(1, RunDescription(f"night {evil}", f"note {evil}", ("nightly", "gpt-6")))
    report(scored, tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/", viewport=PHONE) as page:
        assert page.inner_text("h1").startswith("Run 1 night <script>")
        about = page.locator(".about").inner_text()
        assert about.startswith("agents bot 0 <script>")
        assert "and 2 more" in about
        assert {"nightly", "gpt-6"} <= {*about.split()}
        assert "note <script>" in about
        assert page.locator(INJECTED).count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


# --- gates


def test_gates_stand_at_the_top_with_what_was_found_and_lead_to_the_sample_that_they_name(gated, opened):
    low = "found 0.5 (sample #2 'wrong_argument', n=14 of 14); below 0.7: 1 of 14 scored samples"
    with opened(gated, "#/") as page:
        assert page.locator("main h2").first.inner_text() == "2 of 4 gates not met"
        gates = page.locator(".gate")
        assert [" ".join(one.split()) for one in gates.all_inner_texts()] == [
            f"✕ not met tool_call_f1.min >= 0.7 {low} · show the sample",
            "✕ not met agent_goal_accuracy_with_reference.lower >= 0.7 found 0.355 (Wilson, n=13 of 14; 1 skipped)",
            "✓ met tool_call_f1 >= 0.9 found 0.911 (n=14 of 14)",
            "✓ met failed <= 1% found 0 of 56, 0%",
        ]
        assert page.locator(".gate.unmet").count() == 2
        below = page.locator(".lines").first.bounding_box()["y"]
        assert gates.last.bounding_box()["y"] < below < DESKTOP["height"]
        assert "Wilson" in explanations(page)
        gates.first.locator("a").click()
        expect(page.locator("h1")).to_have_text("#2 wrong_argument")


def test_gates_are_printed_in_dark_as_in_light(gated, opened):
    def printed(page) -> tuple[str, str, str]:
        page.emulate_media(
            media="print",
            color_scheme=page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"),
        )
        style = "getComputedStyle(document.querySelector('.gate.unmet'))"
        return shown(page), page.evaluate(f"{style}.backgroundColor"), page.evaluate(f"{style}.color")

    with opened(gated, "#/", color_scheme="dark") as dark:
        in_dark = printed(dark)
    with opened(gated, "#/", color_scheme="light") as light:
        assert printed(light) == in_dark
    assert "✕ not met" in in_dark[0]


# --- for everybody


VIEWS = {
    "gated": ("#/",),
    "demo": ("#/", "#/samples", "#/samples?scorer=topic_adherence", "#/sample/2/agent_goal_accuracy_with_reference"),
    "audited": ("#/", "#/audit", "#/sample/13"),
    "compared": ("#/", "#/samples", "#/samples?scorer=halves", "#/sample/15"),
}


@LIGHT_AND_DARK
@pytest.mark.parametrize("report", VIEWS)
def test_nothing_keeps_people_out_or_scrolls_sideways(report, viewport, scheme, request, opened):
    with opened(request.getfixturevalue(report), "#/", viewport=viewport, color_scheme=scheme) as page:
        for view in VIEWS[report]:
            turn_to(page, view)
            unfold(page)
            keeps_nobody_out(page, view)


def test_the_button_turns_light_to_dark(demo, opened):
    with opened(demo, "#/", color_scheme="light") as page:
        background = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(background)
        page.click("#theme")
        assert page.evaluate(background) != light
        page.click("#theme")
        assert page.evaluate(background) == light


def test_without_scripts_the_numbers_are_there(demo, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(demo.as_uri())
    assert "12 of 14" in shown(page)


# --- what was recorded is hostile


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    evil = "".join(HOSTILE)

    @scorer(name=f"evil {evil}")
    def unkind(sample: Sample) -> Score:
        calls = JudgeCall(judge=evil, prompt=evil, model=evil, system_fingerprint=evil, error=evil)
        call = {"name": evil, "message": 1, "args": {evil: evil}, "expected": 0, "actual": 0}
        details = {
            evil: {evil: [evil, {evil: evil}]},
            "__proto__": {"polluted": True},
            "evidence": [{"message": 1, "quote": evil, "found": False}, 99, -1],
            "pairs": [{**call, "differences": [{"path": evil, "expected": evil, "actual": evil}]}],
            "missing": [call],
            "extra": [call],
            "sentences": [
                {
                    "message": where,
                    "start": 0,
                    "text": evil,
                    "kind": evil,
                    "verdict": evil,
                    "source": where,
                    "quote": evil,
                }
                | {"bad": [[0, 20], [10, 30], [evil]], "problem": problem, "numbers_missing": [evil]}
                for where, problem in ((1, None), (evil, evil))
            ],
        }
        said = {"label": evil, "reason": f"{evil} message 1, message 999", "warnings": [evil]}
        return Score.scored(f"evil {evil}", 0.5, details=details, calls=[calls], **said)

    def one(text: str) -> Sample:
        image = MediaPart(kind="image", url=text, name=text, mime_type=text)
        parts = (TextPart(text), ReasoningPart(text), RefusalPart(text), image, OtherPart({text: text}))
        calls = [ToolCall(text, {text: text}), ToolCall(text, args_raw=text, args_error=text)]
        messages = [
            SystemMessage(text),
            HumanMessage(parts, name=text),
            AIMessage(parts, agent=text, tool_calls=calls),
            ToolMessage(text, name=text, is_error=True),
        ]
        made = Sample.of(
            messages, id=text or "empty", domain=text, label=text, group=text, reference=text, metadata={text: text}
        )
        trace = made.trace.model_copy(
            update={"labels": (Label(text, text),), "metadata": {text: text}, "children": (made.trace,)}
        )
        return made.model_copy(update={"trace": trace, "baseline": made.trace})

    folder = tmp_path_factory.mktemp("hostile")
    scored = run([one(text) for text in (*HOSTILE, evil)], [unkind], store=folder / "runs.sqlite")
    return write_page(folder / "report.html", compare(scored, scored))


def test_what_was_recorded_stays_text(hostile, opened):
    evil = "".join(HOSTILE)
    last = len(HOSTILE)
    with opened(hostile, "#/", viewport=PHONE) as page:
        assert page.evaluate("({}).polluted") is None
        for address in ("#/", "#/samples", *(f"#/sample/{number}" for number in range(last + 1))):
            turn_to(page, address)
            unfold(page)
            assert page.locator(INJECTED).count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            assert page.evaluate(
                "[...document.querySelectorAll('a')].every((a) => (a.href.baseVal ?? a.getAttribute('href')).startsWith('#'))"
            )
        assert evil in page.evaluate("document.querySelector('main').textContent")
        odd = "#/samples?label=[&scorer=__proto__&sort=low:__proto__"
        for address in ("#/sample/%E0%A4%A", odd, "#/sample/<img src=x>", "#/constructor"):
            turn_to(page, address)
            assert page.locator("h1").count() == 1


def test_what_gates_and_the_ids_in_them_say_stays_text(tmp_path, opened):
    evil = "".join(HOSTILE)

    @scorer(name=f"evil {evil}")
    def low(sample: Sample) -> float:
        return 0.25

    scored = run([sample(1).model_copy(update={"id": evil})], [low])
    gates = check_gates(scored, [f"evil {evil}.min >= 0.5", f"evil {evil} >= 0.2"])
    report(scored, tmp_path / "report.html", gates)
    with opened(tmp_path / "report.html", "#/") as page:
        assert page.locator(".gate").count() == 2
        assert page.locator(INJECTED).count() == 0
        said = page.locator(".gate code").first.evaluate("one => one.textContent")
        assert "<img src=x onerror=alert(3)>" in said
        assert "\\u202e" in said
        assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]


def test_what_people_say_stays_text(tmp_path, audit_saying, opened):
    evil = "".join(HOSTILE)
    scored = run([sample(1)], [halves])
    audit = audit_saying(evil, scorer="halves")
    with opened(write_page(tmp_path / "report.html", scored, audit), "#/audit", viewport=PHONE) as page:
        for address in ("#/audit", "#/sample/0", "#/audit/__proto__"):
            turn_to(page, address)
            assert page.locator(INJECTED).count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
            assert "<script>alert(1)</script>" in page.evaluate("document.querySelector('main').textContent")


def test_a_long_reason_is_shown_when_asked_for_and_keeps_its_lines(tmp_path, audit_saying, opened):
    audit = audit_saying("\nand so on" * 3_000, scorer="halves")
    with opened(write_page(tmp_path / "report.html", run([sample(1)], [halves]), audit), "#/audit") as page:
        reason = page.locator(".disagreement .prose", has_text="nothing came").first
        assert len(reason.inner_text()) < 21_000
        assert reason.inner_text().startswith("nothing came\nand so on\n")
        reason.get_by_role("button", name="show all 30,012 characters").click()
        assert len(reason.inner_text()) == 30_012


def test_the_policy_stops_what_would_get_past(demo, browser):
    context = browser.new_context()
    page = context.new_page()
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto(demo.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate(
        """() => {
          const image = document.createElement("img");
          image.src = "https://example.invalid/x.png";
          const script = document.createElement("style");
          script.textContent = "body { display: none }";
          document.body.append(image, script);
          try { document.body.innerHTML = "<b>"; } catch (error) { console.log(error.name); }
        }"""
    )
    page.wait_for_timeout(100)
    text = "\n".join(blocked)
    assert [word for word in ("img-src", "style-src", "TypeError") if word not in text] == []
    context.close()


def test_a_run_of_no_samples_can_be_opened(tmp_path, opened):
    report(run([], [halves], store=tmp_path / "runs.sqlite"), tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/") as page:
        assert "0 of 0" in shown(page)
        turn_to(page, "#/samples?q=x")
        expect(page.locator(STATUS)).to_have_text("0 of 0 samples")


def test_a_file_that_was_cut_off_says_so(demo, tmp_path, opened):
    text = demo.read_text(encoding="utf-8")
    (tmp_path / "report.html").write_text(text[: text.index('id="samples-b-0"')], encoding="utf-8")
    with opened(tmp_path / "report.html", "#/") as page:
        assert "12 of 14" in shown(page)
        turn_to(page, "#/sample/3")
        expect(page.locator("main")).to_contain_text("This file is incomplete")


# --- glossary


def explanations(page) -> dict[str, str]:
    """What the words of the view are said to mean."""
    page.evaluate("document.querySelector('.glossary').open = false")
    page.click(".glossary > summary")
    expect(page.locator(".terms > div").first).to_be_visible()
    terms = page.locator(".terms > div").all()
    return {term.locator("dt").inner_text(): term.locator("dd").inner_text() for term in terms}


def test_each_view_explains_the_terms_that_are_in_it_and_shows_corrected_means(opened, audited_run, tmp_path):
    with opened(write_page(tmp_path / "report.html", *audited_run), "#/") as page:
        tone, greeted = (row.inner_text().split() for row in page.locator(".lines tbody tr td[data-name=score]").all())
        assert (tone, greeted) == (["0.333", "corrected", "raw", "0.667"], ["1.000"])
        assert page.locator(".slices thead th").all_inner_texts() == ["domain", "tone (raw)", "greeted"]
        overview = explanations(page)
        assert {"95 % interval", "n", "raw", "corrected", "labels alone", "kappa"} <= overview.keys()
        assert overview["kappa"] == next(term.meaning for term in TERMS if term.name == "kappa")
        assert "sensitivity" not in overview
        turn_to(page, "#/audit")
        assert page.locator(".headline").inner_text().startswith("corrected mean .33 [")
        assert page.locator(".use").inner_text().startswith("Gates up to ")
        told = explanations(page)
        assert {"AC1", "sensitivity", "specificity", "confusion"} <= told.keys()
        words = page.evaluate("wordsOf(document.querySelector('.audit'))")
        assert [*told] == [term.name for term in terms_in(words)]
        turn_to(page, "#/samples")
        assert "sensitivity" not in explanations(page)


def test_recorded_text_explains_nothing(opened, tmp_path):
    words = "corrected kappa bias coverage detectable Wilson macro, p, t, n = 3, 12 groups"
    calls = [JudgeCall(judge="j", prompt="p")]

    def explained(text: str) -> dict[str, dict[str, str]]:
        @scorer
        def quoting(sample: Sample) -> Score:
            if sample.id.startswith("0"):
                return Score.skipped("quoting", text, calls=calls)
            details = {"evidence": [{"message": 1, "quote": text}], text: [text, {text: text}]}
            return Score.scored("quoting", 0, label="no", reason=text, details=details, calls=calls)

        result = ToolMessage(text, is_error=True)
        messages = [HumanMessage(text), AIMessage(text, tool_calls=[ToolCall(text, {text: text})]), result]
        made = [
            Sample.of(messages, id=f"{number} {text}", domain=f"{text} {number % 2}", reference=text, label=text)
            for number in range(4)
        ]
        scored = run(made, [quoting])
        labels = [HumanLabel(sample=one.id, scorer="quoting", value=1, reason=text, annotator=text) for one in made]
        judged = [one.model_copy(update={"judged": True, "signature": "0" * 16}) for one in scored.scorers]
        scored = Run(scored.store, scored.record.model_copy(update={"scorers": judged}))
        found: dict[str, dict[str, str]] = {}
        with opened(write_page(tmp_path / "report.html", scored, find(scored, labels)), "#/") as page:
            for view in ("#/", "#/samples", "#/sample/0", "#/sample/1/quoting", "#/audit"):
                turn_to(page, view)
                unfold(page)
                assert text in " ".join(shown(page).split())
                found[view] = explanations(page)
        return found

    assert len(terms_in(words)) == 11
    assert explained(words) == explained("plain")


def test_names_that_may_be_broken_are_no_terms(opened, tmp_path):
    scored = run([Sample.of([AIMessage("Hi")], reference_tool_calls=[])], [ToolCallF1()])
    with opened(write_page(tmp_path / "report.html", scored), "#/samples") as page:
        assert "F1" not in explanations(page)


# Sub-agents


@scorer(name="cites")
def cites(_: Sample) -> Score:
    evidence = [2, "2.1.2", "2.1.2.1.1", "9.9.9"]
    return Score.scored(
        "cites", 1, reason="message 2.1.2.1.1 shows it", details={"evidence": evidence, "message": "2.1"}
    )


def tree() -> Sample:
    """A recording in which a sub-agent starts another one, and one is of nobody knows which call."""
    inner = Trace(messages=[HumanMessage("When?"), AIMessage("At nine.")], metadata={"call_id": "x"})
    outer = Trace(
        messages=[
            HumanMessage("Find a train."),
            AIMessage(tool_calls=[ToolCall("ask_clock", {"at": 9}, id="x")], agent="<i>trains</i>"),
            ToolMessage("At nine.", tool_call_id="x"),
        ],
        children=[inner],
        metadata={"call_id": "a"},
    )
    lost = Trace(messages=[AIMessage("Nobody knows why.")])
    own = [
        HumanMessage("Plan my trip."),
        AIMessage(tool_calls=[ToolCall("ask_trains", {"to": "Paris"}, id="a")]),
        AIMessage("At nine."),
    ]
    expected = [ToolCall("ask_trains", {"to": "Paris"}), ToolCall("ask_clock", {"at": 8})]
    trace = Trace(messages=own, children=[outer, lost])
    return Sample(id="trip", trace=trace, reference_tool_calls=expected)


def tree_page(tmp_path: Path) -> Path:
    found = run([tree()], [cites, ToolCallF1(scope="tree")])
    report(found, tmp_path / "tree.html")
    return tmp_path / "tree.html"


@LIGHT_AND_DARK
def test_sub_agents_are_folded_in_their_place(opened, tmp_path, viewport, scheme):
    with opened(tree_page(tmp_path), "#/sample/0", viewport=viewport, color_scheme=scheme) as page:
        chat = page.locator(".talk > .chat > li")
        assert [one.split("\n")[0].split(" ")[0] for one in chat.all_inner_texts()] == ["1", "2", "2.1", "3", "0.1"]
        first = page.locator("#b-message-2\\.1")
        assert first.get_attribute("open") is not None  # a judge cites it
        assert "<i>trains</i>" in first.locator("> summary").inner_text()
        assert page.locator("#b-message-0\\.1").get_attribute("open") is None
        unfold(page)
        agents = [row.split() for row in page.locator(".agents tbody tr").all_inner_texts()]
        assert agents[0][:2] == ["(no", "name)"]
        assert agents[1][:2] == ["2.1", "<i>trains</i>"]
        assert [row[0] for row in agents[2:]] == ["2.1.2.1", "0.1"]
        shown = page.locator(".talk .message > .from .place").all_inner_texts()
        assert shown == ["1", "2", "2.1.1", "2.1.2", "2.1.2.1.1", "2.1.2.1.2", "2.1.3", "3", "0.1.1"]
        assert page.locator("#b-message-2\\.1\\.2\\.1\\.1 .cited").inner_text() == "cited by cites"
        assert "ask_clock" in page.locator("#b-message-2\\.1\\.3 .from").inner_text()
        assert "called in 2.1.2" in page.locator("#b-message-2\\.1\\.3 .from").inner_text()
        keeps_nobody_out(page)


@LIGHT_AND_DARK
def test_the_verdicts_on_agents_are_a_table_of_their_score(opened, tmp_path, viewport, scheme):
    said = {"reason": "message 2.1.2 calls it", "agent_verdict": "lacking"}
    agents = [said | {"agent": at} for at in (1, 2, 3, 4)]
    answer = {"reason": "so", "evidence": [], "verdict": "lacking", "agents": agents}
    judged = PromptScorer("tone", ScriptedJudge([answer]), scope="tree", by_agent=True)
    constraints = ToolConstraints([Forbid("ask_clock"), Forbid("ask_trains", {"to": "<b>"})])
    missing = tree().model_copy(
        update={"reference_tool_calls": (ExpectedCall("pay", agent="<i>trains</i>"), ExpectedCall("pay"))}
    )
    report(run([missing], [ToolCallF1(scope="tree"), constraints, judged]), tmp_path / "agents.html")
    with opened(tmp_path / "agents.html", "#/sample/0", viewport=viewport, color_scheme=scheme) as page:
        tables = [
            [" ".join(row.split()) for row in table.locator("tbody tr").all_inner_texts()]
            for table in page.locator(".score .verdicts").all()
        ]
        assert [len(rows) for rows in tables] == [5, 4, 4]
        called, forbidden, toned = (next(row for row in rows if "<i>trains</i>" in row) for rows in tables)
        assert "1 missing, 1 extra" in called
        assert "any agent" in tables[0][-1]
        assert "violated forbid(ask_clock)" in forbidden
        assert "lacking" in toned
        assert page.locator(".verdicts b, .verdicts i").count() == 0
        page.locator(".verdicts .reason .jump").first.click()
        expect(page.locator("#b-message-2\\.1\\.2")).to_be_focused()
        unfold(page)
        assert "by_agent" not in page.locator(".scores").inner_text()
        keeps_nobody_out(page)


@LIGHT_AND_DARK
def test_the_sentences_of_groundedness_are_shown_with_their_sources(opened, tmp_path, viewport, scheme):
    sample = Sample.of(
        [
            HumanMessage("Where is order 17?"),
            AIMessage(tool_calls=[ToolCall("look", {"order": 17}, id="a")]),
            ToolMessage('{"order": 17, "status": "shipped"}', tool_call_id="a"),
            AIMessage(
                "\U0001f44b Hello! Order 17 is shipped. \U0001f69a <b>It</b> comes on Monday at 9. I mailed you."
            ),
        ],
        documents=["Each order comes in a box."],
    )
    other = {"source": None, "document": None, "quote": "", "bad": []}
    claim = other | {"kind": "fact", "source": 3, "quote": '"status": "shipped"', "verdict": "supported"}
    entries = [
        other | {"sentence": 1, "kind": "none", "verdict": None},
        claim | {"sentence": 2},
        other | {"sentence": 3, "kind": "fact", "verdict": "unsupported", "bad": ["at 9", "on Monday"]},
        claim | {"sentence": 3, "source": None, "document": 1, "quote": "comes in a box"},
        claim | {"sentence": 4, "kind": "action", "quote": "mail sent"},
    ]
    judged = Groundedness(ScriptedJudge([{"entries": entries}]))
    report(run([sample], [judged]), tmp_path / "grounded.html")
    with opened(tmp_path / "grounded.html", "#/sample/0", viewport=viewport, color_scheme=scheme) as page:
        rows = [" ".join(row.split()) for row in page.locator(".claims > li").all_inner_texts()]
        assert rows[0] == "4 \U0001f44b Hello!"
        assert "● supported fact message 3" in rows[1]
        assert "\U0001f69a <b>It</b> comes on Monday at 9." in rows[2]
        assert "◇ unsupported fact" in rows[2]
        assert "● supported fact document 1" in rows[3]
        assert "not in the source: 17" not in " ".join(rows)
        assert "not in the source: 9" not in " ".join(rows)
        assert "◇ unsupported action message 3" in rows[4]
        assert "✕ quote missing" in rows[4]
        assert page.locator(".claims mark.bad").all_inner_texts() == ["on Monday", "at 9"]
        assert page.locator(".claims b").count() == 0
        assert page.locator(".cites").inner_text().split() == ["cites", "3"]
        assert page.locator(".score blockquote").count() == 0
        page.locator(".claims .jump >> text=message 3").first.click()
        expect(page.locator("#b-message-3")).to_be_focused()
        expect(page.locator("#b-message-3 mark.quote")).to_have_text('"status": "shipped"')
        unfold(page)
        keeps_nobody_out(page)


def test_numbers_lead_to_messages_of_folded_sub_agents(opened, tmp_path):
    with opened(tree_page(tmp_path), "#/sample/0/cites") as page:
        page.evaluate("for (const fold of document.querySelectorAll('.talk details')) fold.open = false")
        page.click(".reason .jump >> text=message 2.1.2.1.1")
        expect(page.locator("#b-message-2\\.1\\.2\\.1\\.1")).to_be_focused()
        expect(page.locator("#b-message-2\\.1\\.2\\.1\\.1")).to_be_visible()
        linked = page.locator(".score.is-chosen .tree .jump, .score.is-chosen .cites .jump").all_inner_texts()
        assert "2.1.2" in linked
        assert "9.9.9" not in linked


def test_a_message_has_an_address(opened, tmp_path):
    path = tree_page(tmp_path)
    for number, text in {"2.1.2.1.2": "At nine.", "0.1.1": "Nobody knows why.", "1": "Plan my trip."}.items():
        with opened(path, f"#/sample/0?message={number}") as page:
            message = page.locator(f"[id='b-message-{number}']")
            expect(message).to_be_focused()
            assert text in message.inner_text()
            assert message.locator(".from a.place").get_attribute("href") == f"#/sample/0?message={number}"
    with opened(path, "#/sample/0?message=7.7.7") as page:
        expect(page.locator("h1")).to_be_focused()


def test_the_words_of_sub_agents_are_searched_and_their_calls_are_compared_by_name(opened, tmp_path):
    with opened(tree_page(tmp_path), "#/samples?q=nobody+knows") as page:
        expect(page.locator(".row:not(.heads)")).to_have_count(1)
        turn_to(page, "#/sample/0/tool_call_f1")
        row = page.locator(".diff.differs td").last
        assert row.inner_text().startswith('2.1.2 "<i>trains</i>" ask_clock')


# --- failures


@LIGHT_AND_DARK
def test_each_failure_leads_to_the_message_where_it_began(opened, tmp_path, analyzed, viewport, scheme):  # noqa: F811
    evil = "".join(HOSTILE).strip()
    find_failures(
        analyzed({**failing([f"forgot {number}" for number in range(25)]), "s25": ("drifted", evil, evil), "s26": None})
    )
    report(Run.stored(1, tmp_path / ".judgekit" / "runs.sqlite"), tmp_path / "failures.html")
    with opened(tmp_path / "failures.html", "#/failures", viewport=viewport, color_scheme=scheme) as page:
        assert page.locator(".failures h1").inner_text() == "Failures"
        assert "26 of 27 samples failed visibly: 2 issues (2 new)" in page.locator(".failures .lead").inner_text()
        assert page.locator(".failures section h2").first.inner_text() == "missing_call at refund"
        assert "92.6 % of the run by the judge" in page.locator(".failures section").first.inner_text()
        assert page.locator(".failures section").first.locator("li").count() == 20
        unfold(page)
        assert page.locator(".failures section").first.locator("li").count() == 25
        assert page.locator(".failures img, .failures svg[onload], .failures script").count() == 0
        keeps_nobody_out(page)
        page.locator(".failures li a").first.click()
        expect(page.locator("#b-message-2")).to_be_focused()
        page.keyboard.press("Escape")
        page.goto(f"{page.url.partition('#')[0]}#/failures")
        expect(page.locator("#top nav a[aria-current=page]")).to_have_text("Failures")


# --- turns


@LIGHT_AND_DARK
def test_turns_are_a_strip_a_column_and_a_plot_and_a_key_leads_to_the_next_bad_one(opened, tmp_path, viewport, scheme):
    judge, samples = ScriptedJudge(answering), [conversation(5), conversation(3)]
    for turn in find_turns(samples[0].trace)[1::2]:
        samples[0] = planted(samples[0], turn)
    scored = run(samples, [PromptScorer("tone", judge, per_turn=True), Groundedness(judge, per_turn=True)])
    report(scored, tmp_path / "report.html")
    with opened(tmp_path / "report.html", "#/", viewport=viewport, color_scheme=scheme) as page:
        plots = page.locator(".turn-shares")
        assert plots.count() == 2
        assert "turn 2: 0.50 of 2 samples; turn 3: 1.00" in plots.first.get_attribute("aria-label")
        turn_to(page, "#/samples?scorer=tone")
        if viewport is DESKTOP:
            assert "first bad turn" in page.locator(".row.heads").inner_text()
            assert page.locator(".cell.first-bad").all_inner_texts() == ["2", "\u2013"]
        turn_to(page, "#/sample/0")
        strips = page.locator(".turn-strip")
        assert strips.count() == 2
        assert strips.first.locator(".turn.failed").all_text_contents() == ["turn 2 ✕ lacking", "turn 4 ✕ lacking"]
        assert page.locator(".turns > li").count() == 10
        assert "999 dollars" in " ".join(page.locator(".turns .claim").all_inner_texts())
        keeps_nobody_out(page)
        turn_to(page, "#/sample/0/tone")
        for message in (7, 15, 7):
            page.keyboard.press("b")
            expect(page.locator(f"#b-message-{message}")).to_be_focused()
