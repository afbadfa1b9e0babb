"""Tool calls held against the expected ones: no judge, no network."""

from pathlib import Path

from judgekit import ToolCallAccuracy, ToolCallF1, read, run

conversations = Path(__file__).parent / "conversations.jsonl"

results = run(read(conversations), [ToolCallAccuracy(), ToolCallF1()])

print(results)
for row in results:
    if row.score.value is not None and row.score.value < 1:
        print(f"{row.sample_id}, {row.score.scorer}: {row.score.value:.2f}\n    {row.score.reason}")
