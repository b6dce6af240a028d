"""The page as a browser gets it: who may see it, what a hostile note can do to it, and what undo asks."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest

import simplemem
from simplemem.web.render import render_note
from tests.web.conftest import OWNER, Answer, Served

STATIC = Path(simplemem.__file__).parent / "web" / "static"

HOSTILE = """---
title: <script>alert(1)</script>
tags: ['"><img src=x onerror=alert(2)>']
evil: "[[<b>x</b>]] javascript:alert(3)"
---
# A title

<script>alert(4)</script> <img src=http://evil.example/x.png onerror=alert(5)>
[a](javascript:alert(6)) [b](data:text/html,alert) ![c](http://evil.example/y.png) [[x" onclick="alert(7)]] #tag"><i>
[d](//evil.example) [e](http://evil.example "t") `[[code]]`

> [!warning"><script>] Mind

```html
<script>alert(8)</script>
```
"""


class Browser:
    """A browser's requests, with its cookie and origin."""

    def __init__(self, server: Served, token: str = OWNER, path: str = "") -> None:
        self.server, self.cookie = server, ""
        answer = self.post(f"{path}/login", token=token, to="/")
        assert answer.status == 303, answer
        self.cookie = re.match(r"[^;]+", answer.headers["set-cookie"])[0]  # type: ignore[index]
        assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))

    def get(self, path: str) -> Answer:
        headers = {"Accept": "text/html", "Cookie": self.cookie}
        return self.server.ask("GET", path, token=None, headers=headers)

    def post(self, path: str, origin: str | None = "", **form: str) -> Answer:
        headers = {
            "Accept": "text/html",
            "Cookie": self.cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        headers |= (
            {} if origin is None else {"Origin": origin or f"http://127.0.0.1:{self.server.port}"}
        )
        return self.server.ask("POST", path, urlencode(form).encode(), token=None, headers=headers)


def test_nothing_is_shown_before_somebody_has_signed_in(serve: Callable[..., Served]) -> None:
    server = serve()
    server.api("PUT", "/memories/a", {"content": "a heron, grey"})
    for path in (
        "/",
        "/search?q=heron",
        "/note/a",
        "/today",
        "/notes",
        "/review/v1",
        "/review/v1/change",
        "/review/v1/details",
        "/review/news",
        "/tags",
        "/graph",
        "/doctor",
        "/history/a",
        "/latest",
    ):
        page = server.ask("GET", path, token=None, headers={"Accept": "text/html"})
        assert page.status == 401 and b"grey" not in page.body and b"Sign in" in page.body
    wrong = server.ask("POST", "/login", b"token=wrong&to=/", token=None, headers={
        "Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"})  # fmt: skip
    assert wrong.status == 401 and "set-cookie" not in wrong.headers
    browser = Browser(server)
    assert OWNER not in browser.cookie
    assert b"heron" in browser.get("/note/a").body
    for to in ("//evil.example/", "/\\evil.example", "https://evil.example", "", "/\r\nX: y"):
        assert browser.post("/login", token=OWNER, to=to).headers["location"] == "/"
    browser.post("/logout")
    assert browser.get("/").status == 401


def test_results_begin_with_the_notes_whose_names_match_also_without_the_script(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    server.api("PUT", "/memories/birds/heron", {"content": "It stands in the pond."})
    browser = Browser(server)
    for path in ("/?q=heorn", "/search?q=heorn"):
        page = browser.get(path).body.decode()
        assert "Named so" in page and "/note/birds/heron" in page
    assert "Named so" not in browser.get("/search?q=pond").body.decode()


def test_a_session_ends_with_its_token(serve: Callable[..., Served]) -> None:
    server = serve()
    browser = Browser(server, server.new_token("reader"))
    assert browser.get("/").status == 200
    assert browser.get("/doctor").status == 403 and b">Doctor<" not in browser.get("/").body
    (server.config / "simplemem" / "tokens.json").write_text("[]")
    assert browser.get("/").status == 401


def test_a_token_that_signs_in_often_ends_its_own_sessions_only(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    reader = server.new_token("reader")
    owner = Browser(server)
    several = [Browser(server, reader) for _ in range(21)]
    assert [browser.get("/tags").status for browser in several] == [401] + [200] * 20
    assert owner.get("/tags").status == 200


def test_two_servers_of_one_machine_keep_their_sign_ins_apart(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    one, other = serve(), serve(vault=tmp_path / "other")
    first, second = Browser(one), Browser(other)
    assert first.cookie.startswith(f"simplemem-{one.port}=")
    assert second.cookie.startswith(f"simplemem-{other.port}=")
    first.cookie = second.cookie = (
        f"{first.cookie}; {second.cookie}"  # a browser sends both to both
    )
    assert second.post("/logout").headers["set-cookie"].startswith(f'simplemem-{other.port}=""')
    assert (first.get("/tags").status, second.get("/tags").status) == (200, 401)


def test_behind_tls_the_cookie_is_bound_to_its_host(serve: Callable[..., Served]) -> None:
    server = serve("--behind-proxy")
    browser = Browser(server)
    assert browser.cookie.startswith(f"__Host-simplemem-{server.port}=")
    assert browser.get("/tags").status == 200
    forgotten = browser.post("/logout").headers["set-cookie"]
    assert {"Path=/", "Secure"} <= set(forgotten.split("; ")) and "Domain" not in forgotten


def test_a_hostile_note_is_words_and_its_page_runs_nothing(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    (tmp_path / "vault").mkdir(exist_ok=True)
    (tmp_path / "vault" / "evil.md").write_text(HOSTILE, encoding="utf-8")
    browser = Browser(server)
    for path in (
        "/note/evil",
        "/",
        "/?q=title",
        "/search?q=mind+code",
        "/tags",
        "/history/evil",
        "/notes",
    ):
        page = browser.get(path)
        assert page.status == 200, path
        policy = page.headers["content-security-policy"]
        assert (
            "default-src 'none'" in policy
            and "unsafe" not in policy
            and "frame-ancestors 'none'" in policy
        )
        scripts = re.findall(r"<script[^>]*>", page.body.decode())
        for script in scripts:
            own = re.fullmatch(
                r'<script src="/static/([a-z/-]+\.js)\?v=[0-9a-f]{12}" defer>', script
            )
            assert own is not None, script
            assert STATIC.joinpath(own[1]).is_file(), script
        text = page.body.decode()
        assert not re.search(r"<(?:img|i|b)[ >]", text), path
        assert not re.search(r"""<[^>]*\s(?:on\w+|style)\s*=""", re.sub(r'"[^"]*"', '""', text)), (
            path
        )
        assert not re.search(
            r"""(?:href|src|action)="(?!/|#|data:,"|http://evil\.example(?:/y\.png)?" (?:title="t" )?rel=)""",
            text,
        ), path


def test_undo_asks_for_the_right_to_write_and_for_a_form_of_the_page(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    server.tool("create_memory", name="a", content="of an agent")
    version = server.api("GET", "/history/a").data["versions"][0]["version"]
    reader = Browser(server, server.new_token("reader"))
    assert b"of an agent" in reader.get("/").body and b">Undo<" not in reader.get("/").body
    assert reader.post("/undo", version=version).status == 403
    owner = Browser(server)
    assert owner.post("/undo", origin=None, version=version).status == 403
    assert owner.post("/undo", origin="http://evil.example", version=version).status == 403
    assert owner.post("/undo", version="a").status == 400
    assert server.api("GET", "/memories/a").status == 200
    assert b">Undo<" in owner.get("/").body
    assert owner.post("/undo", version=version).status == 303
    assert server.api("GET", "/memories/a").status == 404
    assert owner.get("/note/a").status == 404


def test_changes_in_a_browser_are_by_a_person_and_those_with_a_token_by_an_agent(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    for name in ("a", "b"):
        server.tool("create_memory", name=name, content="of an agent")
    versions = {
        name: server.api("GET", f"/history/{name}").data["versions"][0]["version"]
        for name in ("a", "b")
    }
    assert Browser(server).post("/undo", version=versions["a"]).status == 303
    form = urlencode({"version": versions["b"]}).encode()
    headers = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
    assert server.ask("POST", "/undo", form, headers=headers).status == 303

    browser = Browser(server)
    note = json.dumps({"content": "of a person"}).encode()
    headers = {
        "Content-Type": "application/json",
        "Cookie": browser.cookie,
        "Origin": f"http://127.0.0.1:{server.port}",
    }
    created = server.ask("PUT", "/api/v1/memories/c", note, token=None, headers=headers)
    assert created.status == 201

    log = (tmp_path / "vault" / ".simplemem" / "history" / "log.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    kinds = [(line["path"], line["tool"], line["kind"]) for line in lines]
    assert kinds == [
        ("a.md", "create_memory", "agent"),
        ("b.md", "create_memory", "agent"),
        ("a.md", "page", "human"),
        ("b.md", "page", "agent"),
        ("c.md", "create_memory", "human"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("![" * 190_000, marks=pytest.mark.slow),
        "| a | b | c |\n|---|---|---|\n" + "| x | y | z |\n" * 10_000,
        pytest.param("[a](b" * 70_000, marks=pytest.mark.slow),
    ],
    ids=["images", "table", "links"],
)
def test_a_note_that_is_slow_to_render_does_not_hold_up_the_server(
    serve: Callable[..., Served], tmp_path: Path, text: str
) -> None:
    server = serve()
    (tmp_path / "vault").mkdir(exist_ok=True)
    (tmp_path / "vault" / "slow.md").write_text(text)
    browser = Browser(server)
    assert server.api("GET", "/memories/slow").status == 200
    views: list[Answer] = []
    view = threading.Thread(target=lambda: views.append(browser.get("/note/slow")))

    longest_wait = 0.0
    view_began = time.monotonic()
    view.start()
    while view.is_alive():
        began = time.monotonic()
        assert server.ask("GET", "/health", token=None).status == 200
        longest_wait = max(longest_wait, time.monotonic() - began)
    view_took = time.monotonic() - view_began

    assert longest_wait < view_took / 2  # the server went on while the note was rendered
    assert views[0].status == 200
    assert views[0].body == browser.get("/note/slow").body


def test_half_a_link_in_a_property_is_shown_as_text(serve: Callable[..., Served]) -> None:
    server = serve()
    server.api(
        "PUT",
        "/memories/a",
        {"content": "x", "metadata": {"see": "[[b#c|d]] and [[" + "e" * 60_000}},
    )
    page = Browser(server).get("/note/a")
    link = b'<a href="/edit/b" class="wikilink unresolved" title='
    assert link in page.body and b">b</a> and [[ee" in page.body


def test_a_link_in_a_property_leads_to_its_note_whatever_the_name(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    see = ["[[people/O'Neil & Co|Neil]] <b>", "[[a#b]]"]
    server.api("PUT", "/memories/a", {"content": "x", "metadata": {"see": see}})
    page = Browser(server).get("/note/a").body.decode()
    missing = 'class="wikilink unresolved" title="No note has this name yet: create it"'
    assert (
        f'<li><a href="/edit/people/O%27Neil%20%26%20Co" {missing}>O&#39;Neil &amp; Co</a> &lt;b&gt;'
        '</li><li><a href="/note/a#h-b" class="wikilink">a</a></li>'
    ) in page


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "[[Ada Lovelace|Ada]]",
            '<p><a href="/v/note/Ada%20Lovelace" class="wikilink">Ada</a></p>',
        ),
        ("[[a/b#c]]", '<p><a href="/v/note/a/b#h-c" class="wikilink">a/b › c</a></p>'),
        ("#todo/now, a#b", '<p><a href="/v/tags/todo/now" class="tag">#todo/now</a>, a#b</p>'),
        ("%%not said%% said ^mark-1", '<p id="b-mark-1">said</p>'),
        (
            "- [x] done",
            '<ul>\n<li class="task" data-line="1"><input type="checkbox" disabled checked'
            ' aria-label="done"> done</li>\n</ul>',
        ),
        (
            "[n](notes/a%20b.md#h)",
            '<p><a href="/v/note/notes/a%20b#h-h" class="wikilink">n</a></p>',
        ),
        (
            "> [!tip] Go\n> on",
            '<div class="callout callout-tip" data-callout="tip">\n'
            '<p class="callout-title">Go</p>\n<p>on</p>\n</div>',
        ),
    ],
)
def test_markdown_is_shown_as_obsidian_means_it(text: str, html: str) -> None:
    assert render_note(text, "/v").strip() == html


def test_scores_on_the_page_fall_from_hit_to_hit(serve: Callable[..., Served]) -> None:
    server = serve()
    texts = (
        "The boiler loses pressure in winter.",
        "Pressure in the tyres of the car.",
        "Winter",
        "A car in winter.",
    )
    for number, text in enumerate(texts):
        server.api("PUT", f"/memories/n{number}", {"content": text})
    browser = Browser(server)
    for query in ("car pressure winter", "which car loses pressure in winter?"):
        page = browser.get(f"/search?{urlencode({'q': query, 'explain': 1})}").body.decode()
        scores = [float(score) for score in re.findall(r"Score ([0-9.]+)", page)]
        assert len(scores) > 2 and scores == sorted(scores, reverse=True)
    unknown_tag = browser.get(
        f"/search?{urlencode({'q': 'which passport goes with the car to Patagonia?'})}"
    ).body.decode()
    assert "Nothing found; these are the nearest." in unknown_tag


def test_scores_and_their_reasons_are_computed_and_shown_only_if_asked_for(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    server.api("PUT", "/memories/heron", {"content": "It stands in the pond."})
    browser = Browser(server)
    for path in ("/?q=pond", "/search?q=pond"):
        page = browser.get(path).body.decode()
        assert "/note/heron" in page and "Score" not in page
        link = re.search(r'href="(/\?q=pond&amp;explain=1)"', page)
        assert link is not None
    explained = browser.get("/?q=pond&explain=1").body.decode()
    assert "Score" in explained and "<dt>" in explained


def test_the_words_of_the_query_are_marked_in_the_hits_also_in_hostile_ones(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    content = "Two herons <b>stand</b> in the pond, <script>heron</script>."
    server.api("PUT", "/memories/birds", {"content": content})
    page = Browser(server).get("/search?q=the+heron").body.decode()
    assert "<mark>herons</mark>" in page and "<mark>the</mark>" not in page
    assert "<b>" not in page and "<script>" not in page


def test_an_unknown_address_is_a_page_with_search_for_a_browser_and_json_for_a_program(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    browser = Browser(server)
    page = browser.get("/no/such/page")
    assert page.status == 404 and page.headers["content-type"].startswith("text/html")
    assert b'type="search"' in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert browser.get("/api/v1/nothing").problem["code"] == "not_found"
    assert server.ask("GET", "/no/such/page").problem["code"] == "not_found"
    signed_out = server.ask("GET", "/no/such/page", token=None, headers={"Accept": "text/html"})
    assert signed_out.status == 404 and b'type="search"' not in signed_out.body


def test_a_vault_that_a_token_does_not_see_has_no_error_page_either(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    folders = ["--vault", f"one={tmp_path / 'one'}", "--vault", f"two={tmp_path / 'two'}"]
    server = serve(*folders)
    browser = Browser(server, server.new_token("reader", "--vault", "one"), path="/one")
    assert b'action="/one/"' in browser.get("/one/nothing").body
    hidden = browser.get("/two/nothing")
    absent = browser.get("/three/nothing")
    assert hidden.status == absent.status == 404 and hidden.body == absent.body
