"""Runs in notebooks."""

import pytest

CELLS = (
    """
from judgekit import AIMessage, Sample, StringPresence, arun, run, scorer
samples = [Sample.of([AIMessage(word), AIMessage("yes")], reference=word, id=word) for word in ("yes", "no")]
results = run(samples, [StringPresence()], progress=True)
results
""",
    """
results = await arun(samples, [StringPresence()])
print([row.score.value for row in results])
""",
)


@pytest.mark.processes
def test_a_run_works_under_the_loop_of_a_notebook(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=50, kernel_name="python3").execute()
    ((shown,), (printed,)) = (cell.outputs for cell in notebook.cells)
    assert "string_presence  0.50 (n=2 of 2)" in shown["data"]["text/plain"]
    assert printed["text"] == "[1.0, 0.0]\n"
