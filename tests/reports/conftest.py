"""What tests of reports share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, PromptScorer, Run, Sample, Score, ScriptedJudge, load_prompt, run
from judgekit.audits.audit import audit
from judgekit.audits.findings import Audit, Disagreement, Guarantee, Noise, Opinion, People, ScorerAudit
from judgekit.audits.labels import HumanLabel
from judgekit.runs.population import Population
from judgekit.runs.receipts import Correction, Counts, Figure, Receipt, keep
from judgekit.score import JudgeCall
from judgekit.scoring import FunctionScorer, scorer

RunOf = Callable[..., Run]
AuditSaying = Callable[..., Audit]


@pytest.fixture
def run_of() -> RunOf:
    """Gives a function that makes a run of these scores, those of each scorer in the order of the samples."""

    def made(*given: Sequence[Score], samples: Sequence[Sample] = (), store: Path | None = None) -> Run:
        samples = samples or [Sample.of([AIMessage("Hi")], id=f"s{number}") for number in range(len(given[0]))]

        def saying(scores: Sequence[Score]) -> FunctionScorer:
            said = {id(sample): score for sample, score in zip(samples, scores, strict=True)}
            return scorer(name=scores[0].scorer)(lambda sample: said[id(sample)])

        return run(samples, [saying(scores) for scores in given], store=store)

    return made


@pytest.fixture
def judged(run_of, tmp_path) -> Callable[[str], Run]:
    """Gives a function that makes a run of two scorers that ask a judge and one that does not: ``a``, of which there is a
    receipt that names its agreement so, ``b`` and ``c``."""

    def made(agreement: str) -> Run:
        calls = [JudgeCall(judge="j", prompt="p", model="j-1", cost_usd=0.0)]
        scores = [Score.scored(name, 1, calls=calls if name != "c" else ()) for name in "abc"]
        found = run_of(*([one] for one in scores), store=tmp_path / "runs.sqlite")
        scorers = [one.model_copy(update={"judged": one.name != "c", "signature": "0" * 16}) for one in found.scorers]
        found = Run(found.store, found.record.model_copy(update={"scorers": scorers}))
        all_of_it = Population(samples=1, mean=1)
        receipt = Receipt(
            scorer="a",
            fingerprint="0" * 16,
            identity=None,
            models={"j": ["j-1"]},
            run=found.number,
            began=found.started_at,
            n=120,
            annotators=1,
            drawn="all",
            agreement={agreement: Figure(value=0.71, low=0.58, high=0.82)},
            raw=Figure(value=1),
            correction=Correction(refused="all are labelled"),
            labelled=all_of_it,
            population=all_of_it,
            at=found.started_at,
            version="0",
        )
        assert found.receipts_folder is not None
        keep(receipt, found.receipts_folder)
        return found

    return made


@pytest.fixture
def audited_run(tmp_path) -> tuple[Run, Audit]:
    """A run of 24 conversations with an audit: the judge passes 16 of them, and people 8 of these and no other."""
    judge = ScriptedJudge(
        lambda request: {
            "reason": "",
            "evidence": [],
            "verdict": "lacking" if "!" in request.messages[1].content else "fitting",
        }
    )
    samples = [
        Sample.of(
            [HumanMessage("Hi!" if number % 3 == 0 else "Hi")],
            id=f"s{number}",
            domain=f"domain {number % 2}",
            group=f"task {number // 2}",
        )
        for number in range(24)
    ]

    @scorer
    def greeted(sample: Sample) -> float:
        return float(sample.trace.messages[0].text.startswith("Hi"))

    found = run(samples, [PromptScorer(load_prompt("tone"), judge), greeted], store=tmp_path / "runs.sqlite")
    labels = [HumanLabel(sample=f"s{number}", scorer="tone", value=float(number % 3 == 1)) for number in range(24)]
    return found, audit(found, labels)


@pytest.fixture(scope="session")
def audit_saying() -> AuditSaying:
    """Gives a function that makes an audit with all that there may be in one, in which every word of others is this text."""

    def made(text: str, scorer: str = "goal", index: int = 0) -> Audit:
        def figure(value: float, low: float, high: float) -> Figure:
            return Figure(value=value, low=low, high=high, method=f"Wilson{text}")

        opinions = (
            Opinion(annotator=f"anna{text}", label=f"no{text}", value=0, reason=f"nothing came{text}"),
            Opinion(annotator=None, label=f"no{text}", value=0),
        )
        wrong = Disagreement(
            index=index,
            sample_id=f"s1{text}",
            judged=1,
            label=f"yes{text}",
            reason=f"it says so{text}",
            human=0,
            opinions=opinions,
        )
        found = ScorerAudit(
            scorer=scorer,
            fingerprint=text,
            kind="binary",
            n=120,
            labels=1240,
            annotators=2,
            drawn="random",
            left_out={f"people are divided{text}": 1},
            agreement={f"kappa{text}": figure(0.71, 0.58, 0.82), "sensitivity": Figure(value=None)},
            confusion={f"yes{text}": {f"yes{text}": 63, f"no{text}": 5}, f"no{text}": {f"yes{text}": 12}},
            counts=Counts(tp=63, fp=12, fn=5, tn=40),
            raw=figure(0.643, 0.588, 0.694),
            correction=Correction(
                method=f"PPI++{text}",
                corrected=figure(0.581, 0.511, 0.649),
                assumes=f"labels drawn at random{text}",
                worth=187.4,
            ),
            people=People(
                samples=120,
                agreement={f"two people{text}": figure(0.9, 0.8, 0.95)},
                alternative=f"it may stand in{text}",
                passed=True,
            ),
            disagreements=[wrong, wrong.model_copy(update={"index": index + 1})],
            opinions={index: opinions},
            bias={"length": figure(-0.1, -0.3, 0.1), f"other{text}": figure(0.1, 0, 0.2)},
            calibration=figure(0.05, 0.02, 0.09),
            noise=Noise(
                samples=120,
                draws=480,
                most=960,
                flip_rate=figure(0.08, 0.05, 0.12),
                near=figure(0.11, 0.06, 0.18),
                components={f"item{text}": 0.15, "draw": 0.05},
                advice=[f"draw twice{text}"],
            ),
            guarantee=Guarantee(
                alpha=0.1, delta=0.05, threshold=0.8, kept=figure(0.7, 0.6, 0.8), risk=figure(0.04, 0.01, 0.1)
            ),
            notes=[f"a note{text}"],
        )
        return Audit(run=1, sources=[f"labels.csv{text}"], scorers=[found], unmatched={f"unknown{text}": 4})

    return made
