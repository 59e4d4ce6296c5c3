"""The HTML report in a real browser: no errors, no requests, and everything on it works by mouse and by keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mluops_cli.reports.html.page import html_text
from mluops_cli.results.finished import read_run
from tests.mluops_cli.reports.html.browser import BINARY, DRIVER, Browser, browser
from tests.mluops_cli.reports.sample import doubtful_records, hostile_records, mixed_records, record, write_run

pytestmark = pytest.mark.skipif(
    not (BINARY and DRIVER), reason="needs chromium and chromedriver (make browser installs them on Debian)"
)
CONTROL, ESCAPE, ENTER = "\ue009", "\ue00c", "\ue007"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture
def mixed(chromium: Browser, tmp_path: Path) -> Browser:
    """The report of 3 failures, a crash, a timeout, a waived and a mistrusted case and 300 passes, just opened."""
    return opened(chromium, tmp_path, mixed_records())


def opened(chromium: Browser, tmp_path: Path, records: list[dict[str, object]]) -> Browser:
    run = read_run(write_run(tmp_path, records))
    (tmp_path / "report.html").write_text(html_text(run), encoding="utf-8")
    for kind in ("browser", "performance"):
        chromium.log(kind)
    chromium.open(tmp_path / "report.html")
    return chromium


def shown(page: Browser) -> str:
    return page.texts("#shown")[0]


def clean(page: Browser) -> None:
    """No console message, and no request but the page itself."""
    assert page.log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.log("performance")]
    requests = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # Pages of the browser's own (a new tab) ask for theirs.
    ours = [each["request"]["url"] for each in requests if each["documentURL"].endswith("report.html")]
    assert [url.rsplit("/", 1)[-1] for url in ours] == ["report.html"]


def test_filters_by_click(mixed: Browser) -> None:
    assert shown(mixed) == "307 of 307 cases"
    mixed.click(".chip.fail")
    assert shown(mixed) == "3 of 307 cases"
    mixed.click(".chip.crash")
    assert shown(mixed) == "4 of 307 cases"
    assert set(mixed.texts("#rows .status")) == {"fail", "crash"}
    mixed.click("#reset")
    mixed.click(".cell[data-op=psamask_forward][data-suite=boundary]")
    assert shown(mixed) == "10 of 307 cases"
    assert mixed.script("return [op.value, suite.value].join()") == "psamask_forward,boundary"
    mixed.click("#reset")
    assert shown(mixed) == "307 of 307 cases"
    clean(mixed)


def test_doubts_have_a_chip_a_mark_and_a_colour_of_their_own(chromium: Browser, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path, doubtful_records())
    marks = dict(zip(page.texts("#rows td:nth-child(2)"), page.texts("#rows td:nth-child(1)"), strict=True))
    assert marks["op/general/beyond"].split() == ["pass", "beyond"]
    assert marks["op/network/race"].split() == ["pass", "varies"]
    assert marks["op/general/within"] == "pass"
    page.click(".chip.beyond")
    assert page.texts("#rows td:nth-child(2)") == ["op/general/beyond"]
    page.click(".chip.fail")
    assert shown(page) == "2 of 6 cases"
    page.click("#reset")
    colour = "return getComputedStyle(document.querySelector('.chip.%s')).color"
    assert len({page.script(colour % word) for word in ("pass", "fail", "beyond")}) == 3
    metrics = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.devtools("Emulation.setDeviceMetricsOverride", **metrics)
    try:
        assert page.script("return document.documentElement.scrollWidth") <= 1280
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")
    clean(page)


def test_search_and_jumps_by_keys(mixed: Browser) -> None:
    mixed.type("/")
    assert mixed.script("return document.activeElement.id") == "search"
    mixed.type("ROI large")
    assert mixed.texts("#rows td:nth-child(2)") == ["roi_crop_forward/network/large"]
    mixed.type(ESCAPE)
    assert shown(mixed) == "307 of 307 cases"
    mixed.script("document.activeElement.blur()")
    mixed.type("n")
    mixed.type("n")
    assert mixed.script("return document.activeElement.id") == "case-psamask_forward/boundary/tail_1"
    mixed.type("p")
    assert mixed.script("return document.activeElement.id") == "case-psamask_forward/boundary/tail_0"
    mixed.script("document.querySelector('[data-sort=\"7\"]').focus()")
    mixed.type(ENTER)
    slowest = mixed.texts("#rows td:nth-child(2)")[0]
    assert slowest == "voxel_pooling_forward/invalid/case_299"
    assert mixed.script("return document.querySelector('[data-sort=\"7\"]').parentElement.ariaSort") == "descending"
    clean(mixed)


def test_d16_filters_stand_in_the_address_and_an_address_is_a_filter(mixed: Browser, tmp_path: Path) -> None:
    mixed.click(".chip.fail")
    mixed.type("tail_1", "#search")
    query = mixed.script("return location.search")
    assert query == "?q=tail_1&status=fail"
    mixed.open(tmp_path / "report.html", query)
    assert shown(mixed) == "1 of 307 cases"
    assert mixed.script("return document.querySelector('.chip.fail').ariaPressed") == "true"
    mixed.click("#reset")
    assert mixed.script("return location.search") == ""
    mixed.open(tmp_path / "report.html", "?op=roi_crop_forward&suite=network&status=crash&q=none%3Cb%3E")
    assert (shown(mixed), mixed.script("return op.value + suite.value")) == (
        "0 of 307 cases",
        "roi_crop_forwardnetwork",
    )
    clean(mixed)


def test_d16_kinds_of_failures_lead_to_the_smallest_case_and_a_link_back_to_the_top(mixed: Browser) -> None:
    assert mixed.texts(".kinds tbody tr td:first-child") == ["3", "1", "1"]
    mixed.click(".kinds a")
    assert mixed.script("return document.querySelector(':target h3 .id').textContent").startswith("psamask_forward/")
    assert mixed.script("return scrollY") > 0
    mixed.click(":target .to-top")
    assert mixed.script("return scrollY") == 0
    clean(mixed)


def test_pages_and_links(mixed: Browser) -> None:
    assert len(mixed.texts("#rows tr")) == 50
    assert mixed.texts("#page") == ["1 of 7"]
    for _ in range(6):
        mixed.click("#next")
    assert len(mixed.texts("#rows tr")) == 7
    assert mixed.script("return next.disabled")
    mixed.click("#reset")
    mixed.click("#rows a")
    assert mixed.script("return decodeURIComponent(location.hash)") == "#case-psamask_forward/boundary/tail_0"
    assert (
        mixed.script("return document.querySelector(':target h3 .id').textContent") == "psamask_forward/boundary/tail_0"
    )


def test_the_copy_button_copies(mixed: Browser) -> None:
    button = "[id='case-psamask_forward/boundary/tail_1'] .copy"
    mixed.click(button)
    for _ in range(50):
        if mixed.texts(button) == ["Copied"]:
            break
    else:
        pytest.fail(f"the button says {mixed.texts(button)}")
    mixed.type(CONTROL + "v", "#search")
    pasted = mixed.script("return search.value")
    assert pasted == "mluops run cases/psamask_forward/boundary/tail_1.pb --impl tiled"
    clean(mixed)


def test_light_and_dark(mixed: Browser) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("light", "dark"):
        mixed.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(mixed.script(ground))
    assert seen == ["rgb(255, 255, 255)", "rgb(21, 24, 28)"]
    mixed.click("#theme")
    assert mixed.script(ground) == seen[0]
    mixed.click("#theme")
    assert mixed.script(ground) == seen[1]
    mixed.devtools("Emulation.setEmulatedMedia", media="print")
    assert mixed.script(ground) == seen[0]
    assert mixed.script("return getComputedStyle(document.querySelector('.controls')).display") == "none"
    mixed.devtools("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_sticks_out(mixed: Browser, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    mixed.devtools("Emulation.setDeviceMetricsOverride", **metrics)
    try:
        assert mixed.script("return document.documentElement.scrollWidth") <= width
        assert mixed.screenshot().startswith(b"\x89PNG")
    finally:
        mixed.devtools("Emulation.clearDeviceMetricsOverride")


def test_hostile_texts_are_inert(chromium: Browser, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path, hostile_records())
    assert page.script("return typeof window.hit") == "undefined"
    assert page.script("return document.images.length + document.querySelectorAll('script:not([id])').length") == 1
    assert page.script("return document.title") == "fail: tiled – mluops report"
    assert len(page.texts("#rows tr")) == len(hostile_records())
    assert page.script("return document.documentElement.scrollWidth") <= 1280
    page.type("window.hit", "#search")
    assert len(page.texts("#rows tr")) == 1
    clean(page)


def test_the_check_sees_requests_and_errors(chromium: Browser, tmp_path: Path) -> None:
    for planted in ("<img src=other.png>", "<script>console.error('planted')</script>"):
        for kind in ("browser", "performance"):
            chromium.log(kind)
        (tmp_path / "report.html").write_text(f"<!DOCTYPE html>{planted}", encoding="utf-8")
        chromium.open(tmp_path / "report.html")
        with pytest.raises(AssertionError):
            clean(chromium)


@pytest.mark.parametrize("cases", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_many_cases_stay_quick(cases: int, chromium: Browser, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path, [record(f"op_{n % 9}/suite_{n % 7}/case_{n:05}") for n in range(cases)])
    assert shown(page) == f"{cases} of {cases} cases"
    timed = """
      const start = performance.now();
      search.value = "op_3 case_01"; search.dispatchEvent(new Event("input"));
      const searched = performance.now();
      document.querySelector('[data-sort="7"]').click(); document.querySelector('[data-sort="0"]').click();
      return [searched - start, performance.now() - searched];
    """
    searching, sorting = page.script(timed)
    assert page.script("return Number(shown.textContent.split(' ')[0])") == 111
    # 16 ms on an idle machine; the tests' machine may be a crowded one.
    assert searching < 300
    assert sorting < 900
