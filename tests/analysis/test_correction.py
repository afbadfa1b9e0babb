"""Means that are corrected by the errors of the judge elsewhere."""

import gzip
import json
import random
from collections import defaultdict

import pytest

from judgekit.analysis.audit import audit
from judgekit.analysis.correction import JudgeErrors, corrected_mean, independent_share, rogan_gladen
from judgekit.analysis.gates import check_gates
from judgekit.analysis.labels import HumanLabel
from judgekit.runs.audit_records import ConfusionCounts
from judgekit.runs.population import Population, describe_population, population_differences, transfer_obstacles
from judgekit.runs.results import Run
from judgekit.runs.rows import Input
from judgekit.score import JudgeCall, Score
from judgekit.stats.misclassification import rogan_gladen as estimated
from tests.analysis.conftest import drawn_from, imperfect

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def audited(judged, said, tmp_path):
    """A run of 200 samples, all of them labeled and audited, in a file in which later runs are kept too."""
    truth, verdicts = imperfect(200, 0.6)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    audit(run, said(dict(enumerate(truth))))
    return run


def test_the_audited_run_has_the_correction_of_its_audit(audited):
    assert corrected_mean(audited, "tone") == audited.audits["tone"].record.correction
    assert corrected_mean(audited, "tone").method == "labels alone"


def test_a_later_run_of_the_same_judge_is_corrected_by_its_errors_in_the_audit(audited, judged):
    truth, verdicts = imperfect(500, 0.9, seed=1)
    run = judged(verdicts, store=audited.store.path)
    found = corrected_mean(run, "tone")
    counts = audited.audits["tone"].record.counts
    expected = estimated(int(sum(verdicts)), 500, counts.tp, counts.fp, counts.fn, counts.tn)
    assert (found.method, found.unavailable_reason) == ("Rogan-Gladen", "")
    assert found.corrected.value == pytest.approx(expected.value, abs=1e-12)
    assert found.corrected.low == expected.interval.low
    assert found.corrected.low < sum(truth) / 500 < found.corrected.high
    assert "errs here as often as on the labeled samples of run 1" in found.assumptions


def test_labels_drawn_by_verdict_are_of_the_population_of_their_run(judged, tmp_path):
    path = tmp_path / "runs.sqlite"
    truth, verdicts = imperfect(500, 0.9)
    _, others = imperfect(500, 0.9, seed=1)
    first, second = (
        judged(one, store=path, messages=lambda at, one=one: 3 + at % 5 + 6 * int(not one[at]))
        for one in (verdicts, others)
    )
    audit(first, drawn_from(first, truth, 100, by_verdict=True))
    found = corrected_mean(second, "tone")
    assert (found.unavailable_reason, found.method) == ("", "Rogan-Gladen")


def test_a_run_that_went_on_since_its_audit_is_to_be_audited_again(audited, judged):
    audited.store._db.execute("DELETE FROM scores WHERE sample = 7")
    later = type(audited)(audited.store, audited.record)
    reason = corrected_mean(later, "tone").unavailable_reason
    assert "run 1 has other scores than run 1 had when it was audited" in reason


def test_a_run_of_the_same_recordings_has_their_correction_as_long_as_its_scores_are_the_same(judged, said, tmp_path):
    def recorded(run):
        inputs = (Input(path="x.jsonl", sha256="ab", size=1, modified_at=0),)
        return Run(run.store, run.store.change(run.record.model_copy(update={"inputs": inputs})))

    truth, verdicts = imperfect(40, 0.6)
    first, again, other = (
        recorded(judged(one, store=tmp_path / "runs.sqlite")) for one in (verdicts, verdicts, [1.0] * 40)
    )
    audit(first, said(dict(enumerate(truth))))
    assert corrected_mean(again, "tone") == corrected_mean(first, "tone")
    assert "run 3 has other scores than run 1 had" in corrected_mean(other, "tone").unavailable_reason
    first.store.remove([1])  # the audit record is enough, as where it alone is under version control
    assert corrected_mean(again, "tone") == first.audits["tone"].record.correction


