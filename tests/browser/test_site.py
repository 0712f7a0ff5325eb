"""The documentation site in a browser that can reach no other machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("selenium")
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html",
    "tutorial.html",
    "architecture.html",
    "reference/python.html",
    "notebooks/segments.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("mkdocs", reason="the site needs splitmeans[docs]")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _open(browser, page: Path, *, width: int, dark: bool) -> None:
    size = {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": width < 600}
    colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [colours]})
    # The theme keeps the colours of an earlier page.
    forget = {"source": "localStorage.clear(); sessionStorage.clear()"}
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", forget)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def _outside(browser) -> list[str]:
    """Return what the page asked of other places than its folder."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked  # the check sees requests
    return [url for url in asked if not url.startswith(("file:", "data:"))]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_from_disk_and_fetches_nothing(browser, site, page):
    _open(browser, site / page, width=1280, dark=False)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert _outside(browser) == []


@pytest.mark.parametrize("page", ["index.html", "reference/python.html"])
def test_search_works_on_a_page_that_was_opened_from_disk(browser, site, page):
    _open(browser, site / page, width=1280, dark=False)
    browser.execute_script(
        "const field = document.querySelector('[data-md-component=search-query]');"
        "field.focus(); field.value = 'collusion'; field.dispatchEvent(new Event('input'));"
        "field.dispatchEvent(new KeyboardEvent('keyup', {key: 'n'}));"
    )
    found = WebDriverWait(browser, 60).until(
        lambda page: page.execute_script(
            "return [...document.querySelectorAll('.md-search-result__link')].map(e => e.href)"
        )
    )
    assert any("threat-model.html" in link for link in found)
    assert all(link.startswith(site.as_uri()) for link in found)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert _outside(browser) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_its_screen_and_can_be_used_by_all(browser, axe, site, page, width, dark):
    _open(browser, site / page, width=width, dark=dark)
    scheme = browser.execute_script("return document.body.getAttribute('data-md-color-scheme')")
    assert scheme == ("slate" if dark else "default")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_script(axe)
    found = browser.execute_async_script(
        # Browsers let the keyboard scroll a block of code without help from the page.
        "const done = arguments[0];"
        "const options = {rules: {'scrollable-region-focusable': {enabled: false}}};"
        "axe.run(options).then(result => done(result.violations"
        ".filter(each => ['serious', 'critical'].includes(each.impact))"
        ".map(each => each.id + ': ' + each.nodes[0].html)))"
    )
    assert found == []
