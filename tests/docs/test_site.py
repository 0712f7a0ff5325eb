"""The site builds without a warning and fetches nothing; links work on a plain git host as well."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from .blocks import PAGES, ROOT, name_of

# Attributes whose target a browser loads by itself.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("use", "href"),
}
LOADED_LINKS = ("stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


class _Fetches(HTMLParser):
    """Collects what a page makes a browser fetch, and which classes it uses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.classes |= set((values.get("class") or "").split())
        for name, value in attrs:
            if (tag, name) in FETCHED and value:
                self.fetched.append(value)
        if tag == "link" and (values.get("rel") or "").split()[:1] in [[r] for r in LOADED_LINKS]:
            self.fetched.append(values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("mkdocs", reason="the site needs splitmeans[docs]")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site):
    """A broken link or anchor, or a page that is not in the navigation, ends a strict build."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), page


def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        found = _Fetches(page.read_text(encoding="utf-8"))
        if page.name == "example-report.html":  # only there if the build ran the demo
            assert found.fetched == []
            continue
        assert any("bundle" in target for target in found.fetched)  # the check sees scripts
        outside = [target for target in found.fetched if re.match(r"(\w+:)?//", target)]
        assert outside == [], page.name
        # For these the theme's script would fetch from other hosts.
        assert not found.classes & {"mermaid", "md-source"}
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:\w+:)?//", sheet.read_text()), sheet


def test_notebooks_are_pages(site):
    """With their code, and with what their cells show if the build ran them."""
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        text = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert "VerticalKMeans" in text
    index = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="notebooks/campaign.html"' in index


@pytest.mark.slow
def test_make_docs_runs_notebooks_and_the_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SITE_EXAMPLES": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "notebooks" / "campaign.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page
    assert "customers on the list" in page
    test_nothing_is_fetched_from_elsewhere(tmp_path)
    assert "Segments across bank" in (tmp_path / "example-report.html").read_text(encoding="utf-8")


def test_the_reference_has_the_public_names(site):
    import splitmeans

    text = (site / "reference" / "python.html").read_text()
    for name in splitmeans.__all__:
        if name != "__version__":
            assert re.search(rf'id="splitmeans\.[\w.]*\b{name}"', text), name


def test_the_strict_build_can_fail(site, tmp_path):
    """A wrong anchor must end the build: otherwise the settings do not do what they should."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[nowhere](#nowhere)\n")
    config = (ROOT / "mkdocs.yml").read_text()
    validation = config[config.index("validation:") : config.index("\nnav:")]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\n{validation}")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "#nowhere" in done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_work_on_a_git_host(page):
    for target, anchor in LINK.findall(_without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path = (page.parent / unquote(target)) if target else page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in _anchors(path), f"{target}#{anchor}"


def _without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors that git hosts make of headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", _without_code(page.read_text()), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found
