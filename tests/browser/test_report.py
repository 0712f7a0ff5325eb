"""The report in a real browser: from disk, without network, by keyboard, at two widths."""

import base64
import json
import os
from pathlib import Path

import pytest

SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
# For parts of a drawing Chromium's own check looks at the drawing only.
VISIBLE = (
    "return [...document.querySelectorAll(arguments[0])].filter("
    "e => e.checkVisibility() && getComputedStyle(e).display !== 'none')"
)


def visible(page, selector: str) -> int:
    return page.execute_script(f"{VISIBLE}.length", selector)


def press(page, *keys: str) -> None:
    page.find_element("id", "k-slider").send_keys(*keys)


ARROW_LEFT, ARROW_RIGHT, HOME, END = "\ue012", "\ue014", "\ue011", "\ue010"


def test_it_opens_from_disk_and_asks_for_nothing_else(show, report):
    page = show()
    assert "Segments across bank, insurer and retailer" in page.title
    asked = []
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert asked == [report.as_uri()]


def test_no_console_messages(show):
    page = show()
    for key in (HOME, END, ARROW_LEFT):
        press(page, key)
    page.find_element("id", "theme").click()
    assert page.get_log("browser") == []


def test_the_first_screen_shows_segments(show):
    page = show()
    top = page.execute_script("return document.querySelector('.card').getBoundingClientRect().top")
    assert top < 500
    assert visible(page, ".card") == 5


def test_the_slider_changes_every_picture(show):
    page = show()
    parts = (".card", ".sizes tbody tr", ".map .tag", ".heat:not(.cross) thead th")
    assert [visible(page, part) for part in parts] == [5, 5, 5, 7]
    before = page.execute_script(f"{VISIBLE}[0].outerHTML", ".map")
    press(page, ARROW_RIGHT)
    assert [visible(page, part) for part in parts] == [6, 6, 6, 8]
    assert page.execute_script(f"{VISIBLE}[0].outerHTML", ".map") != before
    assert visible(page, ".curve .at") == 2  # one mark on each curve
    assert page.find_element("id", "k-shown").text == "6"
    assert "found again" in page.find_element("css selector", ".lead").text
    press(page, END)
    assert visible(page, ".card") == 12
    press(page, HOME)
    assert visible(page, ".card") == 2
    slider = page.find_element("id", "k-slider")
    assert slider.get_attribute("aria-valuetext") == "2 segments"
    assert page.find_element("id", "said").get_attribute("textContent").endswith("2 segments.")


def test_colours_can_be_switched(show):
    page = show()
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(colour)
    page.find_element("id", "theme").click()
    dark = page.execute_script(colour)
    assert dark != light
    page.find_element("id", "theme").click()
    assert page.execute_script(colour) == light
    assert show(dark=True).execute_script(colour) == dark


def test_every_part_can_be_reached_on_a_phone(show):
    width, height = SIZES["phone"]
    page = show(width=width, height=height)
    links = page.find_elements("css selector", ".bar a")
    parts = [link.get_attribute("href").split("#")[1] for link in links]
    assert parts == page.execute_script(
        "return [...document.querySelectorAll('main h2')].map(e => e.id)"
    )
    assert visible(page, ".bar a") == len(parts)
    for link, part in zip(links, parts, strict=True):
        page.execute_script(
            "arguments[0].scrollIntoView({inline: 'center', block: 'nearest'})", link
        )
        page.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
        link.click()
        # The heading is below the bar, which stays at the top.
        hidden = page.execute_script(
            "return document.querySelector('.bar').getBoundingClientRect().bottom -"
            " document.getElementById(arguments[0]).getBoundingClientRect().top",
            part,
        )
        assert hidden <= 0, part


def test_every_control_shows_its_focus(show):
    page = show()
    body = page.find_element("tag name", "body")
    seen = set()
    for _ in range(13):
        body.send_keys("\ue004")
        name, width = page.execute_script(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.id || e.textContent.slice(0, 20), parseFloat(s.outlineWidth)]"
        )
        assert width >= 2, name
        seen.add(name)
    assert {"k-slider", "theme", "Skip to the segments"} <= seen


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at_end", [False, True], ids=["published", "most segments"])
def test_axe_finds_no_serious_problem(show, axe, size, dark, at_end):
    width, height = SIZES[size]
    page = show(width=width, height=height, dark=dark)
    if at_end:
        press(page, END)
    page.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    page.execute_script(axe)
    found = page.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document).then(r => done(r.violations.map(v => ({id: v.id, impact: v.impact,"
        " where: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160))}))))"
    )
    assert [item for item in found if item["impact"] in ("serious", "critical", "moderate")] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_screenshots(show, size, dark, tmp_path):
    """The page fits its width. SCREENSHOTS names a folder where people find the pictures."""
    width, height = SIZES[size]
    page = show(width=width, height=height, dark=dark)
    assert page.execute_script("return document.documentElement.scrollWidth") == width
    metrics = page.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    area = {"x": 0, "y": 0, "width": width, "height": metrics["height"], "scale": 1}
    shot = page.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": area}
    )
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    file = folder / f"report-{size}-{'dark' if dark else 'light'}.png"
    file.write_bytes(base64.b64decode(shot["data"]))
    assert file.stat().st_size > 50_000


def test_on_paper_there_are_no_controls_and_no_dark(show, tmp_path):
    page = show(dark=True)
    pdf = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert visible(page, ".bar") == 0
    assert visible(page, ".card") == 5
    background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"


def test_without_scripts_the_published_segments_show(show, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = show()
        assert visible(page, ".card") == 5
        assert visible(page, "#controls") == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
