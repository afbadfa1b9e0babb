"""The addresses of the pages. Each page has a twin with its content as JSON, at the same path with ``.json``."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import anyio
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from judgekit.distribution import own_version
from judgekit.errors import JudgekitError
from judgekit.reports.document import PAGE_SCRIPTS, render_page
from judgekit.view.access import Access, Guard
from judgekit.view.pages import Pages

if TYPE_CHECKING:
    from judgekit.view.labeling import LabelQueue, LabelQueues

Answer = TypeVar("Answer")
_SCRIPTS = ("dom", "served", *PAGE_SCRIPTS[:-1], "paged", "report", "live")
_LISTS = ("dom", "plots", "served")
_POLL_SECONDS = 1.0
_MOST = 10**9
_LONGEST_SENT = 10**6


class App:
    """The pages of a file of runs, for those who have access to them. What blocks is called in threads."""

    def __init__(self, pages: Pages, access: Access, is_closing: Callable[[], bool]) -> None:
        self._pages, self._access, self._is_closing = pages, access, is_closing

    @cached_property
    def _queues(self) -> "LabelQueues":
        from judgekit.view.labeling import LabelQueues  # noqa: PLC0415 - takes as long to import as all the rest

        return LabelQueues(self._pages.path)

    def asgi(self) -> Guard:
        """Return the application that a server runs."""
        pages, queue, trend = self._pages, *(f"/runs/{{run:int}}/{kind}/{{scorer:path}}" for kind in ("label", "trend"))
        routes = [
            _get("/", self._runs_page),
            _get("/runs", self._runs_page),
            _get("/runs.json", lambda _: _json({"store": str(pages.path), "runs": pages.runs()})),
            _get("/version.json", lambda _: _json({"version": pages.version()})),
            Route("/events", self._events),
            _get("/favicon.ico", lambda _: Response(status_code=204)),
            _get("/compare", lambda _: self._page("runs.html.j2", (*_LISTS, "beside"), "Runs compared", "runs")),
            _get(
                "/compare.json",
                lambda got: _json(pages.compare([_whole("run", text) for text in got.query_params.getlist("run")])),
            ),
            _get(f"{trend}.json", lambda got: _json(pages.trend(_number(got, "run"), got.path_params["scorer"]))),
            _get(trend, self._trend_page),
            _get("/runs/{run:int}/head.json", lambda got: _json(pages.head(_number(got, "run")))),
            _get(
                "/runs/{run:int}/samples/{number:int}.json",
                lambda got: _json(pages.sample(_number(got, "run"), _number(got, "number"))),
            ),
            _get(
                "/runs/{baseline:int}/compare/{run:int}/samples/{number}.json",
                lambda got: _json(pages.pair(_key(got), _sample(got.path_params["number"]))),
            ),
            _get(f"{queue}.json", self._queue),
            _get(queue, self._label_page),
            _writing(queue, lambda got, sent: self._use(got, lambda queue: queue.add(sent))),
            _writing("/runs/{run:int}/failures", lambda got, sent: pages.edit_issue(_number(got, "run"), sent)),
            _writing("/runs/{run:int}/description", lambda got, sent: pages.describe(_number(got, "run"), sent)),
        ]
        for path in ("/runs/{run:int}", "/runs/{baseline:int}/compare/{run:int}"):
            routes += [
                _get(path, self._report_page),
                _get(f"{path}.json", lambda got: _json(pages.use(_key(got), lambda page: dict(page.head)))),
                _get(f"{path}/samples.json", self._samples),
            ]
        return Guard(
            Starlette(routes=routes, exception_handlers=dict.fromkeys((JudgekitError, HTTPException), _problem)),
            self._access,
        )

    def _page(self, template: str, scripts: Sequence[str], title: str, *styles: str) -> Response:
        """Return a page that reads its content from its twin."""
        shown: dict[str, object] = {"title": title, "version": own_version(), "served": self._access.write_token}
        return HTMLResponse("".join(render_page(template, ["report", *styles], scripts, **shown)))

    def _runs_page(self, _: Request) -> Response:
        return self._page("runs.html.j2", (*_LISTS, "runs"), "Runs", "runs")

    def _report_page(self, request: Request) -> Response:
        numbers = " compared with run ".join(str(number) for number in reversed(_key(request)))
        return self._page("page.html.j2", _SCRIPTS, f"Run {numbers}")

    def _trend_page(self, request: Request) -> Response:
        return self._page("runs.html.j2", (*_LISTS, "trend"), f"Trend of {request.path_params['scorer']}", "runs")

    def _samples(self, got: Request) -> Response:
        text = got.query_params.get("number")
        number = None if text is None else _sample(text)
        return _json(self._pages.samples(_key(got), got.query_params, _given(got, "start"), number))

    def _queue(self, got: Request) -> Response:
        return _json(self._use(got, lambda queue: queue.state(got.query_params.get("annotator", ""))))

    def _label_page(self, request: Request) -> Response:
        return HTMLResponse(self._use(request, lambda queue: "".join(queue.sheet.page(self._access.write_token))))

    async def _events(self, _: Request) -> Response:
        """Send a version whenever the file has changed; pages then fetch again what they show."""

        async def versions() -> AsyncIterator[str]:
            last = ""
            while not self._is_closing():
                version = await run_in_threadpool(self._pages.version)
                yield ": still here\n\n" if version == last else f"data: {version}\n\n"
                last = version
                await anyio.sleep(_POLL_SECONDS)

        return StreamingResponse(versions(), media_type="text/event-stream")

    def _use(self, request: Request, ask: "Callable[[LabelQueue], Answer]") -> Answer:
        given = _given(request, "n"), _given(request, "seed") or 0
        with self._queues.use(_number(request, "run"), request.path_params["scorer"], *given) as queue:
            return ask(queue)


def _get(path: str, answer: Callable[[Request], Response]) -> Route:
    return Route(path, answer, methods=["GET"])


def _writing(path: str, write: Callable[[Request, Mapping[str, JsonValue]], JsonValue]) -> Route:
    """Return the address of what is changed by a JSON object."""

    async def endpoint(request: Request) -> Response:
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > _LONGEST_SENT:
            raise HTTPException(413, f"expected at most {_LONGEST_SENT:,} bytes, and their number")
        try:
            sent: JsonValue = json.loads(await request.body())
        except (ValueError, RecursionError):
            sent = None
        if not isinstance(sent, dict):
            raise HTTPException(400, "expected a JSON object")
        return _json(await run_in_threadpool(write, request, sent))

    return Route(path, endpoint, methods=["POST"])


def _number(request: Request, name: str) -> int:
    number: int = request.path_params[name]
    if number > _MOST:
        raise HTTPException(404, f"there is no {name} {number}")
    return number


def _key(request: Request) -> tuple[int, ...]:
    """Return the numbers of the runs of a page, the baseline first."""
    return tuple(_number(request, name) for name in ("baseline", "run") if name in request.path_params)


def _given(request: Request, name: str) -> int | None:
    """Return a whole number of the query."""
    text = request.query_params.get(name)
    return None if text is None else _whole(name, text)


def _sample(text: str) -> int:
    """Return the number of a sample: for one that is only in a baseline, named ``a3``, -1 minus its number there."""
    number = _whole("number", text.removeprefix("a"))
    return -1 - number if text.startswith("a") else number


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(_MOST))):
        raise HTTPException(400, f"{name}: expected a whole number")
    return int(text)


def _json(content: JsonValue, status: int = 200) -> Response:
    return Response(
        json.dumps(content), status, media_type="application/json"
    )  # in ASCII, as texts may hold surrogates


def _problem(request: Request, error: Exception) -> Response:
    text, status = (error.detail, error.status_code) if isinstance(error, HTTPException) else (str(error), 400)
    is_page = request.method == "GET" and not request.url.path.endswith(".json")
    return PlainTextResponse(text, status) if is_page else _json({"error": text}, status)
