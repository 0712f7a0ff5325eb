"""A report of a whole run, and headless Chromium to open it with."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from splitmeans import protocol
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.result import Result
from splitmeans.result.write import write_result
from splitmeans.simulate.datasets import demo_customers
from splitmeans.study import Budget, Study
from splitmeans.table.prepare import prepare_table

HERE = Path(__file__).parent
AXE = Path(os.environ.get("AXE_CORE", HERE / "node_modules" / "axe-core" / "axe.min.js"))


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report as `splitmeans demo` writes it, of fewer customers."""
    made_up = demo_customers(3000, seed=1)
    study = Study(
        name="demo",
        parties=made_up.parties,
        n_clusters=5,
        budget=Budget(epsilon=2.0, delta=1e-5),
        expected_users=3000,
    )
    tables = [
        prepare_table(party, table)
        for party, table in zip(made_up.parties, made_up.tables, strict=True)
    ]
    done = protocol.run(study, tables)
    folder = tmp_path_factory.mktemp("browser") / "result"
    write_result(
        folder,
        done.plan,
        done.server.published,
        run="1",
        participant="server",
        transcript=(),
        secure_noise=done.privacy.secure_noise,
    )
    page = folder.parent / "report.html"
    page.write_text(render(build_report(Result.read(folder))), encoding="utf-8")
    return page


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not at {AXE}; get it with `make browser`, or set AXE_CORE")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium that cannot resolve any name, so nothing can be fetched."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium is absent (Debian: apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is absent (pip install selenium)"
    )
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    opened.set_script_timeout(180)
    yield opened
    opened.quit()


@pytest.fixture
def show(browser: Any, report: Path) -> Callable[..., Any]:
    """Open the report at a size and in colours of the system; returns the browser."""

    def open_at(*, width: int = 1280, height: int = 860, dark: bool = False) -> Any:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [colours]})
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(report.as_uri())
        return browser

    return open_at
