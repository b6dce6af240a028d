"""The default tools over REST, as programs call them: on a server process, by requests of their own making."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pygit2
import pytest

from tests.web.conftest import Served, running

API = "/api/v1"
NAMES = [
    "tea",
    "projects/apollo",
    "a b/c d",
    "ünï çøde/日本 語",
    "50% & more; a=b+c",
    "health",
    "it's (here)",
    "login",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("rest")
    with running(root) as served:
        yield served


def at(name: str, room: str = "memories") -> str:
    return f"{API}/{room}/{quote(name, safe='')}"


def put(server: Served, name: str, content: str = "words", **more: object) -> str:
    """A note, and its ETag."""
    answer = server.ask("PUT", at(name), {"content": content, **more})
    assert answer.status in (200, 201), answer.body
    return answer.headers["etag"]


@pytest.mark.parametrize("ending", ["", ".md"])
@pytest.mark.parametrize("name", NAMES)
def test_a_memory_is_put_and_read_by_any_name(server: Served, name: str, ending: str) -> None:
    created = server.ask(
        "PUT",
        at(name + ending),
        {"content": f"about {name}", "metadata": {"tags": {"of": "names"}}},
    )
    assert created.status in (200, 201) and created.data["path"] == f"{name}.md"
    read = server.ask("GET", at(name + ending))
    assert (read.status, read.data["name"], read.data["content"].strip()) == (
        200,
        name,
        f"about {name}",
    )
    assert read.headers["etag"] == created.headers["etag"] == f'"{read.data["sha256"]}"'
    assert server.ask("GET", created.headers["location"]).body == read.body
    assert server.ask("HEAD", at(name)).headers["etag"] == read.headers["etag"]


def test_what_is_new_is_201_and_what_is_replaced_200(server: Served) -> None:
    assert [
        server.ask("PUT", at("codes"), {"content": content}).status for content in ("one", "two")
    ] == [201, 200]
    created = server.ask("POST", f"{API}/memories", {"name": "codes/by post", "content": "x"})
    assert (created.status, created.headers["location"]) == (201, f"{API}/memories/codes/by%20post")
    again = server.ask("POST", f"{API}/memories", {"name": "codes/by post", "content": "y"})
    assert again.status == 409 and again.problem["code"] == "already_exists"


def test_a_note_is_markdown_for_whoever_asks_for_that(server: Served) -> None:
    text = b"---\ntags: [drinks]\n---\n# Oolong\n\nFrom [[Taiwan]].\n"
    assert server.ask("PUT", at("drinks/oolong"), text, Content_Type="text/markdown").status == 201
    read = server.ask("GET", at("drinks/oolong"), Accept="text/markdown")
    assert (
        read.headers["content-type"].startswith("text/markdown")
        and read.headers["vary"] == "Accept"
    )
    assert read.body.startswith(b"---\n") and read.body.endswith(b"# Oolong\n\nFrom [[Taiwan]].\n")
    assert server.ask("GET", at("drinks/oolong")).data["tags"] == ["drinks"]


def test_a_known_etag_is_304_without_a_body(server: Served) -> None:
    etag = put(server, "known")
    for kind in ("application/json", "text/markdown"):
        for condition in (etag, f"W/{etag}", f'"0", {etag}', "*"):
            answer = server.ask("GET", at("known"), Accept=kind, If_None_Match=condition)
            assert (answer.status, answer.headers["etag"], answer.body) == (304, etag, b"")
        assert server.ask("GET", at("known"), Accept=kind, If_None_Match='"0"').status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_if_match_refuses_what_has_changed(server: Served, method: str) -> None:
    name = f"matched by {method}"
    old, new = put(server, name, "one"), put(server, name, "two")
    body = None if method == "DELETE" else {"content": "three"}
    refused = server.ask(method, at(name), body, If_Match=old)
    assert refused.status == 412 and refused.problem["code"] == "conflict"
    assert refused.problem["current_sha256"] == new.strip('"')
    made_up = server.ask(method, at(name), body, If_Match='"no hash"')
    assert made_up.status == 412 and made_up.problem["code"] == "invalid"
    assert server.ask("GET", at(name)).headers["etag"] == new
    done = server.ask(method, at(name), body, If_Match=new)
    assert done.status == 200 and done.headers.get("etag") != new


def test_a_hash_in_the_body_is_a_conflict_in_the_words_of_the_tool(server: Served) -> None:
    old = put(server, "by body", "one").strip('"')
    put(server, "by body", "two")
    refused = server.ask("PATCH", at("by body"), {"append": "three", "if_sha256": old})
    assert refused.status == 409 and "diff" in refused.problem


def test_if_match_of_what_is_not_there_writes_nothing(server: Served) -> None:
    for expected in ("*", '"' + "0" * 64 + '"'):
        assert (
            server.ask("PUT", at("never there"), {"content": "x"}, If_Match=expected).status == 412
        )
    assert server.ask("GET", at("never there")).problem["code"] == "not_found"


def test_if_none_match_makes_only_what_is_new(server: Served) -> None:
    assert server.ask("PUT", at("only new"), {"content": "one"}, If_None_Match="*").status == 201
    refused = server.ask("PUT", at("only new"), {"content": "two"}, If_None_Match="*")
    assert refused.status == 412 and refused.problem["code"] == "already_exists"
    assert server.ask("GET", at("only new")).data["content"].strip() == "one"
    assert server.ask("PUT", at("only new"), {"content": "two"}, If_None_Match='"0"').status == 400


def test_with_if_match_properties_that_are_not_named_stay(server: Served) -> None:
    etag = put(server, "header", "one", metadata={"color": "blue"})
    assert server.ask("PUT", at("header"), {"content": "two"}, If_Match=etag).status == 200
    assert server.ask("GET", at("header")).data["frontmatter"]["color"] == "blue"


def test_the_tools_have_their_routes(server: Served) -> None:
    notes_before = server.ask("GET", f"{API}/stats").data["notes"]
    put(server, "way/a", "Balloons fly over [[way/b]].")
    put(server, "way/b", "Where balloons land.")
    hits = [server.ask("GET", f"{API}/search?q=balloons&prefix=way/&limit=5")]
    hits.append(
        server.ask("POST", f"{API}/search", {"query": "balloons", "prefix": "way/", "limit": 5})
    )
    assert [{hit["name"] for hit in answer.data["hits"]} for answer in hits] == [
        {"way/a", "way/b"}
    ] * 2
    assert (
        "land"
        in server.ask("GET", f"{API}/context?query=balloons&prefix=way/&budget_tokens=200").data[
            "text"
        ]
    )
    assert (
        server.ask("GET", at("way/b", "backlinks") + "?kinds=link").data["items"][0]["name"]
        == "way/a"
    )
    tagged = server.ask("PATCH", at("way/a", "tags"), {"tags": {"status": "done"}})
    assert tagged.data["tag_map"] == {"status": "done"}
    assert (
        server.ask("GET", f"{API}/memories?tags=%7B%22status%22%3A%22done%22%7D").data["total"] == 1
    )
    assert server.ask("GET", f"{API}/tags").data["tags"]["status/done"] == 1
    moved = server.ask("POST", at("way/b", "move"), {"new_name": "way/c"})
    assert (
        moved.data["rewritten"] == ["way/a"]
        and "way/c" in server.ask("GET", at("way/a")).data["content"]
    )
    versions = server.ask("GET", at("way/c", "history") + "?diff=true").data["versions"]
    assert (versions[0]["who"], versions[0]["tool"]) == ("owner", "move_memory")
    assert server.ask("POST", f"{API}/undo", {"version": versions[0]["version"]}).status == 200
    assert server.ask("GET", at("way/b")).status == 200
    deleted = server.ask("DELETE", at("way/b"))
    assert deleted.status == 200 and server.ask("GET", at("way/b")).status == 404
    assert (
        server.ask("POST", f"{API}/undo", {"version": deleted.data["version"]}).data["name"]
        == "way/b"
    )
    assert server.ask("GET", f"{API}/stats").data["notes"] == notes_before + 2
    called = server.ask("POST", f"{API}/tools/read_memory", {"name": "way/a"})
    assert (
        called.data["name"] == "way/a"
        and server.ask("POST", f"{API}/tools/nothing", {}).status == 404
    )


def test_a_list_goes_on_by_its_cursor(server: Served) -> None:
    all_pages = [put(server, f"pages/{number}") for number in range(7)]
    names, cursor = [], ""
    while cursor is not None:
        page = server.ask(
            "GET",
            f"{API}/memories?prefix=pages/&limit=3&sort=name"
            + f"&cursor={quote(cursor)}" * bool(cursor),
        ).data
        names += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert names == [f"pages/{number}" for number in range(len(all_pages))]


BAD = [
    ("PUT", at("bad"), b"{", "application/json", 400),
    ("PUT", at("bad"), b"[]", "application/json", 400),
    ("PUT", at("bad"), b"[" * 100_000, "application/json", 400),
    ("PUT", at("bad"), b'{"content": ' + b"9" * 5000 + b"}", "application/json", 400),
    ("PUT", at("bad"), b'{"content": "\\ud800"}', "application/json", 400),
    ("PUT", at("bad"), b'{"content": "a", "contents": "b"}', "application/json", 400),
    ("PUT", at("bad"), b'{"content": {"a": 1}}', "application/json", 400),
    ("PUT", at("bad"), b'{"content": "a", "metadata": {"a": {"b": {"c": 1}}}}', "application/json", 400),
    ("PUT", at("bad"), b"\xff\xfe", "text/markdown", 400),
    ("PUT", at("bad"), b"content=x", "application/x-www-form-urlencoded", 415),
    ("PUT", at("bad"), b'{"content": "x"}', "text/plain", 415),
    ("PUT", at("../bad"), b'{"content": "x"}', "application/json", 400),
    ("PUT", at("a/../../bad"), b'{"content": "x"}', "application/json", 400),
    ("PUT", at("/etc/bad"), b'{"content": "x"}', "application/json", 400),
    ("PUT", at("bad\x00"), b'{"content": "x"}', "application/json", 400),
    ("PUT", at(".simplemem/bad"), b'{"content": "x"}', "application/json", 400),
    ("PUT", at("x" * 5000), b'{"content": "x"}', "application/json", 413),
    ("PUT", f"{API}/memories/", b'{"content": "x"}', "application/json", 400),
    ("POST", f"{API}/memories", b'{"name": "\\ud800", "content": "x"}', "application/json", 400),
    ("POST", f"{API}/memories/bad", b"{}", "application/json", 405),
    ("POST", f"{API}/undo", b"{}", "application/json", 400),
    ("GET", f"{API}/search?limit=many", b"", "", 400),
    ("GET", f"{API}/memories?cursor=nonsense", b"", "", 400),
    ("GET", f"{API}/memories/a%0Ab", b"", "", 404),
    ("GET", f"{API}/nothing", b"", "", 404),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "kind", "status"), BAD)
def test_bad_input_is_a_problem_document_and_writes_nothing(
    server: Served, method: str, path: str, body: bytes, kind: str, status: int
) -> None:
    history_before = server.ask("GET", f"{API}/history?limit=1").body
    answer = server.ask(method, path, body, Content_Type=kind)
    assert (answer.status, bool(answer.problem["detail"])) == (status, True)
    assert server.ask("GET", f"{API}/history?limit=1").body == history_before


def test_what_a_path_takes_is_told_with_405(server: Served) -> None:
    answer = server.ask("OPTIONS", at("x"))
    assert answer.status == 405 and {*answer.headers["allow"].split(", ")} == {
        "GET",
        "HEAD",
        "PUT",
        "PATCH",
        "DELETE",
    }


def test_notes_of_a_hand_that_hold_no_json_are_read(server: Served) -> None:
    vault = server.config.parent / "vault"
    (vault / "odd.md").write_bytes(b"---\nx: .nan\ny: -.inf\n---\nnumbers\n")
    (vault / "latin.md").write_bytes(b"caf\xe9 cr\xe8me\n")
    assert server.ask("GET", at("odd")).data["frontmatter"] == {"x": None, "y": None}
    assert "cr" in server.ask("GET", at("latin")).data["content"]
    assert server.ask("GET", at("odd", "history")).data == {"versions": []}
    assert server.ask("GET", f"{API}/stats").status == 200


def test_rights_are_those_of_the_token(server: Served) -> None:
    reader = server.new_token("reader")
    put(server, "rights", "for all to read")
    assert server.ask("GET", at("rights"), token=reader).status == 200
    for method, path in (("PUT", at("rights")), ("DELETE", at("rights")), ("POST", f"{API}/undo")):
        refused = server.ask(method, path, {"content": "x"}, token=reader)
        assert refused.status == 403 and "insufficient_scope" in refused.headers["www-authenticate"]
    assert (
        server.ask("POST", f"{API}/tools/delete_memory", {"name": "rights"}, token=reader).status
        == 403
    )
    assert server.ask("GET", at("rights"), token=None).status == 401
    assert "vault" not in server.ask("GET", f"{API}/stats", token=reader).data


def test_where_nothing_may_be_deleted_there_is_no_such_method(tmp_path: Path) -> None:
    with running(tmp_path, "--no-delete") as server:
        put(server, "kept")
        assert server.ask("DELETE", at("kept")).status == 405


def test_two_vaults_have_their_own_addresses(tmp_path: Path) -> None:
    options = [
        option for name in ("work", "home") for option in ("--vault", f"{name}={tmp_path / name}")
    ]
    with running(tmp_path, *options) as server:
        created = server.ask("PUT", f"/work{API}/memories/only%20here", {"content": "x"})
        assert (created.status, created.headers["location"]) == (
            201,
            f"/work{API}/memories/only%20here",
        )
        assert server.ask("GET", f"/home{API}/memories/only%20here").status == 404
        assert server.ask("GET", f"/home{API}/openapi.json").data["servers"] == [{"url": "/home"}]


def test_an_answer_of_a_branch_names_its_commit_and_is_never_of_before_the_one_asked_for(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    pygit2.init_repository(str(tmp_path / "truth.git"), bare=True)
    env = {
        "SIMPLEMEM_BRANCH_REPOSITORY": str(tmp_path / "truth.git"),
        "SIMPLEMEM_EMBED_PROVIDER": "none",
    }
    (tmp_path / "here").mkdir()
    served = serve(vault=tmp_path / "here", env=env)
    created = served.ask("PUT", "/api/v1/memories/Plum", {"content": "Blue."})
    commit = created.headers["simplemem-commit"]
    assert commit == str(
        pygit2.Repository(str(tmp_path / "truth.git")).references["refs/heads/main"].target
    )
    found = served.ask("GET", "/api/v1/search?query=blue", headers={"Simplemem-Commit": commit})
    assert ([hit["name"] for hit in found.data["hits"]], found.headers["simplemem-commit"]) == (
        ["Plum"],
        commit,
    )
    late = served.ask("GET", "/api/v1/search?query=blue", headers={"Simplemem-Commit": "1" * 40})
    assert (late.status, late.problem["code"]) == (503, "unavailable")


def test_a_write_by_a_token_that_may_only_read_says_what_to_ask_for(server: Served) -> None:
    token = server.new_token("a reader of notes")
    put(server, "read only", "one")
    refused = server.ask("PATCH", at("read only"), {"append": "two"}, token=token)
    assert refused.status == 403
    assert "simplemem token new NAME --write" in refused.problem["hint"]


def test_errors_over_rest_say_what_to_do_next(server: Served) -> None:
    put(server, "steps/one", "one", metadata={"status": "open"})
    put(server, "steps/two", "two")
    edits = [{"old": "status: open", "new": "status: done"}]
    in_header = server.ask("PATCH", at("steps/one"), {"edits": edits})
    assert "metadata=" in in_header.problem["hint"]
    conflict = server.ask("POST", at("steps/one", "move"), {"new_name": "steps/two"})
    assert "Choose another name" in conflict.problem["hint"]
    never = server.ask("POST", f"{API}/undo", {"version": "999999"})
    assert "no version" in never.problem["detail"]
    assert "newest version" in never.problem["hint"]
    server.ask("DELETE", at("steps/two"))
    missing = server.ask("GET", at("steps/two"))
    assert "steps/two was deleted" in missing.problem["detail"]
    version = missing.problem["version"]
    assert missing.problem["hint"] == f'POST /api/v1/undo with version="{version}" restores it.'


def test_hints_over_rest_name_routes_where_those_of_a_tool_name_tools(server: Served) -> None:
    put(server, "hints/one", "one")
    answer = server.ask("GET", at("hints/one", "history"))
    assert answer.data["hint"] == (
        "Call POST /api/v1/undo with version to undo a change,"
        " GET /api/v1/memories/{name} to read a version."
    )
    existing = server.ask("POST", f"{API}/memories", {"name": "hints/one", "content": "two"})
    assert existing.problem["hint"].startswith("Use PATCH /api/v1/memories/{name} to change it")
    half = {"by": "ida (x)"}
    missing = server.ask("POST", f"{API}/undo", half)
    assert 'POST /api/v1/undo with by="ida (x)", since="yesterday"' in missing.problem["hint"]
    assert "undo_change(" in server.tool("undo_change", **half).problem["hint"]


def test_an_unknown_path_says_where_the_routes_are_described(server: Served) -> None:
    for method in ("GET", "POST"):
        refused = server.ask(method, f"{API}/memoirs")
        assert refused.status == 404 and refused.problem["code"] == "not_found"
        assert "GET /api/v1/openapi.json" in refused.problem["hint"]


def test_a_token_for_a_folder_breaks_no_link_from_outside_it(server: Served) -> None:
    put(server, "team/plan", "The plan.")
    put(server, "team/notes", "See [[team/plan]].")
    put(server, "quetzal", "See [[team/plan]].")
    token = server.new_token("the team", "--write", "--folder", "team")
    refused = server.ask("POST", at("team/plan", "move"), {"new_name": "team/goals"}, token=token)
    assert refused.status == 403
    assert "cannot be moved" in refused.problem["detail"]
    assert "quetzal" not in refused.body.decode()
    assert "[[team/plan]]" in server.ask("GET", at("quetzal")).data["content"]

    moved = server.ask("POST", at("team/notes", "move"), {"new_name": "team/minutes"}, token=token)
    assert moved.status == 200
    renamed = server.ask("POST", at("team/plan", "move"), {"new_name": "team/goals"})
    assert sorted(renamed.data["rewritten"]) == ["quetzal", "team/minutes"]


def test_the_first_request_of_a_vault_that_was_never_indexed_finds_all_of_it(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    for number in range(20):
        (vault / f"n{number}.md").write_text(
            f"# Crane {number}\n\nThe crane of pier{number} was greased.\n"
        )
    found = serve().ask("GET", f"{API}/search?query=crane%20of%20pier17%20greased").data
    assert found["hits"][0]["name"] == "n17"
    assert found["index"]["state"] == "ready" and found["index"]["notes"] == 20


def test_a_put_without_a_condition_says_what_it_replaced_and_how_to_undo_it(server: Served) -> None:
    server.ask("PUT", at("replaced"), {"content": "one"})
    data = server.ask("PUT", at("replaced"), {"content": "two"}).data
    assert any(
        "this replaced a text" in warning and "sha256" in warning for warning in data["warnings"]
    )
    assert server.ask("POST", "/api/v1/undo", {"version": data["version"]}).status == 200
    assert "one" in server.ask("GET", at("replaced")).data["content"]
