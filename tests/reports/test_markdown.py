"""A run in Markdown. What a page makes of it is asked of markdown-it, which reads CommonMark and GitHub's tables."""

from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from judgekit import AIMessage, Sample, ToolCall, ToolCallF1, run
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.errors import ConfigError
from judgekit.reports.markdown import append_summary, markdown_report
from judgekit.runs.results import Run
from judgekit.score import JudgeCall, Score
from judgekit.terminal import printable

NONE = GateResults()
HOSTILE = [
    "[click](https://evil.example) ![x](https://evil.example/x.png) https://evil.example www.evil.example a@b.example",
    "<script>alert(1)</script></details><img src=x onerror=alert(1)>",
    "`</code>` ``two`` ```three",
    "`",
    "a | b \\| c \\\\| d",
    "\n\n# Title\n\n- item\n\n| a |\n|---|\n```\ncode\n",
    "@someone #1 :smile: **bold** _it_ ~~no~~ $x$ &copy; \\`",
    "\x1b[2J\u202e\u2028 ",
    " ",
]


class Page(HTMLParser):
    """The tags of a page, and the text in ``code`` and outside of it."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.code: list[str] = []
        self.text = ""
        self._within = False
        self.feed(MarkdownIt("commonmark").enable("table").render(markdown))

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.append(tag)
        if tag == "code":
            self._within = True
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._within:
            self.code[-1] += data
        else:
            self.text += data


def page(run: Run, gates: GateResults = NONE) -> Page:
    return Page("".join(markdown_report(run, gates)))


def test_a_line_a_scorer_with_interval_and_counts(run_of):
    scores = [*[Score.scored("f1", 1)] * 9, Score.scored("f1", 0)]
    others = [*scores[:7], Score.skipped("f1", "x", label="not_applicable")]
    others += [Score.failed("f1", "y"), Score.abstained("f1", "z")]
    text = "".join(markdown_report(run_of(scores, [one.model_copy(update={"scorer": "b"}) for one in others]), NONE))
    assert "| scorer | mean | 95 % interval | n | skipped | failed | abstained |\n" in text
    assert "| `f1` | 0.900 | 0.596 to 0.982 | 10 of 10 | 0 | 0 | 0 |\n" in text  # Wilson of 9 in 10
    assert "| `b` | 1.000 | 0.646 to 1.000 | 7 of 10 | 1 | 1 | 1 |\n" in text  # Wilson of 7 in 7
    assert "- `b`: `1 skipped: not_applicable`\n- `b`: `1 failed: y`\n- `b`: `1 abstained: z`\n" in text


@pytest.mark.parametrize(("price", "cost"), [(0.5, "$0.5000"), (None, "unknown")])
def test_what_judges_cost_stands_beside_it(price, cost, run_of):
    calls = [JudgeCall(judge="j", prompt="p", cost_usd=price), JudgeCall(judge="j", prompt="p", cached=True)]
    text = "".join(markdown_report(run_of([Score.scored("f1", 1, calls=calls)]), NONE))
    assert f"| 1 of 1 | 0 | 0 | 1 | 1 | unknown | {cost} |\n" in text


@pytest.mark.parametrize("text", ["kappa", *HOSTILE[1::3], HOSTILE[5]])
def test_beside_each_judged_mean_stands_whether_its_judge_was_audited(text, run_with_audit):
    found = page(run_with_audit(text))
    said = f"audited less than a day ago: {text} .71 [.58, .82], n=120".replace("|", "¦")
    assert found.code[:4] == ["a", " ".join(printable(said).split(" ")), "b", "not audited"]
    assert found.tags == page(run_with_audit("kappa")).tags


def test_gates_and_what_is_wrong_with_a_run_stand_first(run_of):
    run = run_of([Score.scored("f1", 0.5), Score.skipped("f1", "x")])
    run = Run(run.store, run.record.model_copy(update={"stop_reason": "interrupted", "notes": ("2 records unread",)}))
    text = "".join(markdown_report(run, check_gates(run, ["f1 > 0.5", "n >= 1"], min_coverage=0.9)))
    few = "only 1 of 2 samples were scored, and min_coverage is 90%"
    assert text.startswith(
        "### judgekit, run 1\n\n"
        f"- ❌ **not met**: `f1 > 0.5`: `found 0.5 (n=1 of 2; 1 skipped); {few}`\n"
        "- ✅ met: `n >= 1`: `found 1 of 2`\n"
        "- ❌ `stopped early (interrupted)`."
    )
    assert "- `2 records unread`\n" in text
    assert f"- `f1`: `too few samples: {few}`\n" in text


def test_failures_that_no_gate_covers_stand_below_the_gates(run_of):
    run = run_of([Score.scored("f1", 1), Score.failed("f1", "x")])
    alone = "".join(markdown_report(run, check_gates(run, ["f1 >= 0"])))
    assert "\n- ❌ `no gate covers the failures of f1`\n" in alone
    assert "no gate covers" not in "".join(markdown_report(run, check_gates(run, ["f1 >= 0", "failed <= 1"])))


def test_the_lowest_samples_are_shown_and_perfect_ones_are_not(run_of):
    values = [1, 0.9, 0, 1, 0.3, 0.2, 0.1, 0.8]
    made = run_of([Score.scored("f1", value, reason=f"it is {value}") for value in values])
    shown = [line for line in "".join(markdown_report(made, NONE)).splitlines() if line.startswith("- **")]
    lowest = ((0, 2), (0.1, 6), (0.2, 5), (0.3, 4), (0.8, 7))
    assert shown == [f"- **{value:.2f}** `s{number}`: `it is {value}`" for value, number in lowest]
    assert "details" not in page(run_of([Score.scored("f1", 1)])).tags


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_recording_is_markup(text, run_of):
    def made(said: str) -> Page:
        scores = [
            Score.scored("f1", 0.5, label=said, reason=said, warnings=[said]),
            Score.scored("f1", 0.25, label=f"{said}!", reason=said),
            Score.failed("f1", said),
            Score.skipped("f1", said),
        ]
        samples = [Sample.of([AIMessage("Hi")], id=said + str(number), domain=said) for number in range(4)]
        return page(run_of(scores, samples=samples))

    hostile, harmless = made(text), made("said")
    assert (hostile.tags, hostile.text) == (harmless.tags, harmless.text)
    assert any(printable(text).strip() in code for code in hostile.code)


@pytest.mark.parametrize("text", HOSTILE)
def test_losses_of_tool_calls_are_a_table_in_which_nothing_is_markup(text):
    def made(said: str) -> Page:
        calls = [ToolCall(said, {said: f"{said}{number}"}) for number in range(3)] * 2
        samples = [
            Sample.of(
                [AIMessage(tool_calls=[call])], reference_tool_calls=[ToolCall(said, {said: None})], id=f"s{number}"
            )
            for number, call in enumerate(calls)
        ]
        return page(run(samples, [ToolCallF1()]))

    hostile, harmless = made(text), made("said")
    assert (hostile.tags, hostile.text) == (harmless.tags, harmless.text)
    assert "2 of 6" in harmless.text
    assert harmless.code[-3:] == [f'said: said got "said{number}", expected null' for number in range(3)]


@pytest.mark.parametrize("name", [*HOSTILE, "a:b=1,c='|'"])
def test_nor_is_a_scorers_name(name, run_of):
    def made(said: str) -> Page:
        run = run_of([Score.scored(said, 0.5, reason="why")])
        return page(run, check_gates(run, [f"{said}.n == 1"]))

    name = name.strip() or "said"
    hostile, harmless = made(name), made("said")
    assert (hostile.tags, hostile.text) == (harmless.tags, harmless.text)
    assert printable(name).replace("|", "¦") in hostile.code


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("`| \\\n<&*_[](a")))
def test_any_text_comes_out_as_it_went_in(run_of, text):
    found = page(run_of([Score.scored("f1", 0.5, reason=text)]))
    expected = printable(text).strip() or ("no reason given" if not text else " ")
    assert found.code[-1].strip() == expected.strip()
    assert found.tags.count("li") == 1


def test_a_long_reason_is_cut(run_of):
    assert len(page(run_of([Score.scored("f1", 0.5, reason="x" * 10_000)])).code[-1]) == 300


def test_a_step_gets_a_summary_more(run_of, tmp_path):
    path = tmp_path / "summary"
    path.write_text("before\n")
    run = run_of([Score.scored("f1", 0.5, reason="é")])
    append_summary(run, NONE, path)
    assert path.read_text(encoding="utf-8") == f"before\n{''.join(markdown_report(run, NONE))}\n"


def test_what_does_not_fit_into_a_step_is_left_out_and_that_is_said(run_of, tmp_path):
    path = tmp_path / "summary"
    path.write_bytes(b"x" * ((1 << 20) - 600))
    append_summary(run_of([Score.scored("f1", 0.5, reason="é" * 250)] * 5), NONE, path)
    said = path.read_bytes()
    assert len(said) <= 1 << 20
    assert said.decode().endswith("\nThe rest does not fit on this page.\n")


def test_a_summary_that_cannot_be_written_is_an_error(run_of, tmp_path):
    with pytest.raises(ConfigError, match=r"GITHUB_STEP_SUMMARY=.*cannot be written"):
        append_summary(run_of([Score.scored("f1", 1)]), NONE, tmp_path)
