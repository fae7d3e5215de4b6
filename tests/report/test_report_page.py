"""The page of a round: inert, offline, repeatable, and honest about what is missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from filelock import FileLock
from support.sample_evidence import export_sample, sample_round

from roundkit.report import build_report

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror=owned()><!-- {{7*7}} ${alert(1)}"
PLANTED = {
    "hypothesis": HOSTILE,
    "detail": f"javascript:alert(1) {HOSTILE}",
    "path": "a'b\"<svg onload=owned()>.py",
    "entry": HOSTILE,
    "tail": HOSTILE,
}


class Page(HTMLParser):
    """Every element with its attributes, and the text of every script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._script: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.text += data

    @property
    def policy(self) -> str:
        return next(
            str(attrs["content"])
            for tag, attrs in self.elements
            if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
        )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("hostile")
    return export_sample(base / "r01", sample_round(text=PLANTED), base / "scratch")


@pytest.fixture(scope="module")
def built(evidence: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> bytes:
    """The page, built once however many workers test it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "hostile-page"
    shared.mkdir(exist_ok=True)
    out = shared / "report.html"
    with FileLock(base.parent / "hostile-page.lock"):
        if not out.is_file():
            build_report(evidence, out)
            assert [path.name for path in shared.iterdir()] == ["report.html"]
    return out.read_bytes()


@pytest.fixture(scope="module")
def page(built: bytes) -> Page:
    return Page(built.decode())


def test_n05_no_script_but_the_pages_own_can_run(page: Page) -> None:
    running = [text for attrs, text in page.scripts if attrs.get("type") != "application/json"]
    assert len(running) == 2
    for text in running:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy
    assert "unsafe-eval" not in page.policy
    assert re.search(r"script-src [^;]*'unsafe-inline'", page.policy) is None


def test_n05_no_event_handler_and_no_script_address(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"img", "iframe", "object", "embed", "base", "form", "svg"}
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert not any(
            (value or "").strip().lower().startswith("javascript:") for value in attributes.values()
        )


def test_fault_32_a_script_in_a_data_value_stays_text(page: Page) -> None:
    assert HOSTILE in page.text
    for attributes, text in page.scripts:
        if attributes.get("type") == "application/json":
            json.loads(text)
            assert "<" not in text


def test_n04_nothing_is_fetched(page: Page) -> None:
    assert page.policy.startswith("default-src 'none'")
    assert re.search(r"https?:|\*", page.policy) is None
    for tag, attributes in page.elements:
        assert tag != "link"
        for name in ("src", "srcset", "data", "poster"):
            assert name not in attributes, (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not any(attributes.get("src") for attributes, _ in page.scripts)


def test_n04_every_chart_has_words_and_a_table(page: Page) -> None:
    charts = [attributes for _, attributes in page.elements if attributes.get("class") == "rk-chart"]
    assert len(charts) >= 8
    assert all(chart.get("aria-label") and chart.get("role") == "img" for chart in charts)
    tables = [attributes for _, attributes in page.elements if attributes.get("class") == "rk-data"]
    assert len(tables) == len(charts)
    names = [attributes.get("id") for _, attributes in page.elements if attributes.get("id")]
    assert len(set(names)) == len(names)


def test_n10_what_was_not_measured_is_missing_with_its_reason(page: Page) -> None:
    assert "missing: candidate-crashed" in page.text
    assert "missing: rejected, build" in page.text
    specs = [
        json.loads(text) for attributes, text in page.scripts if attributes.get("type") == "application/json"
    ]
    gains = next(spec["data"]["values"] for spec in specs if "composed" in spec["data"]["values"][0])
    unmeasured = [row for row in gains if row["missing"]]
    assert len(unmeasured) == 3
    assert all(row["gain_percent"] is None for row in unmeasured)


def test_the_page_opens_with_the_decision_and_ends_with_the_digests(page: Page, evidence: Path) -> None:
    words = " ".join(page.text.split())
    gain = json.loads((evidence / "round-ledger.json").read_bytes())["gain"]
    assert words.index(f"New incumbent: {100 * gain:.1f} %") < words.index("What was decided about each lane")
    assert "This is not evidence about any model" in words
    assert "development evidence" in words
    index = hashlib.sha256((evidence / "index.json").read_bytes()).hexdigest()
    plan = hashlib.sha256((evidence / "round-plan.json").read_bytes()).hexdigest()
    assert f"roundkit audit evidence/demo/rounds/r01 --expect {index}" in words[-2500:]
    assert plan in words[-2500:]


def test_fault_31_neither_page_nor_bytes_depend_on_where_the_evidence_lies(
    built: bytes, evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "häuser & gärten" / "a b"
    shutil.copytree(evidence, elsewhere / "r01")
    monkeypatch.chdir(elsewhere)
    build_report(Path("r01"), Path("out.html"))
    assert (elsewhere / "out.html").read_bytes() == built
    for path in (evidence, Path.home(), Path.cwd(), Path(__file__).resolve().parent):
        assert f"{path}/".encode() not in built
