"""The addresses of the pages. Each page has a twin with its content as JSON, at the same path with ``.json``."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

import anyio
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import judgekit
from judgekit.errors import JudgekitError
from judgekit.reports.document import render_page
from judgekit.reports.html import PAGE_SCRIPTS
from judgekit.view.access import Access, Guard
from judgekit.view.labeling import Queue, Queues
from judgekit.view.pages import Pages

Answer = TypeVar("Answer")
SCRIPTS = ("dom", "served", *PAGE_SCRIPTS, "live")
RUNS_SCRIPTS = ("dom", "plots", "served", "runs")
_POLL_SECONDS = 1.0
_MOST_BYTES = 2**20
_MOST = 10**9


class App:
    """The pages of a file of runs, for those who have access to them."""

    def __init__(self, pages: Pages, access: Access) -> None:
        self._pages, self._queues, self._access = pages, Queues(pages.path), access

    def asgi(self) -> Guard:
        """Return the application that a server runs."""
        one, two = "/runs/{run:int}", "/runs/{baseline:int}/compare/{run:int}"
        routes = [
            Route("/", self._runs_page),
            Route("/runs", self._runs_page),
            Route("/runs.json", self._runs),
            Route("/version.json", self._version),
            Route("/events", self._events),
            Route("/runs/{run:int}/samples.json", self._rows),
            Route("/runs/{run:int}/failures", self._edit_issue, methods=["POST"]),
            Route("/runs/{run:int}/label/{scorer:path}.json", self._queue),
            Route("/runs/{run:int}/label/{scorer:path}", self._label_page, methods=["GET"]),
            Route("/runs/{run:int}/label/{scorer:path}", self._add_label, methods=["POST"]),
        ]
        for path in (one, two):
            routes += [
                Route(path, self._report_page),
                Route(f"{path}.json", self._head),
                Route(f"{path}/list-{{side}}.json", self._listed),
                Route(f"{path}/samples-{{side}}-{{pack:int}}.json", self._pack),
            ]
        problems: Mapping[type[Exception], Callable[..., Response]] = {
            JudgekitError: lambda request, error: _problem(request, str(error), 400),
            HTTPException: lambda request, error: _problem(request, error.detail, error.status_code),
            Exception: lambda request, error: _problem(request, f"{type(error).__name__}: {error}", 500),
        }
        return Guard(Starlette(routes=routes, exception_handlers=dict(problems)), self._access)

    def _page(self, template: str, scripts: Sequence[str], title: str, *styles: str) -> Response:
        """Return a page that reads its content from its twin."""
        pieces = render_page(
            template,
            ["report", *styles],
            scripts,
            title=title,
            version=judgekit.__version__,
            served=self._access.write_token,
            columns=(),
            has_audit=False,
            has_failures=False,
            gates={"results": ()},
            lists=(),
            samples=(),
        )
        return HTMLResponse("".join(pieces))

    async def _runs_page(self, _: Request) -> Response:
        return self._page("runs.html.j2", RUNS_SCRIPTS, "Runs", "runs")

    async def _report_page(self, request: Request) -> Response:
        numbers = " compared with run ".join(str(number) for number in reversed(_key(request)))
        return self._page("page.html.j2", SCRIPTS, f"Run {numbers}")

    async def _label_page(self, request: Request) -> Response:
        return HTMLResponse(await self._of_queue(request, lambda queue: "".join(queue.page(self._access.write_token))))

    async def _runs(self, _: Request) -> Response:
        store = str(self._pages.path)
        return _json({"store": store, "runs": await run_in_threadpool(self._pages.runs)})

    async def _version(self, _: Request) -> Response:
        return _json({"version": await run_in_threadpool(self._pages.version)})

    async def _events(self, _: Request) -> Response:
        """Send a version whenever the file has changed; pages fetch what they show again."""

        async def versions() -> AsyncIterator[str]:
            last = ""
            while True:
                version = await run_in_threadpool(self._pages.version)
                yield ": still here\n\n" if version == last else f"data: {version}\n\n"
                last = version
                await anyio.sleep(_POLL_SECONDS)

        return StreamingResponse(versions(), media_type="text/event-stream")

    async def _head(self, request: Request) -> Response:
        return _json(await run_in_threadpool(self._pages.head, _key(request)))

    async def _listed(self, request: Request) -> Response:
        return _deflated(await run_in_threadpool(self._pages.listed, _key(request), request.path_params["side"]))

    async def _pack(self, request: Request) -> Response:
        side, pack = request.path_params["side"], _number(request.path_params["pack"])
        return _deflated(await run_in_threadpool(self._pages.pack, _key(request), side, pack))

    async def _rows(self, request: Request) -> Response:
        run, start = _number(request.path_params["run"]), _given(request, "start") or 0
        return _json(await run_in_threadpool(self._pages.rows, run, start))

    async def _edit_issue(self, request: Request) -> Response:
        sent = await _sent(request)
        issue, status, name = (_text(sent, field) for field in ("issue", "status", "name"))
        run = _number(request.path_params["run"])
        await run_in_threadpool(self._pages.edit_issue, run, issue or "", status, name)
        return _json({})

    async def _queue(self, request: Request) -> Response:
        annotator = request.query_params.get("annotator", "")
        return _json(await self._of_queue(request, lambda queue: queue.state(annotator)))

    async def _add_label(self, request: Request) -> Response:
        sent = await _sent(request)

        def add(queue: Queue) -> JsonValue:
            queue.add(sent)
            return queue.state(_text(sent, "annotator") or "")

        return _json(await self._of_queue(request, add))

    async def _of_queue(self, request: Request, ask: Callable[[Queue], Answer]) -> Answer:
        run, scorer = _number(request.path_params["run"]), request.path_params["scorer"]
        n, seed = _given(request, "n"), _given(request, "seed") or 0

        def use() -> Answer:
            with self._queues.use(run, scorer, n, seed) as queue:
                return ask(queue)

        return await run_in_threadpool(use)


def _key(request: Request) -> tuple[int, ...]:
    """Return the numbers of the runs of a page, the baseline first."""
    numbers = [request.path_params.get("baseline"), request.path_params["run"]]
    return tuple(_number(number) for number in numbers if number is not None)


def _number(number: int) -> int:
    if number > _MOST:
        raise HTTPException(404, "there is no run or sample with such a number")
    return number


def _given(request: Request, name: str) -> int | None:
    """Return a whole number of the query."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(_MOST))):
        raise HTTPException(400, f"{name}: expected a whole number")
    return int(text)


def _text(sent: Mapping[str, JsonValue], name: str) -> str | None:
    text = sent.get(name)
    if text is not None and not isinstance(text, str):
        raise HTTPException(400, f"{name}: expected a text")
    return text


async def _sent(request: Request) -> dict[str, JsonValue]:
    """Return the JSON object in a request."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, "too long")
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        raise HTTPException(400, "expected a JSON object")
    return sent


def _json(content: JsonValue, status: int = 200) -> Response:
    return Response(
        json.dumps(content), status, media_type="application/json"
    )  # in ASCII, as texts may hold surrogates


def _problem(request: Request, text: str, status: int) -> Response:
    if request.method == "GET" and not request.url.path.endswith(".json"):
        return PlainTextResponse(text, status)
    return _json({"error": text}, status)


def _deflated(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"content-encoding": "deflate"})
