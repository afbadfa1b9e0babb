"""Questions as templates, which place and test inputs in the syntax of Jinja and can do nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from judgekit.errors import PromptError
from judgekit.judges.inputs import INPUT_PATHS
from judgekit.traces.sample_path import ValuePath

if TYPE_CHECKING:
    from jinja2 import nodes

_DEEPEST = 50
"""The most levels of ``if``, ``not``, ``and`` and ``or``."""


_MOST_SIGNS = 1_000
"""The most placeholders and template commands."""


class _Template(NamedTuple):
    root: "nodes.Template"
    names: frozenset[str]


def fill_question(question: str, texts: Iterable[tuple[str, str]]) -> str:
    """Return a question with the texts of its inputs and options in their places."""
    return "".join(_texts(_parsed(question).root.body, dict(texts)))


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
        return _Template(root, frozenset(map(str, _paths(root))))
    except RecursionError:
        raise PromptError("nested too deeply") from None
    except (jinja2.TemplateError, ValueError) as error:  # ValueError: a number with too many digits
        raise PromptError(str(error)) from error


def _paths(node: "nodes.Node", depth: int = 0) -> Iterator[ValuePath]:
    """Yield the names and paths that a template places and tests.

    Raises:
        PromptError: It does something else.
    """
    from jinja2 import nodes  # noqa: PLC0415 - slow to import, and only judges need it

    if depth > _DEEPEST:
        raise PromptError("nested too deeply")
    if (path := _path_of(node)) is not None:
        yield path
    elif isinstance(
        node, nodes.Template | nodes.Output | nodes.TemplateData | nodes.If | nodes.Not | nodes.And | nodes.Or
    ):
        for child in node.iter_child_nodes():
            yield from _paths(child, depth + 1)
    else:
        read = (inner for inner in (node, *node.find_all(nodes.Expr)) if getattr(inner, "ctx", "load") == "load")
        named = next(filter(None, map(_path_of, read)), None)
        subject, shown = ("inputs", "reference") if named is None else (named, named)
        raise PromptError(
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


def _texts(body: Iterable["nodes.Node"], texts: Mapping[str, str]) -> Iterator[str]:
    from jinja2 import nodes  # noqa: PLC0415 - as above

    for node in body:
        if isinstance(node, nodes.TemplateData):
            yield node.data
        elif isinstance(node, nodes.Output):
            yield from _texts(node.nodes, texts)
        elif isinstance(node, nodes.If):
            branches = (branch.body for branch in (node, *node.elif_) if _text(branch.test, texts))
            yield from _texts(next(branches, node.else_), texts)
        else:
            yield _text(node, texts)


def _text(node: "nodes.Node", texts: Mapping[str, str]) -> str:
    """Return the text that an expression is; as a condition, an empty text is false."""
    from jinja2 import nodes  # noqa: PLC0415 - as above

    if isinstance(node, nodes.Not):
        return "" if _text(node.node, texts) else "true"
    if isinstance(node, nodes.And):
        return _text(node.left, texts) and _text(node.right, texts)
    if isinstance(node, nodes.Or):
        return _text(node.left, texts) or _text(node.right, texts)
    if (text := texts.get(name := str(_path_of(node)))) is None:
        raise PromptError(f"the question names {name}, which has no text")
    return text
