"""Questions as templates, which place and test inputs in the syntax of Jinja and can do nothing else."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from judgekit.errors import PromptError
from judgekit.judges.inputs import INPUT_PATHS
from judgekit.traces.sample_path import ValuePath

if TYPE_CHECKING:
    from jinja2 import nodes

Fill: TypeAlias = Callable[[Mapping[str, str]], str]
"""The text of a part of a template, given the texts of inputs and options."""

_DEEPEST = 50
"""The most levels of ``if``, ``not``, ``and`` and ``or``."""
_MOST_SIGNS = 1_000
"""The most placeholders and template commands."""


class _Template(NamedTuple):
    fill: Fill
    names: frozenset[str]


def fill_question(question: str, texts: Iterable[tuple[str, str]]) -> str:
    """Return a question with the texts of its inputs and options in their places.

    Raises:
        PromptError: The question names one that has no text.
    """
    template, texts_by_name = _parsed(question), dict(texts)
    if missing := template.names - texts_by_name.keys():
        raise PromptError(f"the question names {min(missing)}, which has no text")
    return template.fill(texts_by_name)


def template_inputs(question: str, where: Path | str) -> frozenset[str]:
    """Return the inputs and options that a question names.

    Args:
        question: The question.
        where: Its file or name, for errors.

    Raises:
        PromptError: The question is no template.
    """
    try:
        return _parsed(question).names
    except PromptError as error:
        raise PromptError(f"{where}: {error}") from error


@cache
def _parsed(question: str) -> _Template:
    import jinja2  # noqa: PLC0415 - slow to import, and only judges need it

    if question.count("{{") + question.count("{%") > _MOST_SIGNS:
        raise PromptError(f"a question may have {_MOST_SIGNS:,} placeholders and template commands")
    try:
        root = jinja2.Environment(autoescape=False).parse(question)  # noqa: S701 - only parses
        names: set[str] = set()
        return _Template(_filling(root, names), frozenset(names))
    except RecursionError:
        raise PromptError("nested too deeply") from None
    except (jinja2.TemplateError, ValueError) as error:  # ValueError: a number with too many digits
        raise PromptError(str(error)) from error


def _filling(node: "nodes.Node", names: set[str], depth: int = 0) -> Fill:
    """Return the function that gives the text of a node, and collect the names that it places and tests.

    As a condition, an empty text is false.

    Raises:
        PromptError: It does something else.
    """
    from jinja2 import nodes  # noqa: PLC0415 - slow to import, and only judges need it

    def inner(child: "nodes.Node") -> Fill:
        return _filling(child, names, depth + 1)

    def joined(children: Iterable["nodes.Node"]) -> Fill:
        parts = [inner(child) for child in children]
        return lambda texts: "".join([part(texts) for part in parts])

    if depth > _DEEPEST:
        raise PromptError("nested too deeply")
    if (path := _path_of(node)) is not None:
        names.add(name := str(path))
        return lambda texts: texts[name]
    match node:
        case nodes.TemplateData(data=text):
            return lambda _: text
        case nodes.Template(body=children) | nodes.Output(nodes=children):
            return joined(children)
        case nodes.If():
            branches = [(inner(branch.test), joined(branch.body)) for branch in (node, *node.elif_)]
            otherwise = joined(node.else_)
            return lambda texts: next((body for test, body in branches if test(texts)), otherwise)(texts)
        case nodes.Not(node=tested):
            negated = inner(tested)
            return lambda texts: "" if negated(texts) else "true"
        case nodes.And() | nodes.Or():
            left, right = inner(node.left), inner(node.right)
            if isinstance(node, nodes.And):
                return lambda texts: left(texts) and right(texts)
            return lambda texts: left(texts) or right(texts)
        case _:
            raise _unsupported(node)


def _unsupported(node: "nodes.Node") -> PromptError:
    from jinja2 import nodes  # noqa: PLC0415 - as above

    read = (inner for inner in (node, *node.find_all(nodes.Expr)) if getattr(inner, "ctx", "load") == "load")
    named = next(filter(None, map(_path_of, read)), None)
    subject, shown = ("inputs", "reference") if named is None else (named, named)
    return PromptError(
        f"line {node.lineno}: {subject} can only be placed, as in {{{{ {shown} }}}}, or tested, as in "
        f"{{% if {shown} %}} with elif, else, not, and, or: anything else would change or miss the marks that "
        "separate inputs from the question"
    )


def _path_of(node: "nodes.Node") -> ValuePath | None:
    """Return the name, or the path of a value such as ``fields.order.id``, that an expression is."""
    from jinja2 import nodes  # noqa: PLC0415 - slow to import, and only judges need it

    steps: list[str | int] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        step = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        if not isinstance(step, str | int):
            return None
        steps.append(step)
        node = node.node
    if isinstance(node, nodes.Name) and (not steps or node.name in INPUT_PATHS):
        return ValuePath(node.name, tuple(reversed(steps)))
    return None
