"""Ways to cheat an alignment: each of them is noticed, or changes nothing."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judgekit import Alignment, Run, Sample, ScriptedJudge, align, load_prompt, run
from judgekit.judges.request import Request
from judgekit.runs.alignments import assigned_role
from judgekit.traces.message import AIMessage, HumanMessage
from tests.alignment.conftest import WRITTEN, judge, labels, recordings, tone


def aligned(samples: Sequence[Sample], store: Path | None = None, name: str = "tone", **options: object) -> Alignment:
    """An alignment of the judge under a name, by what people say about these recordings."""
    scorer = replace(tone(judge()), name=name)
    given = [label.model_copy(update={"scorer": name}) for label in labels(samples)]
    return align(scorer, run(samples, [scorer], store=store), given, **{"output": f"new_{name}.md", **options})


def test_another_name_question_or_store_is_another_look_at_the_same_test_labels(
    scored: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = scored.store.path, Path("elsewhere/runs.sqlite")
    other.parent.mkdir()
    assert [aligned(recordings(), store, name).look for name in ("tone", "mood")] == [1, 2]
    prompt = load_prompt("tone")
    reworded = replace(tone(judge()), prompt=replace(prompt, question=f"{prompt.question}\nTake your time."))
    assert align(reworded, run(recordings(), [reworded], store=store), labels(recordings()), output="new.md").look == 3
    assert aligned(recordings(), other, "calm").look == 4
    moved = shutil.copytree(".judgekit", tmp_path / "moved" / ".judgekit")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert aligned(recordings(), moved / "runs.sqlite", "air").look == 5


def test_a_run_in_memory_counts_looks_where_it_is_told_and_says_if_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uncounted = aligned(recordings())
    assert uncounted.look is None
    assert "looks at these test labels are not counted, since the run is in memory" in str(uncounted)
    assert [aligned(recordings(), name=name, looks="audits").look for name in ("mood", "air")] == [1, 2]
    found = aligned(recordings(), name="calm", looks=tmp_path / "audits")
    assert found.look == 3
    assert found.verdict is not None
    assert found.verdict.alpha == pytest.approx(0.05 / 12)
    assert "after 3 looks, test by new labels" in str(found)


def test_copies_of_recordings_tell_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that is a little better on some recordings is not shown to be because each of them is there three times."""
    monkeypatch.chdir(tmp_path)

    def says(request: Request) -> dict[str, object]:
        if request.prompt.startswith("align_"):
            return dict(WRITTEN)
        text = request.messages[1].content
        hears = "!" in text and "shouts" in text and "amber" in text and "birch" in text
        return {"reason": "heard", "evidence": [], "verdict": "lacking" if hears else "fitting"}

    def tested(samples: Sequence[Sample]) -> Alignment:
        scorer = tone(ScriptedJudge(says))
        output = f"new{len(samples)}.md"
        return align(scorer, run(samples, [scorer]), labels(samples), output=output)

    samples = recordings()
    copies = [one.model_copy(update={"id": f"{one.id} {number}"}) for number in range(3) for one in samples]
    alone, copied = tested(samples).verdict, tested(copies).verdict
    assert alone is not None
    assert copied is not None
    assert copied.sample_count == 3 * alone.sample_count
    assert copied.outcome == alone.outcome == "not shown"
    assert copied.p >= alone.p > 0.1


def test_a_dot_or_a_word_in_each_recording_makes_no_new_test_labels_and_other_recordings_do(scored: Run) -> None:
    """Although other recordings test, since roles are drawn by what exactly was recorded."""
    assert aligned(recordings(), scored.store.path).look == 1
    for look, added in enumerate((".", " please", "!!", "\u200b \u2026"), 2):
        changed = [
            Sample.of([HumanMessage(f"{one.trace.messages[0].text}{added}"), one.trace.messages[1]], id=one.id)
            for one in recordings()
        ]
        assert [*map(assigned_role, changed)] != [*map(assigned_role, recordings())]
        assert aligned(changed, scored.store.path, f"mood{look}").look == look
    others = [
        Sample.of([HumanMessage(f"Number {n}, where is order {n * n}?"), AIMessage("Gone!" if n % 3 else "Here.")])
        for n in range(60)
    ]
    others = [one.model_copy(update={"id": f"other {number}"}) for number, one in enumerate(others)]
    assert aligned(others, scored.store.path, "air").look == 1
