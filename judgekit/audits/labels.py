"""Labels of people: what they say of samples that a judge scored."""

from pydantic import FiniteFloat

from judgekit.traces.message import Record


class HumanLabel(Record):
    """What one person says of one sample.

    Attributes:
        sample: The sample's id.
        scorer: Whose question is answered.
        value: A label of its scale, a number in [0, 1], or yes or no; ``None``: it was drawn, and left blank.
        annotator: Who says so; ``None``: one and the same person.
        reason: Why.
        run: The number of the run that the sample was drawn from, and ``number`` the sample's number in it.
        drawn: How it was drawn, ``random`` or ``stratified``; ``None`` where nobody says.
        probability: How likely it was to be drawn.
    """

    sample: str
    scorer: str
    value: bool | FiniteFloat | str | None = None
    annotator: str | None = None
    reason: str = ""
    run: int | None = None
    number: int | None = None
    drawn: str | None = None
    probability: FiniteFloat | None = None