def test_labels_of_another_run_correct_this_one_and_give_no_audit_record_in_the_place_of_a_better_one(
    audited, judged, said
):
    _, verdicts = imperfect(300, 0.9, seed=2)
    run = judged(verdicts, store=audited.store.path)
    audit_record = audited.audits["tone"].record
    elsewhere = said(dict(enumerate(imperfect(200, 0.6)[0])), run=1)
    (found,) = audit(run, elsewhere).scorers
    assert (found.selection, found.sample_count, found.correction) == ("elsewhere", 200, corrected_mean(run, "tone"))
    assert found.correction.method == "Rogan-Gladen"
    assert found.disagreements == ()
    assert any("judgekit audit 1 shows where" in note and "keeps an audit record" in note for note in found.notes)
    assert run.audits["tone"].record == audit_record
    here = said({0: 1, 1: 0})
    (mixed,) = audit(run, [*elsewhere, *here]).scorers
    assert (mixed.sample_count, mixed.unused_labels) == (2, {"they belong to run 1; those of run 2 are used": 200})
    assert run.audits["tone"].record.run == 2
    assert audited.audits["tone"].record == audit_record  # of other recordings


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"messages": lambda index: 20 + index % 5}, "messages (median 22 and 3)"),
        ({"model": "m-2"}, "not audited (the audit record of run 1 is void: judge.model was 'm-1' and is 'm-2')"),
    ],
)
def test_another_population_and_another_judge_are_refused(options, why, audited, judged):
    run = judged(imperfect(300, 0.6, seed=1)[1], store=audited.store.path, **options)
    found = corrected_mean(run, "tone")
    assert found.corrected is None
    assert why in found.unavailable_reason


def test_other_domains_are_another_population(judged, said, tmp_path):
    truth, verdicts = imperfect(200, 0.6)
    first = judged(verdicts, store=tmp_path / "runs.sqlite", domains=["air"] * 200)
    audit(first, said(dict(enumerate(truth))))
    run = judged(verdicts, store=first.store.path, domains=["air"] * 60 + ["retail"] * 140)
    other = "other error rates here than on the labeled samples of run 1: domains ('air' 30% and 100%)"
    assert other in corrected_mean(run, "tone").unavailable_reason


def errors(rows, population, tp, fp, fn, tn):
    counts = ConfusionCounts(tp=tp, fp=fp, fn=fn, tn=tn)
    return rogan_gladen(rows, population, JudgeErrors("run 1", tp + fp + fn + tn, counts, "", population))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((2, 0, 1, 2), "only 5 labeled samples"),
        ((30, 28, 10, 12), "hardly better than chance on run 1: sensitivity + specificity - 1 is .05 ["),
        ((60, 0, 9, 0), "people call all of run 1 successes, so the judge's specificity is unknown"),
        ((0, 9, 0, 60), "people call all of run 1 failures, so the judge's sensitivity is unknown"),
        (
            (60, 20, 60, 60),
            "the judge passes .95 [.91, .97] of this run, which is impossible if it errs as on run 1: there it passes .50 of",
        ),
    ],
)
def test_errors_that_tell_nothing_of_this_run_are_refused(counts, said, judged):
    run = judged([1.0] * 190 + [0.0] * 10)
    rows = list(run.rows(scorer="tone"))
    found = errors(rows, describe_population(rows, dict(run.store.usage_by_sample(1))), *counts)
    assert found.corrected is None
    assert said in found.unavailable_reason


def test_where_the_agent_is_not_recorded_nothing_is_carried_over(judged):
    rows = list(judged([1.0, 0.0] * 50).rows(scorer="tone"))
    found = errors(rows, describe_population(rows, {}), 40, 5, 5, 40)
    assert "the agent is not recorded here or there" in found.unavailable_reason


def test_errors_on_one_agent_are_not_carried_over_to_another(audited, judged):
    run = judged(imperfect(300, 0.6, seed=1)[1], store=audited.store.path, agent="agent-2")
    found = corrected_mean(run, "tone")
    assert found.corrected is None
    assert "different agents: 'agent-2' here, 'agent-1' there" in found.unavailable_reason
    assert found.unavailable_reason.endswith("label a sample of this run")
    apart = "which may differ from this one (different agents: 'agent-2' here, 'agent-1' there): kappa "
    assert run.audited["tone"].startswith(f"audited less than a day ago on run 1, {apart}")
    unknown = judged(imperfect(300, 0.6, seed=1)[1], store=audited.store.path, agent=None)
    assert "the agent is not recorded here" in corrected_mean(unknown, "tone").unavailable_reason
    assert "the agent is not recorded here" in unknown.audited["tone"]


