"""A meeting scheduler scored by weighted criteria: functions look at its final state, a judge at what it explained.

Here the judge's replies were written by hand. With a key in OPENAI_API_KEY, ``Judge("openai/gpt-6-luna")`` asks a
model, once for each conversation.
"""

from judgekit import AIMessage, HumanMessage, Sample, ScriptedJudge, WeightedCriteria, run
from judgekit.judges.request import Request
from judgekit.traces.message import JsonObject

WANTED: JsonObject = {"participants": ["ann", "bob"], "time": "2026-03-02T10:00", "duration": 30}


def sample(id: str, last_message: str, booked: JsonObject | None, **state: bool) -> Sample:
    """A recording with the agent's final state, and what would have been right, in its fields."""
    return Sample.of(
        [HumanMessage("Half an hour with Bob on Monday at ten, please."), AIMessage(last_message)],
        id=id,
        fields={"booked": booked, "wanted": WANTED, **state},
    )


def as_wanted(sample: Sample, key: str) -> bool:
    booked, wanted = sample.fields["booked"], sample.fields["wanted"]
    return isinstance(booked, dict) and isinstance(wanted, dict) and booked[key] == wanted[key]


def correct_participants(sample: Sample) -> bool:
    return as_wanted(sample, "participants")


def correct_time(sample: Sample) -> bool:
    return as_wanted(sample, "time")


def correct_duration(sample: Sample) -> bool:
    return as_wanted(sample, "duration")


def explored_alternatives(sample: Sample) -> bool | None:
    """Does not apply where nothing stood in the way."""
    return bool(sample.fields.get("proposed")) if sample.fields.get("conflict") else None


def booking_confirmed(sample: Sample) -> bool:
    return sample.fields["booked"] is not None


def explains(request: Request) -> JsonObject:
    """What a judge might say; it is asked about the one criterion that has no function."""
    holds = "because" in request.messages[-1].content or "You meet" in request.messages[-1].content
    reason = "The last message says what was done and why." if holds else "The last message leaves the user guessing."
    verdict = "yes" if holds else "no"
    return {"clear_explanation": {"reason": reason, "evidence": [2], "holds": verdict}}


SAMPLES = [
    sample("as_asked", "Done. You meet Bob on Monday at ten, for half an hour.", WANTED),
    sample("too_long", "You meet Bob on Monday at ten.", {**WANTED, "duration": 60}),
    sample("other_time", "Done.", {**WANTED, "time": "2026-03-02T11:00"}, conflict=True, proposed=True),
    sample(
        "nothing_free", "I booked nothing, because Bob is out; how about Tuesday?", None, conflict=True, proposed=True
    ),
    sample("gave_up", "Error.", None, conflict=True),
]
SCORER = WeightedCriteria(
    {
        "correct_participants": 0.25,
        "correct_time": 0.25,
        "correct_duration": 0.10,
        "explored_alternatives": 0.20,
        "clear_explanation": 0.20,
    },
    checks={
        "correct_participants": correct_participants,
        "correct_time": correct_time,
        "correct_duration": correct_duration,
        "explored_alternatives": explored_alternatives,
        "clear_explanation": "Does the agent tell the user clearly what came of the request?",
    },
    judge=ScriptedJudge(explains),
    required=[booking_confirmed],
    not_applicable="pass",  # no conflict, no need of alternatives
)

results = run(SAMPLES, [SCORER])
print(results)
for row in results:
    print(f"{row.sample_id:14}{row.score.reason}")
