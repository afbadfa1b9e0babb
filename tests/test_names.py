"""Names and docstrings that strangers can read."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import judgekit

ROOT = Path(__file__).parent.parent
PACKAGE = Path(judgekit.__file__).parent
VAGUE = {
    *("asked", "bears", "beside", "conduct", "conducts", "drawn", "errand", "footing", "heed", "here", "lack", "made"),
    *("mends", "ours", "over", "refused", "said", "spent", "theirs", "thin", "told", "void", "walks", "wanted", "why"),
    "worth",
}
RIDDLES = ("What ", "The same", "Those of", "So many", "Which ", "How ", "Where ", "As ")

CLUMSY = re.compile(
    r"^(Those|The same) |goes before what|\b(is|are) told\b|\bare said\b|\bnot said\b|\bbears?\b|\bheeds?\b|"
    r"\bcannot go on\b|\bgo(es)? on from\b|thrown away|\bbegins? again\b|behind the colon"
)


@cache
def definitions() -> list[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All modules, classes and functions, with their files."""
    return [
        (str(path.relative_to(PACKAGE)), node)
        for path in PACKAGE.rglob("*.py")
        for node in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module or statement and all that are in it, without their expressions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements(child)


def test_no_two_public_classes_have_one_name():
    files = defaultdict(list)
    for file, node in definitions():
        for one in node.body if isinstance(node, ast.Module) else ():
            if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
                files[one.name].append(file)
    assert len(files) > 250
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_docstrings_begin_with_what_is_returned_or_done():
    """But for the models of answers, whose docstrings are sent to judges: other words would be other requests."""
    found = {(file, getattr(node, "name", "")): ast.get_docstring(node) or "" for file, node in definitions()}
    riddles = [key for key, text in found.items() if text.startswith(RIDDLES)]
    assert [
        (file, name) for file, name in riddles if not (file.startswith("scorers/") and name.endswith("Answer"))
    ] == []


def test_no_text_falls_back_into_clumsy_english():
    """Neither in messages nor in docstrings."""
    texts = [
        (file, node.lineno, node.value)
        for file, tree in definitions()
        if isinstance(tree, ast.Module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(texts) > 10_000
    assert [text for text in texts if CLUMSY.search(text[2])] == []


def test_docstrings_refer_to_names_that_exist():
    """Each word of a reference such as `Run.stored` is a word of the code, of a file's path, or of a package that is not ours."""
    code = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    words = {word for text in code.values() for word in re.findall(r"\w+", re.sub(r'"{3}[\s\S]*?"{3}', "", text))}
    words |= {word for path in code for word in re.findall(r"\w+", str(path.relative_to(PACKAGE)))} | {"judgekit"}
    texts = [(file, ast.get_docstring(node) or "") for file, node in definitions()]
    references = [(file, name) for file, text in texts for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)", text)]
    assert len(references) > 250
    others = ("nltk.", "save_to_disk")
    assert [one for one in references if not one[1].startswith(others) and not set(one[1].split(".")) <= words] == []


def test_nothing_that_is_read_names_a_model_that_openai_withdrew():
    """Tests and benchmarks may: there these names are recorded data."""
    folders = (ROOT / "docs", ROOT / "examples", PACKAGE)
    texts = [ROOT / "README.md", *(path for folder in folders for path in folder.rglob("*"))]
    lines = {path: path.read_bytes() for path in texts if path.is_file() and "__pycache__" not in path.parts}
    assert len(lines) > 300
    assert [path for path, text in lines.items() if re.search(rb"gpt-(3|4)", text)] == []


def public_names(file: str, body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Public attributes, methods, functions and their parameters."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_names(f"{file}:{node.name}", node.body)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield file, node.target.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield file, node.name
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            yield from ((f"{file}:{node.name}", one.arg) for one in arguments)


def test_public_attributes_and_parameters_have_plain_names():
    found = [
        name for file, node in definitions() if isinstance(node, ast.Module) for name in public_names(file, node.body)
    ]
    assert len(found) > 4000
    options = [("scorers/turns.py:TurnJudgedScorer", "over")]  # as users write it: over = "mean"
    assert [one for one in found if one[1] in VAGUE] == options


UNTOLD = {"found", "one", "said", "told", "made", "known", "asked", "place", "beside"}
"""Names that do not say what they hold."""
STOPGAPS = {"value": 0.1266, "item": 0.0173, "result": 0.0100, "data": 0.0100, "thing": 0.0}
"""Names that say little, and the largest share of functions that may bind them."""


def bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names that a function binds: parameters, variables and attributes, without those of nested functions."""
    names: set[str] = set()
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        match nodes.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Name(name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(name) as node:
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(str(name)) as node:
                names.add(name)
            case node:
                pass
        nodes += ast.iter_child_nodes(node)
    return names


def test_variables_are_named_for_what_they_hold():
    bound = [bound_names(node) for _, node in definitions() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert sum(not names.isdisjoint(UNTOLD) for names in bound) / len(bound) <= 0.03
    for stopgap, share in STOPGAPS.items():
        assert sum(stopgap in names for names in bound) / len(bound) <= share + 0.00005, stopgap
