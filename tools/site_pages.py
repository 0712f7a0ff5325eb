"""Pages of the site that are made while it is built: notebooks, and the report of the demo.

Notebooks are kept without outputs. With SITE_EXAMPLES=1, as `make docs` sets it, they are executed
and their outputs shown, and the demo is run for `example-report.html`. Without it, as in tests,
their text and code are shown, which takes no time.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files

_EXAMPLES = os.environ.get("SITE_EXAMPLES") == "1"
_NOTEBOOK_LINK = re.compile(r"(\]\((?:[\w./-]*/)?[\w-]+)\.ipynb\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages."""
    for path in sorted((Path(config.docs_dir) / "notebooks").glob("*.ipynb")):
        page = _markdown(_read(path))
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content=page))
    if _EXAMPLES:
        report = _demo_report()
        files.append(File.generated(config, "example-report.html", content=report))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """On the site a link to a notebook is one to its page."""
    return _NOTEBOOK_LINK.sub(r"\1.md)", markdown)


def _read(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    if _EXAMPLES:
        from nbclient import NotebookClient

        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(
                notebook, timeout=300, resources={"metadata": {"path": folder}}
            ).execute()
    return notebook


def _markdown(notebook: Any) -> str:
    parts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [_output(output) for output in cell.outputs]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: Any) -> str:
    if output.output_type == "stream":
        # Warnings name a file of the kernel, which no reader has.
        return f"```text\n{output.text.rstrip()}\n```" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "text/html" in data:
        page = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
        # A line without text would end the block of HTML.
        lines = [line for line in page.splitlines() if line.strip()]
        return '<div class="notebook-output">' + "\n".join(lines) + "</div>"
    return f"```text\n{data['text/plain']}\n```" if "text/plain" in data else ""


def _demo_report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "demo"
        subprocess.run(
            [sys.executable, "-m", "splitmeans", "demo", "--quiet", "--output", str(place)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return (place / "report.html").read_text(encoding="utf-8")