def test_every_agent_that_tried_a_task_is_of_the_population(judged):
    agents = ["agent-1", "agent-2"] * 20
    run = judged([1.0] * 40, agent=agents, groups=[f"task {at // 4}" for at in range(40)])
    population = run.population("tone")
    assert population.agents == {"agent-1": 10, "agent-2": 10}
    alone = population.model_copy(update={"agents": {"agent-1": 10}})
    assert transfer_obstacles(population, alone)[0] == "different agents: 'agent-2' here, 'agent-1' there"


@pytest.mark.parametrize(("count", "kept"), [(49, 49), (50, 0)])
def test_names_of_very_many_agents_are_not_kept(count, kept, judged):
    run = judged([1.0] * count, agent=[f"agent-{at}" for at in range(count)])
    assert len(run.population("tone").agents) == kept


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        ({"not recorded": 5}, "the agent is not recorded here"),
        ({"not recorded": 1, "a": 4}, "the agent of some samples is not recorded here"),
        ({}, "too many agents (50 or more) to compare here"),
    ],
)
def test_where_not_all_agents_are_known_it_is_said_why(agents, why):
    known = Population(samples=5, agents={"a": 5})
    assert transfer_obstacles(Population(samples=5, agents=agents), known) == [why]


def test_a_run_of_the_same_kind_says_on_which_run_its_judge_was_audited(audited, judged):
    run = judged(imperfect(300, 0.6, seed=1)[1], store=audited.store.path)
    assert run.audited["tone"].startswith("audited less than a day ago on run 1: kappa ")
    assert audited.audited["tone"].startswith("audited less than a day ago: kappa ")


def test_each_agents_recordings_keep_an_audit_record_of_their_own(audited, judged, said):
    truth, verdicts = imperfect(100, 0.6, seed=3)
    other = judged(verdicts, store=audited.store.path, agent="agent-2")
    audit(other, said(dict(enumerate(truth))))
    assert (audited.audits["tone"].record.run, other.audits["tone"].record.run) == (1, 2)
    later = judged(imperfect(300, 0.6, seed=4)[1], store=audited.store.path, agent="agent-2")
    assert later.audits["tone"].record.run == 2
    assert corrected_mean(later, "tone").method == "Rogan-Gladen"


def test_an_audit_of_fewer_labels_does_not_replace_the_record_of_more(audited, said):
    before = audited.audits["tone"].record
    with audited.store.transaction() as db:  # as a file of runs without the labels of the others
        db.execute("DELETE FROM labels")
    (found,) = audit(audited, said(dict.fromkeys(range(0, 200, 4), 1))).scorers
    assert found.sample_count == 50
    assert audited.audits["tone"].record == before
    kept = "the audit record of run 1, n=200, is kept, because this audit has only 50 labeled samples"
    assert any(kept in note for note in found.notes)


def answered(values, model):
    """Verdicts of a judge whose provider reports this model."""
    call = JudgeCall(judge="openai/a", prompt="tone@1", model=model)
    return [Score.scored("tone", one, label="fitting" if one else "lacking", calls=[call]) for one in values]


def test_another_model_behind_the_name_needs_labels_of_its_own_and_gets_an_audit_record(judged, said, tmp_path):
    truth, verdicts = imperfect(100, 0.6)
    first = judged(answered(verdicts, "a-1"), store=tmp_path / "runs.sqlite")
    audit(first, said(dict(enumerate(truth))))
    second = judged(answered(imperfect(80, 0.6, seed=1)[1], "a-2"), store=first.store.path)
    void = "not audited (the audit record of run 1 is void: openai/a answered as 'a-1' in the audit"
    assert second.audited["tone"].startswith(void)
    assert corrected_mean(second, "tone").corrected is None
    (carried,) = audit(second, said(dict(enumerate(truth)), run=1)).scorers
    other = "run 1 has another judge: openai/a answered as 'a-1' in the audit and as 'a-2' here"
    assert carried.unused_labels == {other: 100}
    audit(second, said(dict.fromkeys(range(40), 1)))
    assert second.audited["tone"].startswith("audited less than a day ago: kappa ")
    again = judged(answered(verdicts, "a-2"), store=first.store.path)
    assert again.audits["tone"].record.run == 2


def test_labels_that_dispute_whether_the_question_applies_are_not_carried_over(judged, said, tmp_path):
    truth, verdicts = imperfect(200, 0.6)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    audit(run, said({**dict(enumerate(truth)), 0: "n/a", 1: "n/a"}))
    assert corrected_mean(run, "tone").corrected is not None
    later = judged(imperfect(200, 0.6, seed=1)[1], store=run.store.path)
    assert "disagree on whether the question applies" in corrected_mean(later, "tone").unavailable_reason


