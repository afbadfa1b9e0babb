"""Topics and goals, judged by an LLM. Here its replies were written by hand and are replayed; nothing is sent.

With a key in OPENAI_API_KEY, ``Judge("openai/gpt-6-luna")`` asks a model, once for each conversation and question.
"""

from pathlib import Path

from judgekit import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference, Judge, TopicAdherence, read, run

here = Path(__file__).parent
judge = Judge("demo/handwritten", cache=here / "replies.jsonl", cache_mode="replay")

results = run(
    read(here / "conversations.jsonl"),
    [
        TopicAdherence(judge, mode="precision", name="topic_precision"),
        TopicAdherence(judge, mode="recall", name="topic_recall"),
        AgentGoalAccuracyWithReference(judge),
        AgentGoalAccuracyWithoutReference(judge),
    ],
)

print(results)
for row in results:
    if row.score.value == 0:
        print(f"{row.sample_id}, {row.score.scorer}: {row.score.reason}")
