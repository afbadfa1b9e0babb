"""Who may use the server: each rule, against a server on loopback."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import httpx
import pytest

from judgekit.cli.view import view
from judgekit.errors import ConfigError
from judgekit.view.access import Access
from judgekit.view.serving import bind
from tests.view.conftest import Served, serving

PAGES = (
    *("/", "/runs", "/runs.json", "/version.json", "/events", "/runs/1", "/runs/1.json", "/runs/1/label/kind"),
    *("/runs/1/samples.json", "/runs/1/samples/0.json", "/runs/1/head.json", "/runs/1/trend/kind.json"),
    *("/runs/1/trend/kind", "/compare?run=1&run=2", "/compare.json?run=1&run=2"),
)
LABEL = {"annotator": "Ann", "number": 0, "value": "yes"}


def raw(served: Served, head: str) -> str:
    """The answer to a request that no client would send."""
    with socket.create_connection(("127.0.0.1", served.access.port)) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        connection.settimeout(10)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer.decode()


@pytest.fixture(scope="module")
def served(two_runs, tmp_path_factory) -> Iterator[Served]:
    """One server for all tests."""
    with serving(shutil.copy(two_runs, tmp_path_factory.mktemp("access") / "runs.sqlite")) as started:
        yield started


@pytest.fixture(scope="module")
def client(served) -> Iterator[httpx.Client]:
    """A client that has opened the pages."""
    with served.opened() as opened:
        yield opened


FOREIGN_HOSTS = (
    *("example.com", "example.com:PORT", "127.0.0.1", "localhost", "127.0.0.1:1", "localhost.example.com:PORT"),
    *("127.0.0.1.nip.io:PORT", "0.0.0.0:PORT", "127.0.0.1:PORT.example.com", "[::ffff:127.0.0.1]:PORT"),
    *("a@127.0.0.1:PORT", "", "localhost.:PORT", "2130706433:PORT"),
)


def test_a_foreign_name_is_refused(served, client):
    for host in FOREIGN_HOSTS:
        answer = client.get("/runs.json", headers={"host": host.replace("PORT", str(served.access.port))})
        assert (answer.status_code, "runs" in answer.text) == (403, False), host


def test_its_own_names_are_answered(served, client):
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert client.get("/runs.json", headers={"host": f"{host}:{served.access.port}"}).status_code == 200, host


def test_two_names_or_none_are_refused(served):
    cookie = f"Cookie: {served.access.cookie}\nConnection: close"
    good = f"Host: 127.0.0.1:{served.access.port}"
    assert " 200 " in raw(served, f"GET /runs.json HTTP/1.1\n{good}\n{cookie}").splitlines()[0]
    for hosts in (f"{good}\nHost: example.com", f"Host: example.com\n{good}"):
        assert " 200 " not in raw(served, f"GET /runs.json HTTP/1.1\n{hosts}\n{cookie}").splitlines()[0]
    assert " 403 " in raw(served, f"GET /runs.json HTTP/1.0\n{cookie}").splitlines()[0]


def test_a_foreign_origin_is_refused(served, client):
    for origin in ("http://example.com", "null", "http://127.0.0.1", "https://127.0.0.1:PORT", "http://127.0.0.1:1"):
        headers = {"origin": origin.replace("PORT", str(served.access.port))}
        assert client.get("/runs.json", headers=headers).status_code == 403, origin
    assert client.get("/runs.json", headers={"origin": served.base}).status_code == 200


def test_requests_that_pages_of_others_caused_are_refused(client):
    for site, status in {"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200, "x": 403}.items():
        assert client.get("/runs.json", headers={"sec-fetch-site": site}).status_code == status, site


def test_nothing_is_shown_without_the_cookie(served):
    with served.client() as stranger:
        for path in PAGES:
            answer = stranger.get(path)
            assert answer.status_code == 403, path
            assert served.access.write_token not in answer.text, path
        assert served.post(stranger, "/runs/1/label/kind", LABEL).status_code == 403


def test_a_token_of_another_process_opens_nothing(served):
    other, name = Access("127.0.0.1", served.access.port).token, f"judgekit-{served.access.port}"
    with served.client() as stranger:
        for params in ({}, {"token": other}, {"token": ""}, {"token": served.access.write_token}):
            assert stranger.get("/open", params=params).status_code == 403, params
        for cookie in (f"judgekit={served.access.token}", *(f"{name}={token}" for token in (other, "", "x"))):
            assert stranger.get("/runs.json", headers={"cookie": cookie}).status_code == 403, cookie


def test_the_token_becomes_a_cookie_that_scripts_and_other_pages_do_not_get(served):
    with served.client() as client:
        answer = client.get(f"/open?token={served.access.token}", headers={"sec-fetch-site": "cross-site"})
        cookie = answer.headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
        assert served.access.token not in answer.text
        assert client.get("/").status_code == 200


def test_only_its_own_pages_write(served, client):
    for headers, status in (
        ({}, 403),
        ({"x-judgekit-token": "x"}, 403),
        ({"x-judgekit-token": served.access.token}, 403),
        ({"x-judgekit-token": served.access.write_token, "content-type": "text/plain"}, 415),
        ({"x-judgekit-token": served.access.write_token, "content-type": "application/x-www-form-urlencoded"}, 415),
        ({"x-judgekit-token": served.access.write_token, "origin": "http://example.com"}, 403),
        ({"x-judgekit-token": served.access.write_token}, 200),
    ):
        sent = {"content-type": "application/json", **headers}
        assert client.post("/runs/1/label/kind", json=LABEL, headers=sent).status_code == status, headers
        labeled = client.get("/runs/1/label/kind.json", params={"annotator": "Ann"}).json()["labeled"]
        assert labeled == (status == 200), headers


def test_other_methods_are_refused(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/runs/1/label/kind").status_code == 405, method


WRONG_PATHS = (
    *("/../runs.sqlite", "/..%2f..%2fetc/passwd", "/runs/../../etc/passwd", "/%2e%2e/etc/passwd", "/static/../app.py"),
    *("/runs/1/samples/../0.json", "/runs/1/compare/2/samples/b1.json", "/runs/-1", "/runs/1e9.json", "//etc/passwd"),
    *(
        "/runs/99999999999999999999.json",
        "/runs/1/samples/99999999999999999999.json",
        "/runs/1/compare/2/samples/a-1.json",
    ),
    *("/runs/9.json", "/runs/1/compare/9.json", "/runs/1/label/nobody", "/runs/1/label/", "/runs/1/trend/nobody.json"),
    *("/compare.json?run=1", "/compare.json?run=1&run=1", "/compare.json?run=1&run=9", "/compare.json?run=1&run=-2"),
    *("/runs/1/samples.json?start=-1", "/runs/1/samples.json?start=x", "/runs/1/label/kind?n=1e3"),
)


def test_no_path_leads_elsewhere(served, client):
    for path in WRONG_PATHS:
        answer = client.get(httpx.URL(served.base).copy_with(raw_path=path.encode()))
        assert answer.status_code in (400, 404), path
        assert "root:" not in answer.text, path


def test_every_answer_forbids_frames_sniffing_and_sharing(client):
    for path in ("/", "/runs.json", "/runs/1", "/runs/1/samples/0.json", "/nowhere", "/runs/1/label/kind"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in headers if name.startswith("access-control")]
        if not headers["content-type"].startswith("text/html"):
            assert "default-src 'none'" in headers["content-security-policy"]


def test_it_listens_on_this_machine_alone_unless_a_host_is_named():
    assert signature(view).parameters["host"].default == "127.0.0.1"
    with bind("127.0.0.1", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_all_addresses_at_once_are_refused():
    for host in ("0.0.0.0", "::", ""):  # noqa: S104 - which are refused
        with pytest.raises(ConfigError, match="name one address"):
            bind(host, 0)


STRANGER = """
import encodings.idna, os, sys, urllib.error, urllib.request
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for path in sys.argv[2:]:
    try:
        answer = urllib.request.urlopen(sys.argv[1] + path)
        print(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        print(error.code, error.read() if error.code != 403 else "")
try:
    print(open(f"/proc/{os.getppid()}/environ", "rb").read())
except PermissionError:
    print("no environment")
"""


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_gets_nothing(served):
    command = [sys.executable, "-c", STRANGER, served.base, *PAGES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - Python itself
    assert ran.stdout.split("\n") == [*["403 "] * len(PAGES), "no environment", ""]
    command = [sys.executable, "-m", "judgekit", "view", "--no-open", "--store", str(served.path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - Python itself
        assert process.stderr is not None
        token = process.stderr.readline().partition("token=")[2].split()[0]
        told = b"".join(Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        process.kill()
    assert (len(token) > 20, token.encode() in told) == (True, False)


def test_a_port_in_use_is_reported(served):
    with pytest.raises(ConfigError, match="name another --port"):
        bind("127.0.0.1", served.access.port)


def test_with_a_host_name_no_other_name_is_answered():
    assert Access("box.example.com", 80).hosts == {"box.example.com:80"}


def test_what_is_sent_has_a_bound(served, client):
    headers, path = (
        {"x-judgekit-token": served.access.write_token, "content-type": "application/json"},
        "/runs/1/description",
    )
    assert client.post(path, content=b'{"name": "' + b"x" * 10**6 + b'"}', headers=headers).status_code == 413
    chunks = (part for part in (b'{"name": ', b'"x"}'))  # of which nobody says how many will come
    assert client.post(path, content=chunks, headers=headers).status_code == 413
    assert client.post(path, content=b'{"name": "x"}', headers=headers).status_code == 200