def test_where_the_question_applies_to_no_labeled_sample_nothing_is_carried_over(judged, said, tmp_path):
    skipped = Score.skipped("tone", "not applicable", calls=[JudgeCall(judge="m", prompt="tone@1")])
    run = judged([skipped] * 40, store=tmp_path / "runs.sqlite")
    audit(run, said(dict.fromkeys(range(40), "n/a")))
    later = judged([1.0, 0.0] * 20, store=run.store.path)
    reason = corrected_mean(later, "tone").unavailable_reason
    assert "the verdicts on the labeled samples of run 1 are not all 0 or 1" in reason


def test_an_audit_that_corrects_nothing_does_not_replace_the_record_of_one_that_does(judged, said, tmp_path):
    truth, verdicts = imperfect(200, 0.6)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    audit(run, drawn_from(run, truth, 60))
    before = run.audits["tone"].record
    with run.store.transaction() as db:  # as a file of runs without these labels
        db.execute("DELETE FROM labels")
    (found,) = audit(run, said(dict(enumerate(truth[:100])), selection="convenience")).scorers
    assert run.audits["tone"].record == before
    kept = f"n=60, is kept, because this audit gives no corrected mean; to replace it, delete {before.file_name}"
    assert any(kept in note for note in found.notes)
    (unknown,) = audit(run, said(dict(enumerate(truth[:30])), source="unknown")).scorers
    assert not any("is kept, because" in note for note in unknown.notes)


def test_errors_on_samples_that_were_picked_by_hand_are_not_carried_over(judged, said, tmp_path):
    truth, verdicts = imperfect(200, 0.6)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    audit(run, said(dict(enumerate(truth[:100])), selection="convenience"))
    later = judged(imperfect(200, 0.6, seed=1)[1], store=run.store.path)
    assert corrected_mean(later, "tone").unavailable_reason == "the labeled samples of run 1 were picked by hand"


def test_values_that_are_no_verdicts_of_yes_or_no_are_refused(judged, said, tmp_path):
    first = judged([0.2, 0.8] * 20, store=tmp_path / "runs.sqlite", scale={})
    audit(first, said(dict.fromkeys(range(40), 0.5)))
    run = judged([0.2, 0.8] * 20, store=first.store.path, scale={})
    assert "are not all 0 or 1" in corrected_mean(run, "tone").unavailable_reason


def test_labels_that_were_chosen_are_not_carried_over_to_later_runs(judged, said, tmp_path):
    truth, verdicts = imperfect(400, 0.7)
    first = judged(verdicts, store=tmp_path / "runs.sqlite")
    audit(first, said({index: truth[index] for index in range(400) if not verdicts[index] or index % 12 == 0}))
    run = judged(verdicts[:300], store=first.store.path)
    assert "the labeled samples differ from the others" in corrected_mean(run, "tone").unavailable_reason


def test_shares_that_hardly_differ_are_told_apart_where_they_are_said_to_differ():
    many, others = (
        Population(samples=100_000, domains=of) for of in ({"a": 12_100, "b": 87_900}, {"a": 12_700, "b": 87_300})
    )
    assert population_differences(many, others) == ["domains ('a' 12.1% and 12.7%)"]


@pytest.mark.parametrize(("of_ten", "told"), [(5, []), (3, ["domains ('a' 100% and 30%)"])])  # p is .033 and .003
def test_samples_are_held_to_differ_where_chance_would_have_it_once_in_a_hundred(of_ten, told):
    one, other = (Population(samples=10, domains=of) for of in ({"a": 10}, {"a": of_ten, "b": 10 - of_ten}))
    assert population_differences(one, other) == told


def test_trials_of_one_task_are_worth_fewer_verdicts():
    assert independent_share([1.0, 0.0] * 50, [None] * 100) == 1
    assert independent_share([1.0] * 50 + [0.0] * 50, [f"task {index // 10}" for index in range(100)]) < 0.15
    assert independent_share([1.0] * 20, ["one", "two"] * 10) == 0.1


