"""Judges HTML pages in headless Chromium, for `.ci/pages`."""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys
import urllib.parse

from playwright.sync_api import sync_playwright

MEASURE = pathlib.Path(__file__).with_name("page_judge.js").read_text()
# Colour schemes, and the widths of a screen and of a small phone.
VIEWS = [(scheme, width) for width in (1280, 360) for scheme in ("light", "dark")]


@dataclasses.dataclass(frozen=True, order=True)
class Fault:
    """What is wrong with a page: the rule, where it was seen, and what it was seen on."""
    rule: str
    views: str
    text: str

    def __str__(self):
        return f"{self.rule} ({self.views}): {self.text}"


class Judge:
    """A running Chromium, and the folder for screenshots."""

    def __init__(self, browser, folder):
        self.browser, self.folder = browser, folder
        package = pathlib.Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages/axe_playwright_python")
        self.axe = (package / "axe.min.js").read_text()

    def faults(self, file, name=None, views=VIEWS):
        """The faults of a page, each once with the views that have it. Screenshots are made of pages with a name."""
        seen = {}
        for view in views:
            for rule, text in self.in_view(file, name, *view):
                seen.setdefault((rule, text), []).append(" ".join(map(str, view)))
        for rule, text in self.without_scripts(file):
            seen.setdefault((rule, text), []).append("without scripts")
        return sorted(Fault(rule, " and ".join(dict.fromkeys(names)), text) for (rule, text), names in seen.items())

    @contextlib.contextmanager
    def page(self, file, **options):
        """The loaded page, and what happened to it so far: (rule, text)."""
        events, address = [], file.resolve().as_uri()
        context = self.browser.new_context(**options)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and events.append(("console", message.text)))
        page.on("pageerror", lambda error: events.append(("script", str(error))))
        page.on("websocket", lambda socket: events.append(("request", socket.url)))
        is_own = lambda url: url == address or url.startswith("data:")
        page.on("request", lambda request: is_own(request.url) or events.append(("request", request.url)))
        try:
            page.goto(address, wait_until="load")
            # Requests that a script makes after the page is loaded.
            page.wait_for_timeout(100)
            measure(page, "openDetails")
            yield page, events
        finally:
            context.close()

    def in_view(self, file, name, scheme, width):
        options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "is_mobile": width < 600}
        with self.page(file, **options) as (page, events):
            if name:
                page.screenshot(path=self.folder / f"{name}-{scheme}-{width}.png", full_page=True)
            found = []
            for rule, texts in {**measure(page, "layout"), **measure(page, "source")}.items():
                found += [(rule, text) for text in texts]
            found += [("link", link) for link in measure(page, "links") if not is_there(link)]
            found += self.accessibility(page)
        return events + found

    def accessibility(self, page):
        page.evaluate(self.axe)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for rule in result["violations"]:
            for node in rule["nodes"]:
                yield f"axe-{rule['id']}", f"{' '.join(map(str, node['target']))}: {rule['help']}"

    def without_scripts(self, file):
        with self.page(file) as (page, _):
            with_scripts = measure(page, "texts")
        with self.page(file, java_script_enabled=False) as (page, events):
            without = set(measure(page, "texts"))
            found = [*events, *(("hidden", text) for text in measure(page, "hiddenTexts"))]
        found += [("written-by-script", json.dumps(text)) for text in with_scripts if text not in without]
        return found


def measure(page, function):
    return page.evaluate(f"({MEASURE}).{function}()")


def is_there(link):
    """Tells whether a link leads to another site, or to a file beside the page."""
    address = urllib.parse.urlsplit(link)
    return address.scheme in ("http", "https", "mailto") or (
        address.scheme == "file" and pathlib.Path(urllib.parse.unquote(address.path)).exists())


@contextlib.contextmanager
def judge(folder):
    with sync_playwright() as playwright:
        # Chromium has no sandbox for root.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield Judge(browser, folder)
        browser.close()
