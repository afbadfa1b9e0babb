"""Pages in a real browser: whatever they say on the console, ask for, or pop up is a failure."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
COLORS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
NEEDS_BROWSER = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")]
LIGHT_AND_DARK = pytest.mark.parametrize(
    ("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop, light", "phone, dark"]
)


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def new_page(browser) -> Iterator[Callable[..., AbstractContextManager]]:
    """Opens a page that may ask for addresses that begin with one of some texts."""
    noticed: list[str] = []

    @contextmanager
    def open_page(*own: str, script: str = "0", viewport=DESKTOP, **options: object) -> Iterator:
        context = browser.new_context(viewport=viewport, **options)
        context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: noticed.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on(
            "dialog", lambda dialog: (dialog.accept(), dialog.type == "beforeunload" or noticed.append(dialog.message))
        )
        page.on("popup", lambda popup: noticed.append(f"popup: {popup.url}"))
        page.on("request", lambda request: None if request.url.startswith(own) else noticed.append(request.url))
        yield page
        context.close()

    yield open_page
    assert noticed == []


@pytest.fixture
def opened(new_page) -> Callable[..., AbstractContextManager]:
    """Opens a file."""

    @contextmanager
    def visit(path: Path, hash: str = "", **options: object) -> Iterator:
        with new_page(path.as_uri(), "blob:", **options) as page:
            page.goto(f"{path.as_uri()}{hash}")
            page.wait_for_selector("html[data-ready]")
            yield page

    return visit


def unfold(page) -> None:
    """Opens all folds, and those in them."""
    for _ in range(3):
        page.evaluate("for (const fold of document.querySelectorAll('main details')) fold.open = true")
        page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))")


def keeps_nobody_out(page, view: str = "") -> None:
    """Checks that axe finds nothing, in the dark of colors alone, and that nothing is wider than the page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe looks for what keeps people out")
    rules = COLORS if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else {}
    violations = axe.Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
    assert [(view, one["id"], one["nodes"][0]["html"][:200]) for one in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, view
