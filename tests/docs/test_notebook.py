"""The example notebooks run from a fresh start, and are kept without outputs."""

import ast
from pathlib import Path

import pytest

import splitmeans

from .blocks import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

# What the pages of each must show, among other things.
SHOWN = {
    "segments": ("Privacy of study three organisations", "retailer: ", "VerticalKMeans"),
    "choosing-epsilon": ("segments explain",),
    "partial-overlap": ("shop: visits",),
    "campaign": ("data:image/svg+xml", "segment A"),
}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.fixture
def notebook(path):
    nbformat = pytest.importorskip("nbformat")
    read = nbformat.read(path, as_version=4)
    nbformat.validate(read)
    return read


def test_it_is_kept_without_outputs(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_it_imports_only_names_that_are_a_promise(notebook):
    """Everything else may change without notice, as the Python page says."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert imports
    assert not any(
        isinstance(node, ast.Import) and "splitmeans" in ast.unparse(node)
        for node in ast.walk(ast.parse(code))
    )
    for node in imports:
        assert node.module == "splitmeans"
        assert {alias.name for alias in node.names} <= set(splitmeans.__all__)


# Left to `make guides`, as long pages are.
@pytest.mark.slow
def test_it_runs(notebook, path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(Path(splitmeans.__file__).parents[1]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = [
        output.data.get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    page = "".join(shown)
    assert [text for text in SHOWN[path.stem] if text not in page] == []
    assert "<script" not in page
