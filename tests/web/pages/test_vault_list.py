"""The page of a server with several vaults: the list, signing in there, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.web.conftest import Served
from tests.web.test_page import Browser


def two_vaults(serve: Callable[..., Served], tmp_path: Path) -> Served:
    """Return a server of the vaults `home` and `work`."""
    folders = []
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
        folders += ["--vault", f"{name}={tmp_path / name}"]
    return serve(*folders)


def test_one_sign_in_shows_all_vaults_and_each_leads_back_to_the_list(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = two_vaults(serve, tmp_path)
    asked = server.ask("GET", "/", token=None, headers={"Accept": "text/html"})
    assert asked.status == 401
    assert b'action="/login"' in asked.body
    assert b"work" not in asked.body

    browser = Browser(server)
    page = browser.get("/").body.decode()
    assert 'href="/home/">home</a>' in page
    assert 'href="/work/">work</a>' in page
    assert '<a href="/">Vaults</a>' in browser.get("/work/tags").body.decode()


def test_a_token_for_one_vault_sees_only_that_one_in_the_list(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = two_vaults(serve, tmp_path)
    browser = Browser(server, server.new_token("laptop", "--vault", "work"))
    page = browser.get("/").body.decode()
    assert "work" in page
    assert "home" not in page


def test_the_only_vault_of_a_server_has_no_list(serve: Callable[..., Served]) -> None:
    assert ">Vaults</a>" not in Browser(serve()).get("/").body.decode()


def test_signing_in_leads_back_to_the_page_with_its_query(serve: Callable[..., Served]) -> None:
    server = serve()
    asked = server.ask("GET", "/?q=heron&explain=1", token=None, headers={"Accept": "text/html"})
    assert b'name="to" value="/?q=heron&amp;explain=1"' in asked.body

    headers = {
        "Accept": "text/html",
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{server.port}",
    }
    form = f"token={server.token}&to=%2F%3Fq%3Dheron".encode()
    signed_in = server.ask("POST", "/login", form, token=None, headers=headers)
    assert signed_in.status == 303
    assert signed_in.headers["location"] == "/?q=heron"
