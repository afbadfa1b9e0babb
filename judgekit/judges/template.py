"""Questions as Jinja templates: how they are filled, and which inputs they name."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.errors import PromptError
from judgekit.judges.inputs import INPUT_PATHS
from judgekit.traces.sample_path import ValuePath

if TYPE_CHECKING:
    import jinja2
    import jinja2.nodes


def fill_question(question: str, texts: Iterable[tuple[str, str]]) -> str:
    """Return a question with the texts of its inputs and options in their places, those of paths below their roots."""
    values: dict[str, object] = {}
    for name, text in texts:
        path = ValuePath.parse(name)
        if path.root not in INPUT_PATHS:
            values[name] = text
        elif isinstance(root := values.setdefault(path.root, _Value()), _Value):
            root.put(path.steps, text)
    return _compiled(question).render(values)


def template_inputs(question: str, where: Path | str, options: Collection[str]) -> frozenset[str]:
    """Return the inputs and options that a question names.

    Args:
        question: The question.
        where: Its file or name, for errors.
        options: The names of the options, which may be altered.

    Raises:
        PromptError: The question is no template.
    """
    import jinja2.meta  # noqa: PLC0415 - slow to import, and only judges need it

    try:
        tree = _jinja().parse(question)
        named = jinja2.meta.find_undeclared_variables(tree)
        uses = [(str(path), is_altered) for path, is_altered in _uses(tree) if path.root in named]
    except RecursionError:
        raise PromptError(f"{where}: nested too deeply") from None
    except jinja2.TemplateError as error:
        raise PromptError(f"{where}: {error}") from error
    altered = next((name for name, is_altered in uses if is_altered and name not in options), "")
    if altered:
        raise PromptError(
            f"{where}: {altered} can only be placed, as in {{{{ {altered} }}}}, or tested, as in {{% if {altered} %}}: "
            "a filter or another expression would change or miss the marks that separate it from the question"
        )
    return frozenset(name for name, _ in uses)


def _uses(node: "jinja2.nodes.Node", *, is_filtered: bool = False) -> Iterator[tuple[ValuePath, bool]]:
    """Yield the names and paths in a template, and whether it does more with each than to place it or to test it."""
    from jinja2 import nodes  # noqa: PLC0415 - slow to import, and only judges need it

    places = (nodes.Output, nodes.If, nodes.CondExpr, nodes.Test, nodes.Not, nodes.And, nodes.Or)
    filtering = (nodes.FilterBlock, nodes.AssignBlock, nodes.Macro, nodes.CallBlock)
    is_altered = is_filtered or not isinstance(node, places)
    for child in node.iter_child_nodes():
        if (path := _path_of(child)) is not None:
            yield path, is_altered
        else:
            yield from _uses(child, is_filtered=is_filtered or isinstance(child, filtering))


def _path_of(node: "jinja2.nodes.Node") -> ValuePath | None:
    """Return the name, or the path of a value such as ``fields.order.id``, that an expression is."""
    from jinja2 import nodes  # noqa: PLC0415 - slow to import, and only judges need it

    steps: list[str | int] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        step = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        if not isinstance(step, str | int):
            return None
        steps.insert(0, step)
        node = node.node
    if isinstance(node, nodes.Name) and (not steps or node.name in INPUT_PATHS):
        return ValuePath(node.name, tuple(steps))
    return None


@cache
def _compiled(question: str) -> "jinja2.Template":
    return _jinja().from_string(question)


@cache
def _jinja() -> "jinja2.Environment":
    import jinja2.sandbox  # noqa: PLC0415 - also slow

    # The result is text for a model, not HTML, and inputs are fenced. Prompts may come from untrusted sources.
    return jinja2.sandbox.ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False)


class _Value:
    """The text of an input, and the inputs whose paths lead through it."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._below: dict[str | int, _Value] = {}

    def put(self, steps: Sequence[str | int], text: str) -> None:
        """Place the text of an input at the end of a path."""
        if not steps:
            self._text = text
        else:
            self._below.setdefault(steps[0], _Value()).put(steps[1:], text)

    def __getitem__(self, step: str | int) -> "_Value":
        return self._below[step]

    def __str__(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)
