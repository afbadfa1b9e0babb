"""The report of a run as a file: what is in it, and what is not. How it looks is tested in a browser."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit import Run, Sample, Score, ToolCall, ToolCallF1, ToolMessage, check_gates, compare, run, scorer
from judgekit.reports import html, listing, packs, sheet
from judgekit.reports.detail import sample_detail
from judgekit.reports.document import PAGE_FOLDER, join_scripts
from judgekit.reports.html import html_report
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, OtherPart, ReasoningPart, SystemMessage
from judgekit.traces.recording import Label


class Page(HTMLParser):
    """A report as a browser takes it apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self.inside.append((tag, dict(attrs), ""))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in {"script", "style"}:
            tag, attributes, text = self.inside.pop()
            self.inside.append((tag, attributes, text + data))

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, {}))

    @property
    def head(self):
        [text] = [text for _, attributes, text in self.inside if attributes.get("id") == "head"]
        return json.loads(text)

    def packed(self, id: str):
        [text] = [text for _, attributes, text in self.inside if attributes.get("id") == id]
        return json.loads(zlib.decompress(base64.b64decode(text)))

    def samples(self, side: str = "b") -> list[dict]:
        """Each sample, as the page puts it together."""
        made = []
        for _, attributes, _ in self.inside:
            if (attributes.get("id") or "").startswith(f"samples-{side}-"):
                pack = self.packed(attributes["id"])
                made += [dict(zip(pack, values, strict=True)) for values in zip(*pack.values(), strict=True)]
        return made


@scorer
def by_id(sample: Sample) -> Score:
    """What the id says."""
    kind, _, value = sample.id.partition(" ")
    if kind == "failed":
        raise ValueError("no")
    if kind == "skipped":
        return Score.skipped("by_id", "skip")
    return Score.scored("by_id", float(value or 1), reason=sample.id)


def sample(id: str, *messages, **known) -> Sample:
    return Sample.of(messages or [HumanMessage(f"Hi {id}"), AIMessage("Hello")], id=id, **known)


def report(samples: Iterable[Sample], scorers=(by_id,), store=None, baseline=None) -> Page:
    scored = run(samples, scorers, store=store)
    return Page("".join(html_report(compare(baseline, scored) if baseline else scored)))


# --- nothing comes in, nothing goes out


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else():
    page = report([sample("a")])
    [policy] = [
        a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives.pop("default-src") == "'none'"
    run_by_browsers = [(tag, text) for tag, attributes, text in page.inside if "type" not in attributes]
    hashes = {
        f"{tag}-src": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for tag, text in run_by_browsers
    }
    assert len(run_by_browsers) == 2
    assert {name: directives.pop(name) for name in hashes} == {
        name: f"'sha256-{found}'" for name, found in hashes.items()
    }
    assert directives == {
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_page_refers_to_nothing_outside_and_has_no_handlers():
    page = report([sample("a")])
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "style", "srcset", "action"})
    assert all(attributes["href"].startswith("#") for _, attributes in page.tags if "href" in attributes)


SINKS = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", r"\beval\b", r"\bFunction\(", "srcdoc"),
    *("createContextualFragment", "fetch", "XMLHttpRequest", "WebSocket", "sendBeacon", r"import\("),
    *("localStorage", "sessionStorage", "cookie", r"window\.open", "http"),
)


def test_the_script_has_no_way_to_make_text_into_more_or_to_send_it():
    script = join_scripts(html.SCRIPTS).replace('"http://www.w3.org/2000/svg"', "")
    assert [sink for sink in SINKS if re.search(sink, script)] == []


def test_the_page_unpacks_as_many_samples_as_are_packed_together():
    assert f"const AT_ONCE = {packs.SAMPLES_IN_PACK};" in join_scripts(html.SCRIPTS)


SERVED = ("served", "paged", "live", "queue", "runs", "trend", "beside")  # see tests/view


def test_all_scripts_of_the_folder_are_in_a_page():
    assert {f"{name}.js" for name in (*html.SCRIPTS, *sheet.SCRIPTS, *SERVED)} == {
        path.name for path in PAGE_FOLDER.glob("*.js")
    }


