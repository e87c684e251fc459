"""A page in Debian's Chromium that remembers what its console complained about, and what axe finds in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parents[2] / "service" / "page" / "node_modules" / "axe-core" / "axe.min.js"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
SCREENSHOTS = os.environ.get("PREDRAIN_SCREENSHOTS")
"""Folder that pictures for the documentation are written to; none are taken where it is not set."""

# A change that a person sees within 1 s takes 10 s beside other tests, which share two cores with the browser.
expect.set_options(timeout=30_000)


def missing(what: str) -> None:
    """Fail where nothing may be missing, skip on a laptop."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    if not CHROMIUM.exists():
        missing("no /usr/bin/chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page of a service at `base_url`."""

    def __init__(self, context: BrowserContext, base_url: str) -> None:
        context.set_default_timeout(30_000)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self._base = base_url.split("#")[0].rstrip("/")
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def address(self, path: str) -> str:
        """Return the address of a view."""
        return self._base + path

    def go(self, path: str, token: str | None = None) -> Page:
        """Open a view; `token` in the address, as a printed link has it."""
        self.page.goto(self.address(path) + (f"#token={token}" if token else ""))
        expect(self.page.locator("h1")).to_be_visible()
        return self.page

    def api(self, path: str) -> Any:
        """Return the service's own answer from its REST interface."""
        answer = self.page.request.get(f"{self._base}/api/v1/{path}")
        assert answer.ok, answer.text()
        return answer.json()


def settled(page: Page) -> Page:
    """The stream is open, the header names the cluster, and no grey bar is left.

    The banners of a demo and of a halt come with the cluster's name and move the view down. A click during that move
    is lost.
    """
    expect(page.locator(".live.live")).to_be_visible()
    expect(page.locator(".header .cluster")).not_to_be_empty()
    expect(page.locator(".loading")).to_have_count(0)
    return page


def answering(page: Page, path: str, body: Any) -> None:
    """Let the service answer this instead."""

    def fulfil(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

    page.route(re.compile(rf"/api/v1/{path}(\?.*)?$"), fulfil)


def many_disks(opened: Opened, count: int, a_host: int, **told: Any) -> dict[str, Any]:
    """So many disks like the first one, so many a host, five hosts a rack."""
    body: dict[str, Any] = opened.api("osds")
    first = body["items"][0]
    body["items"] = [
        first
        | {"osd": n, "host": f"stor-{n // a_host:04}", "rack": f"r{n // a_host // 5}", "slot": n % a_host}
        | told
        for n in range(count)
    ]
    return body


def fits(page: Page) -> bool:
    """Return True if the page is not wider than the window.

    A page that is too wide makes a phone's `innerWidth` larger, too. The page is therefore compared with the width that
    the test has set.
    """
    size = page.viewport_size
    assert size is not None
    return bool(page.evaluate("document.documentElement.scrollWidth") <= size["width"])


_CLIPPED = """() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const [node, one] = [texts.currentNode, texts.currentNode.parentElement];
    if (!node.textContent.trim() || !one.checkVisibility({ visibilityProperty: true })) continue;
    if (one.closest("title, script, style, option, noscript")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    if (text.width <= 1 || text.right <= 0) continue;
    let [left, right] = [0, width];
    for (let frame = one; frame; frame = frame.parentElement) {
      const box = frame.getBoundingClientRect();
      const flow = getComputedStyle(frame).overflowX;
      const scrolls = frame !== document.documentElement && /auto|scroll/.test(flow);
      if (scrolls || box.width <= 1) { [left, right] = [-Infinity, Infinity]; break; }  // 1: for screen readers alone
      if (frame instanceof SVGSVGElement || /hidden|clip/.test(flow)) {
        if (text.left < box.left - 1 || text.right > box.right + 1) { [left, right] = [box.left, box.right]; break; }
      }
    }
    if (text.left < left - 1 || text.right > right + 1) found.push(node.textContent.trim().slice(0, 80));
  }
  return found;
}"""
"""A text that a frame scrolls to is not cut off. A text of an SVG is, where it stands beyond the picture."""


def list_clipped_texts(page: Page) -> list[str]:
    """List the texts of which a part lies beside the window, or beyond a frame that hides it."""
    found: list[str] = page.evaluate(_CLIPPED)
    return found


def unreadable_text(page: Page) -> list[str]:
    """Words that only a program shows: what is unknown must read "not reported"."""
    return re.findall(r"\b(?:NaN|undefined|null|Infinity)\b|\[object", page.locator("main").inner_text())


def violations(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return what axe finds against WCAG 2.1 AA: the address, the rule, and the first three nodes of each finding."""
    if not AXE.exists():
        missing("axe-core is not installed; run: make setup")
    page.evaluate(AXE.read_text())
    report = page.evaluate(f"axe.run({{ runOnly: {list(RULES)} }})")
    return [
        (page.url, violation["id"], [node["html"][:160] for node in violation["nodes"][:3]])
        for violation in report["violations"]
    ]


def picture(page: Page, name: str) -> None:
    """Keep what is seen now for the documentation, when asked to."""
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")
