"""A table of answers, in English and Chinese, scored without a judge."""

from pathlib import Path

from judgekit import CHRF, ROUGE, AnswerMatch, read, run

answers = Path(__file__).parent / "answers.csv"
columns = {"question": "input", "answer": "response", "gold": "expected_output"}

results = run(read(answers, columns=columns), [AnswerMatch(measure="f1"), ROUGE("rouge1", "recall"), CHRF()])

print(results)
for row in results:
    if row.score.scorer == "answer_match":
        print(f"{row.sample_id}: {row.score.label}, {row.score.reason}")
