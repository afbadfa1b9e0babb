"""Modules import each other in one direction only, also within a package."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import judgekit

PACKAGE = Path(judgekit.__file__).parent


def module_name(path):
    return ".".join(("judgekit", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(path, modules):
    """The modules of judgekit that a module imports, at its top, in its functions, or for type checkers."""
    imports, nodes = set(), [ast.parse(path.read_bytes())]
    for node in nodes:
        nodes += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                imports.add(inner if inner in modules else node.module)
    return imports & modules


def test_no_module_imports_itself_by_way_of_others():
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    graph = {name: imported_modules(path, paths.keys()) for name, path in paths.items() if name != "judgekit"}
    try:
        TopologicalSorter(graph).prepare()
        circle = []
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def test_a_circle_is_found(tmp_path):
    for name, text in {"a": "from judgekit.b import x", "b": "def f():\n    import judgekit.a"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    modules = {"judgekit.a", "judgekit.b"}
    graph = {f"judgekit.{name}": imported_modules(tmp_path / f"{name}.py", modules) for name in ("a", "b")}
    assert graph == {"judgekit.a": {"judgekit.b"}, "judgekit.b": {"judgekit.a"}}
