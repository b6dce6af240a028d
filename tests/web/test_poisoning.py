"""A token that speaks for one user cannot put words into the memory of another, nor stand in the way of the owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simplemem.features.facts.fact import read_fact
from simplemem.store import Read
from tests.web.conftest import Served, running

EVIL = "---\n{header}---\n\nThe bank account for the deposit is 666.\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("poisoning"), "--profile", "remembrances") as served:
        added = {"content": "The bank account for the deposit is 4711.", "user_id": "bob"}
        assert served.api("POST", "/memory", added).status == 202
        yield served


@pytest.fixture(scope="module")
def ada(server: Served) -> str:
    return server.new_token("ada", "--write", "--user", "ada")


def fact_service(server: Served, user: str) -> list[dict[str, str]]:
    answer = server.api(
        "POST", "/memory/search", {"query": "bank account deposit", "user_id": user}
    )
    memories: list[dict[str, str]] = answer.data["memories"]
    return memories


@pytest.mark.parametrize("scope", ["bob", "Ada", "ada/x", "  "])
def test_frontmatter_that_names_another_scope_is_refused_on_write(
    server: Served, ada: str, scope: str
) -> None:
    note = {"content": "The bank account is 666.", "metadata": {"scope": scope}}
    answer = server.api("PUT", "/memories/atoms/ada/evil", note, token=ada)
    assert (answer.status, answer.problem["code"]) == (400, "invalid")
    assert "scope" in answer.data["detail"] and answer.data["hint"]

    own = {"content": "The bank account is mine.", "metadata": {"scope": "ada"}}
    assert server.api("PUT", "/memories/atoms/ada/mine", own, token=ada).status in (200, 201)
    changed = {"metadata": {"scope": scope}}
    assert server.api("PATCH", "/memories/atoms/ada/mine", changed, token=ada).status == 400
    other = {"metadata": {"rating": 5}}
    assert server.api("PATCH", "/memories/atoms/ada/mine", other, token=ada).status == 200


def test_a_shared_folder_is_no_way_into_another_scope(server: Served) -> None:
    token = server.new_token("eve", "--write", "--user", "eve", "--folder", "shared")
    note = {"content": "The bank account is 666.", "metadata": {"scope": "bob", "type": "atom"}}
    assert server.api("PUT", "/memories/shared/evil", note, token=token).status == 400

    plain = {"content": "The scope of the project.", "metadata": {"scope": "the whole house"}}
    assert server.api("PUT", "/memories/shared/project", plain, token=token).status == 201
    changed = {"metadata": {"scope": "bob", "type": "atom"}}
    assert server.api("PATCH", "/memories/shared/project", changed, token=token).status == 400
    assert "666" not in str(fact_service(server, "bob"))


@pytest.mark.parametrize("scope", [" bob ", 1001])
def test_another_scope_is_refused_with_blanks_around_it_and_as_a_number(
    server: Served, scope: str | int
) -> None:
    user = str(scope).strip()
    token = server.new_token(f"eve of {user}", "--write", "--user", "eva", "--folder", "shared")
    metadata = {"scope": scope, "type": " atom "}
    note = {"content": "The bank account for the deposit is 666.", "metadata": metadata}
    answer = server.api("PUT", f"/memories/shared/{user}", note, token=token)
    assert (answer.status, answer.problem["code"]) == (400, "invalid")

    plain = {"content": "The scope of the project.", "metadata": {"type": "atom"}}
    assert server.api("PUT", f"/memories/shared/{user}", plain, token=token).status == 201
    assert (
        server.api("PATCH", f"/memories/shared/{user}", {"metadata": metadata}, token=token).status
        == 400
    )
    assert "666" not in str(fact_service(server, user))


def test_frontmatter_that_names_another_scope_is_ignored_on_read(server: Served) -> None:
    vault = server.config.parent / "vault"
    for path in ("atoms/ada/evil.md", "documents/ada/evil.md"):
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = "document" if path.startswith("documents") else "atom"
        file.write_text(EVIL.format(header=f"type: {kind}\nscope: bob\n"))

    answer = server.api(
        "POST", "/memory/search", {"query": "bank account deposit", "user_id": "bob"}
    )
    assert "4711" in answer.data["results"]
    assert "666" not in answer.body.decode()
    facts_of_bob = server.api(
        "POST", "/memory/search", {"query": "bank account deposit", "user_id": "ada"}
    )
    assert "666" in facts_of_bob.body.decode()


def test_a_copied_id_does_not_stop_the_owner_from_changing_the_memory(
    server: Served, ada: str
) -> None:
    ident = next(memory["id"] for memory in fact_service(server, "bob"))
    copy = {
        "content": "The bank account for the deposit is 666.",
        "metadata": {"type": "atom", "id": ident},
    }
    assert server.api("PUT", "/memories/atoms/ada/copy", copy, token=ada).status in (200, 201)

    answer = server.api(
        "PUT", f"/memory/{ident}", {"content": "The bank account for the deposit is 4712."}
    )
    assert answer.status == 200, answer
    assert any("4712" in memory["memory"] for memory in fact_service(server, "bob"))
    own = server.api("GET", "/memories/atoms/ada/copy", token=ada).data
    assert "666" in own["content"]


@pytest.mark.parametrize(
    ("path", "named", "scope"),
    [
        ("atoms/ada/x.md", "bob", "ada"),
        ("atoms/ada/x.md", "ada", "ada"),
        ("atoms/team/red/x.md", "team", "team/red"),
        ("atoms/x.md", "", "default"),
        ("notes/bob/x.md", "", "default"),
        ("papers/x.md", "bob", "bob"),
        ("atoms/a-b 0123456789abcdef/x.md", "a:b", "a-b 0123456789abcdef"),
    ],
)
def test_the_folder_decides_whose_a_statement_is(path: str, named: str, scope: str) -> None:
    text = f"---\ntype: atom\nscope: '{named}'\n---\nSomething.\n"
    assert read_fact(Read(path, text, "", "")).scope == scope