@pytest.mark.simulations
def test_samples_that_are_alike_seldom_look_like_two_populations(judged):
    dice = random.Random(0)  # noqa: S311 - no secret
    lengths = [dice.randint(1, 40) for _ in range(400)]
    run = judged([1.0] * 400, messages=lengths.__getitem__)
    rows, usages = list(run.rows()), dict(run.store.usage_by_sample(1))
    taken = 0
    for _ in range(200):
        dice.shuffle(rows)
        taken += bool(
            population_differences(describe_population(rows[:60], usages), describe_population(rows[60:], usages))
        )
    assert taken <= 8  # of 200 at 0.01: more than 8 have a probability of 0.0001


def test_gates_ask_for_corrected_means_and_say_why_there_is_none(audited, judged):
    met, missed, lower = check_gates(
        audited, ["tone.corrected >= 0.5", "tone.corrected.upper < 50%", "tone.corrected.lower >= 0.4"]
    ).gates
    assert (met.met, missed.met, lower.met) == (True, False, True)
    assert met.value_text.startswith("found 0.585 ")
    assert met.value_text.endswith("(labels alone)")
    run = judged([1.0] * 40, store=audited.store.path, model="m-2")
    (void,) = check_gates(run, ["tone.corrected >= 0"]).gates
    assert not void.met
    assert "judge.model was 'm-1' and is 'm-2'); judgekit audit 2 compares its judge with human labels" in str(void)
    (alone,) = check_gates(judged([1.0] * 40), ["tone.corrected >= 0"]).gates
    not_met = "not met: tone.corrected >= 0: tone has no corrected value: not audited; judgekit audit"
    assert str(alone).startswith(not_met)


def test_trials_of_one_task_count_once_in_a_population_and_as_their_spread_says_in_its_correction(judged):
    _, verdicts = imperfect(50, 0.5)
    found = []
    for groups in ((), [f"task {index % 50}" for index in range(200)]):
        run = judged(verdicts * 4, groups=groups)
        rows, usages = list(run.rows(scorer="tone")), dict(run.store.usage_by_sample(run.number))
        population = describe_population(rows, usages)
        assert (population.samples, len(population.features["messages"])) == (200, 50 if groups else 200)
        errors = JudgeErrors("elsewhere", 400, ConfusionCounts(tp=190, fp=20, fn=10, tn=180), "", population)
        found.append(rogan_gladen(rows, population, errors).corrected)
    alone, grouped = found
    assert grouped.value == alone.value
    assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)  # 50 verdicts, each four times


def of_each_model(shared_data):
    """What experts and GPT-4 say of each model of MT-Bench: whether it beats another, without ties, by question."""
    with gzip.open(shared_data / "judges" / "mtbench_votes.jsonl.gz", "rt") as lines:
        votes = [vote for vote in map(json.loads, lines) if vote["turn"] == 1]
    experts, judged = defaultdict(list), {}
    for vote in votes:
        for model in (vote["model_a"], vote["model_b"]):
            other = vote["model_b"] if model == vote["model_a"] else vote["model_a"]
            item = (model, other, vote["question_id"], vote["turn"])
            if vote["winner"] in vote and vote["judge"] == "gpt4_pair":
                judged[item] = float(vote[vote["winner"]] == model)
            elif vote["winner"] in vote and vote["judge"].startswith("expert"):
                experts[item].append(float(vote[vote["winner"]] == model))
    found = defaultdict(list)
    for item in sorted(experts.keys() & judged.keys()):
        found[item[0]].append((judged[item], experts[item]))
    return {model: verdicts[:40] for model, verdicts in found.items()}


@pytest.mark.simulations
def test_the_errors_of_gpt4_on_five_models_give_no_corrected_number_for_the_sixth(shared_data, judged, tmp_path):
    """Carried over all the same, by votes of both turns with ties, 3 of the 6 were given, and 1 of these intervals covered."""
    models = of_each_model(shared_data)
    assert len(models) == 6
    for model, verdicts in models.items():
        others = [(name, one) for name in models if name != model for one in models[name]]
        (tmp_path / model).mkdir()
        store = tmp_path / model / "runs.sqlite"
        agents = [name for name, _ in others]
        first = judged([verdict for _, (verdict, _) in others], store=store, agent=agents)
        audit(
            first,
            [
                HumanLabel(sample=f"s{at}", scorer="tone", value=value, annotator=f"expert {number}")
                for at, (_, (_, values)) in enumerate(others)
                for number, value in enumerate(values)
            ],
        )
        found = corrected_mean(judged([verdict for verdict, _ in verdicts], store=store, agent=model), "tone")
        assert found.corrected is None
        assert f"different agents: {model!r} here" in found.unavailable_reason
