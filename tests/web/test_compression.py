"""Responses are compressed if the client accepts it, except streams and what signs somebody in."""

from __future__ import annotations

import gzip
import http.client
import re
from collections.abc import Callable, Mapping

import pytest

from tests.web.conftest import Answer, Served

GZIP = {"Accept-Encoding": "gzip, br"}
HTML = {**GZIP, "Accept": "text/html"}


def get(server: Served, path: str, headers: Mapping[str, str] = GZIP) -> Answer:
    return server.ask("GET", path, headers=headers)


def test_pages_rest_and_static_files_are_compressed_to_the_same_content(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    server.api("PUT", "/memories/a", {"content": "A heron stands in the pond. " * 100})
    for path in ("/", "/note/a", "/api/v1/memories/a", "/static/page.css", "/graph"):
        compressed = get(server, path, HTML)
        plain = server.ask("GET", path, headers={"Accept": "text/html"})
        assert compressed.headers["content-encoding"] == "gzip", path
        assert "accept-encoding" in plain.headers["vary"].lower()
        assert "content-encoding" not in plain.headers
        assert gzip.decompress(compressed.body) == plain.body
        assert len(compressed.body) < len(plain.body)


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "br"])
def test_a_client_that_does_not_accept_gzip_gets_plain_text(
    serve: Callable[..., Served], accepted: str
) -> None:
    answer = get(serve(), "/static/page.css", {"Accept-Encoding": accepted})
    assert "content-encoding" not in answer.headers and b"--paper" in answer.body


def test_signing_in_is_not_compressed(serve: Callable[..., Served]) -> None:
    server = serve()
    form = {**HTML, "Content-Type": "application/x-www-form-urlencoded"}
    wrong = server.ask("POST", "/login", b"token=wrong", token=None, headers=form)
    asking = server.ask("GET", "/", token=None, headers=HTML)
    for page in (wrong, asking):
        assert page.status == 401 and b"Sign in" in page.body
        assert "content-encoding" not in page.headers


def test_the_address_of_a_static_file_has_a_hash_and_is_kept_for_a_year(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    page = server.ask("GET", "/", headers={"Accept": "text/html"}).body.decode()
    addresses = re.findall(r'"(/static/page\.(?:css|js)\?v=[0-9a-f]+)"', page)
    assert len(addresses) == 2
    for address in addresses:
        assert "immutable" in server.ask("GET", address, token=None).headers["cache-control"]
    other = server.ask("GET", "/static/page.css?v=0", token=None)
    assert other.status == 200 and other.headers["cache-control"] == "public, max-age=600"


def test_a_stream_of_changes_is_not_compressed(serve: Callable[..., Served]) -> None:
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {**GZIP, "Authorization": f"Bearer {server.token}"}
    connection.request("GET", "/api/v1/changes", headers=headers)
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in response.headers
    server.api("PUT", "/memories/heron", {"content": "It stands in the pond."})
    while b"heron" not in response.readline():
        pass
    connection.close()