pieces = [
    *("<", ">", "/", "script", "!--", "-->", "&", "'", '"', "]]>", "\u2028", "\x00", "{{", "}}", "é", "</script>"),
    "<script>",
]
nasty = st.lists(st.sampled_from(pieces), max_size=12).map("".join)


PLAIN = [tag for tag, _ in report([sample("a")]).tags]


@settings(max_examples=settings.default.max_examples // 2)
@given(nasty, nasty)
def test_whatever_was_recorded_the_page_is_the_same_page(text, other):
    @scorer(name=f"s{text}")
    def said(sample: Sample) -> Score:
        return Score.scored(f"s{text}", 1.0, label=other, reason=text, details={other: [text]})

    page = report([sample(f"i{text}", HumanMessage(other), domain=other, label=text)], [said])
    assert [tag for tag, _ in page.tags] == PLAIN
    assert page.head["b"]["scorers"][0]["name"] == f"s{text}"
    assert page.packed("list-b")["ids"] == [f"i{text}"]
    assert page.samples()[0]["scores"][0]["details"] == {other: [text]}


# --- what is in it


def test_a_sample_carries_its_conversation_and_how_its_scores_came_about(tmp_path):
    image = MediaPart(kind="image", data="QUJD" * 500, mime_type="image/png", name="cat.png")
    digest = hashlib.sha256(b"ABC" * 500).hexdigest()
    messages = [
        SystemMessage("Be kind."),
        HumanMessage([image, OtherPart({"a": 1})]),
        AIMessage(
            [ReasoningPart("hm")],
            tool_calls=[
                ToolCall("see", {"n": 2**70, "x": "é"}, id="1"),
                ToolCall("see", args_raw="{", args_error="not JSON"),
            ],
        ),
        ToolMessage("12", tool_call_id="1", is_error=True),
        AIMessage("Done."),
    ]
    recorded = sample("a", *messages, reference_tool_calls=[ToolCall("see", {"n": 1})])
    [found] = report([recorded], [ToolCallF1()], tmp_path / "r.sqlite").samples()
    assert found["messages"] == [
        {"role": "system", "parts": [["text", "Be kind."]]},
        {
            "role": "user",
            "parts": [["media", "image", "cat.png", "image/png", f"sha256 {digest}"], ["other", '{"a":1}']],
        },
        {
            "role": "assistant",
            "parts": [["reasoning", "hm"]],
            "calls": [
                {"name": "see", "args": '{"n":1180591620717411303424,"x":"é"}'},
                {"name": "see", "args": "{", "error": "not JSON"},
            ],
        },
        {"role": "tool", "parts": [["text", "12"]], "who": "see", "error": True, "called": 3},
        {"role": "assistant", "parts": [["text", "Done."]]},
    ]
    [score] = found["scores"]
    assert [mark for mark, _, _ in score["diff"]] in (["~", "+"], ["-", "+", "+"])
    assert found["about"]["reference_tool_calls"][0]["name"] == "see"


def test_numbers_that_javascript_has_not_are_texts():
    numbers = {"big": 2**53 + 1, "small": 2**53, "none": float("nan"), "most": float("inf"), "yes": True}

    @scorer
    def odd(sample: Sample) -> Score:
        return Score.scored("odd", 1.0, details=numbers)

    [found] = report([sample("a")], [odd]).samples()
    texts = {"big": "9007199254740993", "none": "nan", "most": "inf"}
    assert found["scores"][0]["details"] == numbers | texts


def test_a_sample_that_was_not_kept_has_scores_and_no_conversation():
    scored = run([sample("a")], [by_id])
    found = sample_detail(["by_id", "other"], scored.rows(), None, {})
    assert found["messages"] is None
    assert [score and score["reason"] for score in found["scores"]] == ["a", None]


def test_the_overview_counts_all_and_says_how_sure_a_mean_is(tmp_path):
    page = report([sample("scored 0.2"), sample("scored 1"), sample("failed"), sample("skipped")])
    [line] = page.head["b"]["scorers"]
    assert (line["value"], line["total"]) == (0.6, 4)
    assert line["counts"] == {"scored": 2, "skipped": 1, "failed": 1, "abstained": 0}
    assert line["histogram"] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert line["low"] <= 0.6 <= line["high"]
    assert line["method"] == "modified Wilson"


def test_domains_and_labels_are_told_apart():
    samples = [
        sample(f"scored {value}", domain=domain, label="x") for value, domain in ((0, "air"), (1, "rail"), (1, "air"))
    ]
    page = report(samples)
    [slices] = page.head["b"]["slices"]
    assert slices["name"] == "domain"
    assert {one["value"]: one["scores"]["by_id"]["value"] for one in slices["values"]} == {"air": 0.5, "rail": 1.0}
    assert page.packed("list-b")["labels"] == [{"label": "x"}] * 3


def test_a_slice_of_fewer_than_10_samples_has_no_interval():
    page = report([sample("scored 1", HumanMessage(f"Hi {n}"), domain="air" if n < 10 else "rail") for n in range(19)])
    [slices] = page.head["b"]["slices"]
    air, rail = (one["scores"]["by_id"] for one in slices["values"])
    assert (air["low"], air["high"], air["few"]) == (pytest.approx(0.722, abs=0.001), 1, False)  # Wilson
    assert (rail["value"], rail["low"], rail["high"], rail["few"]) == (1, None, None, True)


# --- how far judges can be trusted


def test_beside_each_judged_mean_stands_whether_its_judge_was_audited(run_with_audit):
    text = "".join(html_report(run_with_audit("kappa")))
    page = Page(text)
    assert text.count("<bdi>not audited</bdi>") == 1  # where no script runs, too
    said = ["audited less than a day ago: kappa .71 [.58, .82], n=120", "not audited", ""]
    assert [line["audited"] for line in page.head["b"]["scorers"]] == said
    assert page.head["audit"] is None
    assert "#/audit" not in {attributes.get("href") for _, attributes in page.tags}


def test_an_audit_is_in_the_page_with_what_people_say_of_each_sample(audit_saying):
    page = Page("".join(html_report(run([sample("a")], [by_id]), audit_saying(""))))
    [found] = page.head["audit"]["scorers"]
    assert found["name"] == "goal"
    assert found["head"] == "corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 from 2 people"
    assert found["use"].startswith("Gates up to 0.51 are met: the corrected mean is probably no lower ")
    [mean] = [part for part in found["parts"] if part["name"] == "mean"]
    assert [one["value"] for one in mean["figures"]] == [0.643, 0.581]
    assert found["confusion"]["no"] == {"yes": 12}
    assert [one["index"] for one in found["disagreements"]] == [0, 1]
    assert [one["annotator"] for one in found["opinions"]["0"]] == ["anna", None]
    assert "#/audit" in {attributes.get("href") for _, attributes in page.tags}


# --- gates


def gates_of(made: Run, *gates: str, min_coverage: float = 0) -> Page:
    return Page("".join(html_report(made, gates=check_gates(made, gates, min_coverage=min_coverage))))


def test_gates_are_in_the_page_those_that_are_not_met_first():
    made = run([sample("scored 0.9"), sample("scored 0.1"), sample("skipped")], [by_id])
    page = gates_of(made, "by_id.n >= 2", "by_id.min >= 0.5", "by_id >= 0.5", min_coverage=0.5)
    low = "found 0.1 (sample #1 'scored 0.1', n=2 of 3; 1 skipped); below 0.5: 1 of 2 scored samples"
    assert page.head["gates"]["headline"] == "1 of 3 gates not met"
    assert page.head["gates"]["results"] == [
        {"text": "by_id.min >= 0.5", "met": False, "explanation": low, "sample": 1},
        {"text": "by_id.n >= 2", "met": True, "explanation": "found 2 of 3", "sample": None},
        {"text": "by_id >= 0.5", "met": True, "explanation": "found 0.5 (n=2 of 3; 1 skipped)", "sample": None},
    ]
    assert report([sample("a")]).head["gates"]["results"] == []


def test_the_headline_says_how_many_gates_are_not_met_and_names_failures_that_no_gate_covers():
    made = run([sample("scored 0.9")], [by_id])
    for gates, headline in (
        (["by_id >= 0.5"], "The gate is met"),
        (["by_id >= 0.95"], "The gate is not met"),
        (["by_id >= 0.5", "n == 1"], "All 2 gates are met"),
        (["by_id >= 0.95", "n == 2"], "2 of 2 gates not met"),
    ):
        assert gates_of(made, *gates).head["gates"]["headline"] == headline
    made = run([sample("scored 0.9"), sample("failed")], [by_id])
    headline = "The gate is met; no gate covers the failures of by_id"
    assert gates_of(made, "by_id >= 0.5").head["gates"]["headline"] == headline
    assert gates_of(made, "failed <= 50%").head["gates"]["headline"] == "The gate is met"


def test_where_no_script_runs_gates_are_there_too():
    made = run([sample("scored 0.9"), sample("scored 0.1")], [by_id])
    gates = check_gates(made, ["by_id >= 0.5", "by_id.n >= 3"])
    static = "".join(html_report(made, gates=gates)).split("<script")[0]
    items = [" ".join(unescape(re.sub("<[^>]*>", " ", one)).split()) for one in static.split("<li ")[1:]]
    assert "1 of 2 gates not met" in static
    assert items[0].startswith('class="gate unmet"> ✕ not met by_id.n >= 3 found 2 of 2')
    assert items[1].startswith('class="gate"> ✓ met by_id >= 0.5 found 0.5 (n=2 of 2)')


def test_gates_of_a_comparison_are_in_its_page():
    once = run([sample("scored 0.9"), sample("scored 0.1")], [by_id])
    page = Page("".join(html_report(compare(once, once, gates=["by_id.worse <= 0", "by_id.pairs >= 3"]))))
    assert page.head["gates"]["headline"] == "1 of 2 gates not met"
    assert [(gate["text"], gate["met"]) for gate in page.head["gates"]["results"]] == [
        ("by_id.pairs >= 3", False),
        ("by_id.worse <= 0", True),
    ]


def test_a_scorer_of_too_few_samples_is_flagged():
    page = gates_of(run([sample("scored 0.9"), sample("skipped")], [by_id]), min_coverage=0.9)
    (line,) = page.head["b"]["scorers"]
    assert line["told"] == ["too few samples: only 1 of 2 samples were scored, and min_coverage is 90%"]


@settings(max_examples=settings.default.max_examples // 2)
@given(nasty)
def test_whatever_a_gate_and_an_id_say_the_page_is_the_same_page(text):
    def made(text: str) -> Page:
        @scorer(name=f"named {text}x")
        def low(sample: Sample) -> float:
            return 0.25

        return gates_of(run([sample(text)], [low]), f"named {text}x.min >= 0.5", f"named {text}x >= 0.2")

    hostile = made(text)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in made("plain").tags]
    assert [gate["text"] for gate in hostile.head["gates"]["results"]] == [
        f"named {text}x.min >= 0.5",
        f"named {text}x >= 0.2",
    ]


def test_the_sample_that_a_gate_names_is_in_the_page_of_a_large_run(room_for_three):
    samples = [*map(sample, ["failed", "failed 2", "failed 3", "failed 4"]), sample("scored 0.1")]
    page = gates_of(run(samples, [by_id]), "by_id.min >= 0.5")
    assert "scored 0.1" in page.packed("list-b")["ids"]


ONE = run([sample("a")], [by_id])


@settings(max_examples=settings.default.max_examples // 2)
@given(nasty)
def test_whatever_people_say_the_page_is_the_same_page(audit_saying, text):
    made = Page("".join(html_report(ONE, audit_saying(text))))
    assert [tag for tag, _ in made.tags] == [tag for tag, _ in Page("".join(html_report(ONE, audit_saying("")))).tags]
    assert made.head["audit"]["sources"] == [f"labels.csv{text}"]


# --- very large runs


@pytest.fixture
def room_for_three(monkeypatch):
    monkeypatch.setattr(listing, "MAX_LISTED", 3)
    monkeypatch.setattr(html, "MAX_LISTED", 3)


SCORED = ["scored 0.9", "scored 0.1", "skipped", "scored 0.5", "failed", "scored 0.3"]


def test_of_more_samples_than_there_is_room_for_those_with_most_to_see_are_there(room_for_three):
    page = report(map(sample, SCORED))
    assert page.packed("list-b")["ids"] == ["scored 0.1", "failed", "scored 0.3"]
    assert page.packed("list-b")["numbers"] == [1, 4, 5]
    assert [found["scores"][0]["status"] for found in page.samples()] == ["scored", "failed", "scored"]
    [note] = page.head["notes"]
    assert note.startswith("The run has 6 samples, of which 3 are in this file")
    assert page.head["b"]["scorers"][0]["total"] == 6
    assert sum(page.head["b"]["scorers"][0]["histogram"]) == 4


def test_of_a_large_run_the_labeled_samples_are_there_first(room_for_three, audit_saying):
    page = Page("".join(html_report(run(map(sample, SCORED), [by_id]), audit_saying("", scorer="by_id", index=0))))
    assert page.packed("list-b")["ids"] == ["scored 0.9", "scored 0.1", "failed"]


def test_of_two_large_runs_the_same_samples_are_there_and_first_those_that_changed(room_for_three):
    @scorer(name="by_id")
    def other(sample: Sample) -> Score:
        return Score.scored("by_id", 0.8) if sample.id == "scored 0.9" else by_id.score(sample)

    page = report(map(sample, SCORED), [other], baseline=run(map(sample, reversed(SCORED)), [by_id]))
    assert page.packed("list-b")["ids"] == ["scored 0.9", "scored 0.1", "failed"]
    assert page.packed("list-a")["ids"] == ["failed", "scored 0.1", "scored 0.9"]
    assert page.head["pairs"] == [2, 1, 0]


def test_trials_that_are_listed_keep_their_counterparts_where_others_are_left_out(room_for_three):
    @scorer(name="by_id")
    def by_group(sample: Sample) -> float:
        return float(sample.group or 1)

    def trials(*values: str) -> list[Sample]:
        return [sample("task", group=value) for value in values]

    before = run(trials("0.9", "0.5", "0.8", "0.6", "0.95"), [by_group])
    page = report(trials("0.9", "0.5", "0.8", "0.6", "0.3"), [by_group], baseline=before)
    assert page.packed("list-b")["numbers"] == page.packed("list-a")["numbers"] == [1, 3, 4]
    assert page.head["pairs"] == [0, 1, 2]


def test_counterparts_come_before_other_samples_of_a_large_baseline(room_for_three):
    page = report([sample("scored 0.9")], baseline=run(map(sample, SCORED), [by_id]))
    assert page.packed("list-a")["ids"][page.head["pairs"][0]] == "scored 0.9"


# --- two runs


def test_samples_are_paired_by_id_and_trials_in_their_order():
    def of(*ids: str) -> list[Sample]:
        return [sample(name, group=group or None) for name, _, group in (one.partition("/") for one in ids)]

    after = of("a", "b", "t/1", "t/1", "u", "u")
    before = run(of("b", "t/1", "c", "u", "t/1", "t/1"), [by_id])
    page = report(after, baseline=before)
    assert page.head["pairs"] == [None, 0, 1, 4, None, None]
    assert page.head["comparison"]["scorers"][0]["pairs"] == 3
    assert len(page.samples("a")) == len(page.samples("b")) == 6


def test_labels_of_the_recording_are_listed():
    made = sample("a")
    trace = made.trace.model_copy(update={"labels": (Label("reward", 1.0), Label("passed", True))})  # noqa: FBT003
    page = report([made.model_copy(update={"trace": trace})])
    assert page.packed("list-b")["labels"] == [{"reward": 1.0, "passed": True}]
