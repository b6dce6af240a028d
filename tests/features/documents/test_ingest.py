"""What is ingested is a note with its original beside it, once. What it states becomes statements, and goes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import failing
from waiting import eventually
from web_of_files import WORD, Web, docx, pdf, web_server

from simplemem.errors import Invalid, SimplememError, TooLong, Unreadable
from simplemem.features.documents.memories import memory_service
from simplemem.features.documents.recall import RecallRequest, recall
from simplemem.features.documents.service import document_service
from simplemem.features.facts.service import fact_service
from simplemem.note.note import read_note
from simplemem.profiles.supermemento.tools import ingest_url
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.tools.session import Session
from simplemem.tools.tool import Caller

GUIDE = "# Release guide\n\nFreeze the ledger with the `amberlock` switch.\n\nI prefer releases on Tuesdays.\n"
LONG = (
    "The committee met for an hour, and Gudrun will bring the marmalade that she promised to all of us. "
    * 6
)


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@contextmanager
def opened(vault: Path, **settings: Any) -> Iterator[EnhancedStore]:
    chosen = {"embed": {"provider": "none"}, "documents": {"allow_private": True}, **settings}
    with EnhancedStore(vault, Settings.model_validate(chosen)) as store:
        yield store


@pytest.fixture
def store(vault: Path) -> Iterator[EnhancedStore]:
    with opened(vault) as one:
        yield one


def header(store: EnhancedStore, result: Any) -> dict[str, Any]:
    return dict(read_note((store.root / f"{result['name']}.md").read_bytes()).header.properties)


def body(store: EnhancedStore, result: Any) -> str:
    return read_note((store.root / f"{result['name']}.md").read_bytes()).content.strip()


def files(store: EnhancedStore) -> dict[str, bytes]:
    paths = (
        path for path in store.root.rglob("*") if path.is_file() and ".simplemem" not in path.parts
    )
    return {path.relative_to(store.root).as_posix(): path.read_bytes() for path in paths}


def stated(store: EnhancedStore, scope: str, *, expired: bool = False) -> list[str]:
    return sorted(fact.statement for fact in fact_service(store).facts(scope, expired=expired))


def test_a_text_is_a_note_that_says_what_it_is(store: EnhancedStore) -> None:
    result = document_service(store).ingest_text(
        "Tides\r\n\r\nHigh water at noon.\n", "alex", "Tide: tables"
    )
    assert (
        result["name"] == "documents/alex/Tide tables"
        and result["chunks"] == 1
        and not result["memories"]
    )
    assert (result["status"], result["content_type"], result["extraction"]) == (
        "done",
        "text",
        "rules",
    )
    properties = header(store, result)
    assert (
        list(properties)[:5] == ["title", "type", "id", "content_type", "status"]
        and properties["title"] == "Tide: tables"
    )
    assert (properties["type"], properties["id"], properties["scope"]) == (
        "document",
        result["id"],
        "alex",
    )
    assert properties.keys() == {
        *"title type id content_type status content_hash scope created modified".split()
    }
    assert body(store, result) == "Tides\n\nHigh water at noon."


def test_the_same_again_is_the_same_document_and_another_scope_has_its_own(
    store: EnhancedStore,
) -> None:
    first, original_files = (
        document_service(store).ingest_text(GUIDE, "alex", "The guide"),
        files(store),
    )
    again = document_service(store).ingest_text(GUIDE, "alex", "Another title")
    assert (
        again["id"] == first["id"]
        and again.get("duplicate")
        and not again["memories"]
        and files(store) == original_files
    )
    other = document_service(store).ingest_text(GUIDE, "maria", "The guide")
    assert other["id"] != first["id"] and "duplicate" not in other
    assert [document.id for document in document_service(store).documents("maria")] == [other["id"]]
    assert (
        document_service(store).ingest_text("Other words", "alex", "The guide")["name"]
        == "documents/alex/The guide"
    )


def test_what_a_document_states_in_the_first_person_is_a_statement_that_links_to_it(
    store: EnhancedStore,
) -> None:
    result = document_service(store).ingest_text(GUIDE, "alex", "The guide")
    atom = fact_service(store).find(result["memories"][0]["id"], "alex")
    assert (
        len(result["memories"]) == 1
        and header(store, result)["status"] == result["status"] == "done"
    )
    assert (
        atom.statement.rstrip(".") == "I prefer releases on Tuesdays"
        and atom.memory_type == "preference"
    )
    assert store.extension.resolve_links([(atom.source, atom.path)]) == [f"{result['name']}.md"]


@pytest.mark.parametrize(("title", "name"), [
    ("a/../../b", "a-..-..-b"), (".hidden", "hidden"), ("..", "Untitled"), ("con", "con_"), ("x [[y]] | z#1", "x y z-1"),
    ("  spaced\nout ", "spaced out"), ("", "Words of it"), ("🙂", "🙂"), ("x" * 200, "x" * 100),
])  # fmt: skip
def test_a_title_that_is_no_name_is_made_one(store: EnhancedStore, title: str, name: str) -> None:
    result = document_service(store).ingest_text("## Words of it\n\nrest", "alex", title)
    assert result["name"] == f"documents/alex/{name}" and result["title"] == (
        " ".join(title.split()) or "Words of it"
    )
    assert [path for path in files(store) if not path.startswith("documents/alex/")] == []


@pytest.mark.parametrize(("content", "scope", "title", "error"), [
    ("", "a", "", Invalid), (" \n", "a", "", Invalid), ("...", "a", "", Invalid), ("x\0", "a", "", Invalid),
    ("\ud800", "a", "", Invalid), ("x", "", "", Invalid), ("x", "a\nb", "", Invalid), ("x", "a" * 201, "", TooLong),
    ("x", "a", "t" * 201, TooLong), ("x", "a", "t\0", Invalid), ("x" * 1_000_001, "a", "", TooLong),
])  # fmt: skip
def test_what_is_refused_leaves_nothing(
    store: EnhancedStore, content: str, scope: str, title: str, error: type[SimplememError]
) -> None:
    with pytest.raises(error):
        document_service(store).ingest_text(content, scope, title)
    if not title:
        with pytest.raises(error):
            memory_service(store).add(content, scope)
    assert not files(store)


@pytest.mark.parametrize(("name", "data", "content_type", "text"), [
    ("Tides.pdf", pdf("High water: 06:12."), "pdf", "High water: 06:12."),
    ("Crane.docx", docx("# Crane", "It lifts 12 t."), "text", "# Crane\n\nIt lifts 12 t."),
    ("Fog.html", b"<p>Ferries stop.</p>", "text", "Ferries stop."),
    ("menu.txt", "Café".encode("cp1252"), "text", "Café"), ("a.v2.md", b"# Guide\n\n- one\n", "text", "# Guide\n\n- one"),
])  # fmt: skip
def test_a_file_is_a_note_with_its_original_beside_it(
    store: EnhancedStore, name: str, data: bytes, content_type: str, text: str
) -> None:
    result, title = document_service(store).ingest_file(data, name, "alex"), name.rpartition(".")[0]
    assert (result["title"], result["content_type"], body(store, result)) == (
        title,
        content_type,
        text,
    )
    originals = {path: content for path, content in files(store).items() if "/files/" in path}
    if name.endswith((".pdf", ".docx")):
        assert (
            originals == {f"documents/alex/files/{name}": data}
            and header(store, result)["original"] == f"[[{name}]]"
        )
        store.undo(store.history(limit=1)[0].version)
        assert not files(store)
    else:
        assert not originals and "original" not in header(store, result)


def test_a_page_is_fetched_and_replaced_when_it_says_something_else(
    store: EnhancedStore, web: Web
) -> None:
    web.pages["/rules"] = ("text/plain", f"I prefer tea.\n\nI live in Oslo.\n\n{LONG}".encode())
    result = document_service(store).ingest_url(web.url("/rules#part"), "alex", "Rules")
    properties = header(store, result)
    assert (result.get("source_url"), properties["source_url"]) == (
        web.url("/rules"),
        web.url("/rules"),
    )
    assert (
        result.get("fetched") == properties["fetched"]
        and properties["fetched"].endswith("Z")
        and result["content_type"] == "url"
    )
    assert [statement.rstrip(".") for statement in stated(store, "alex")] == [
        "I live in Oslo",
        "I prefer tea",
    ]
    assert document_service(store).ingest_url(web.url("/rules"), "alex").get("duplicate")
    web.pages["/rules"] = (
        "text/plain",
        f"I prefer\ntea.\n\nNothing of it holds.\n\n{LONG}".encode(),
    )
    replaced = document_service(store).ingest_url(web.url("/rules"), "alex")
    assert (replaced["id"], replaced["name"], replaced["title"]) == (
        result["id"],
        result["name"],
        "Rules",
    ) and "duplicate" not in replaced
    assert "Oslo" not in body(store, result) and any("Oslo" in str(store.read(result["name"], version=version.version).content)
                                                   for version in store.history(result["name"]))  # fmt: skip
    assert [statement.rstrip(".") for statement in stated(store, "alex")] == ["I prefer tea"]
    forgotten = [
        fact for fact in fact_service(store).facts("alex", expired=True) if "Oslo" in fact.statement
    ]
    assert [fact.status for fact in forgotten] == ["forgotten"] and len(
        document_service(store).documents("alex")
    ) == 1


def test_the_original_is_replaced_with_its_text_and_only_ours_is(
    store: EnhancedStore, web: Web
) -> None:
    web.pages["/t"] = ("application/pdf", pdf("One."))
    result, place = (
        document_service(store).ingest_url(web.url("/t"), "alex", "Tides"),
        "documents/alex/files/Tides.pdf",
    )
    web.pages["/t"] = ("application/pdf", pdf("Two."))
    document_service(store).ingest_url(web.url("/t"), "alex")
    assert files(store)[place] == pdf("Two.") and len(files(store)) == 2
    note = store.root / f"{result['name']}.md"
    (store.root / "Mine.pdf").write_bytes(b"a person's own")
    note.write_text(note.read_text().replace("[[Tides.pdf]]", "[[Mine.pdf]]"))
    web.pages["/t"] = (WORD, docx("Three."))
    document_service(store).ingest_url(web.url("/t"), "alex")
    assert (
        files(store)["Mine.pdf"] == b"a person's own"
        and header(store, result)["original"] == "[[Tides.docx]]"
    )
    web.pages["/t"] = ("text/plain", b"Four.")
    document_service(store).ingest_url(web.url("/t"), "alex")
    assert "original" not in header(store, result) and body(store, result) == "Four."


def test_what_came_from_outside_replaces_nothing_that_was_said_here(
    store: EnhancedStore, web: Web
) -> None:
    memory_service(store).add("I live in Oslo.", "alex")
    web.pages["/x"] = ("text/plain", f"I live in Rome.\n\n{LONG}".encode())
    document_service(store).ingest_url(web.url("/x"), "alex")
    assert "I live in Oslo" in [statement.rstrip(".") for statement in stated(store, "alex")]


def test_files_that_nothing_reads_leave_nothing(store: EnhancedStore, web: Web) -> None:
    web.pages = {
        "/image": ("image/png", b"\x89PNG"),
        "/broken": ("application/pdf", b"%PDF-1.4 nothing"),
    }
    web.pages |= {
        "/empty": ("application/pdf", pdf("")),
        "/nul": ("text/plain", b"x\0"),
        "/loop": (302, "/loop"),
    }
    for path in web.pages:
        with pytest.raises(SimplememError):
            document_service(store).ingest_url(web.url(path), "alex")
    with pytest.raises(Unreadable, match="no text"):
        document_service(store).ingest_file(pdf(""), "empty.pdf", "alex")
    with pytest.raises(Invalid):
        document_service(store).ingest_file(b"x", "picture.png", "alex")
    assert not files(store)


def test_a_person_may_move_edit_break_and_delete_a_document(
    store: EnhancedStore, web: Web, write: Callable[[str, str | bytes], Path]
) -> None:
    web.pages["/a"] = ("text/plain", b"One.")
    result = document_service(store).ingest_url(web.url("/a"), "alex", "A")
    moved = store.root / "Papers" / "Mine.md"
    moved.parent.mkdir()
    (store.root / f"{result['name']}.md").rename(moved)
    moved.write_text(moved.read_text().replace("created:", "rating: 5\ncreated:"))
    web.pages["/a"] = ("text/plain", b"Two.")
    fetched_again = document_service(store).ingest_url(web.url("/a"), "alex")
    assert (fetched_again["id"], fetched_again["name"]) == (result["id"], "Papers/Mine") and header(
        store, fetched_again
    )["rating"] == 5
    moved.unlink()
    assert document_service(store).ingest_url(web.url("/a"), "alex")["id"] != result["id"]
    broken = "---\ntype: document\nid: [unclosed\n---\nOne.\n"
    file = write("documents/alex/Broken.md", broken)
    assert (
        document_service(store).ingest_text("One.", "alex", "Broken")["name"]
        == "documents/alex/Broken 2"
    )
    assert file.read_text() == broken
    write("documents/alex/By hand.md", "What a person wrote down.\n")
    assert "By hand" in [document.title for document in document_service(store).documents("alex")]


def test_a_short_text_is_remembered_as_statements_and_a_long_one_as_a_document(
    store: EnhancedStore,
) -> None:
    result = memory_service(store).add("Has a dog.\nSings bass", "alex")
    assert [event["event"] for event in result["events"]] == ["ADD", "ADD"] and result[
        "extraction"
    ] == "verbatim"
    metadata = {
        "mood": "kind",
        "type": "atom",
        "Type": "atom",
        "id": "x",
        "scope": "maria",
        "created": "never",
    }
    result = memory_service(store).add(f"{LONG}I prefer hemp ropes for mooring.", "alex", metadata)
    document = document_service(store).documents("alex")[0]
    assert (document.id, document.content_type, result["extraction"]) == (
        result["document"],
        "conversation",
        "rules",
    )
    assert [event["memory"].rstrip(".") for event in result["events"]] == [
        "I prefer hemp ropes for mooring"
    ]
    properties = header(store, {"name": document.path[:-3]})
    assert (properties["type"], properties["mood"], properties["id"], properties["scope"]) == (
        "document",
        "kind",
        document.id,
        "alex",
    )
    assert properties["created"] != "never"


def test_what_was_left_undone_is_gone_on_with(
    vault: Path, write: Callable[[str, str | bytes], Path]
) -> None:
    """As after a power cut between a document and its statements."""
    note = f"---\ntype: document\nid: doc_1\nscope: alex\nstatus: extracting\n---\n\nI prefer tea.\n\n{LONG}\n"
    write("documents/alex/A wrong one.md", note.replace("scope: alex", 'scope: " no scope "'))
    file = write("documents/alex/Half.md", note)
    with opened(vault) as store:
        document_service(store)
        assert eventually(lambda: "status: done" in file.read_text())
        assert stated(store, "alex") in (["I prefer tea"], ["I prefer tea."])


def fact(text: str, quote: str = "") -> dict[str, Any]:
    empty = dict.fromkeys(("subject", "relation", "object"), "") | dict.fromkeys(
        ("valid_from", "valid_to")
    )
    return {"text": text, "type": "fact", "quote": quote or text, "confidence": 0.9, **empty}


def test_with_a_model_a_document_is_read_after_the_answer(vault: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        found = [fact("Ann bakes", "she bakes")] if "she bakes" in question.get("text", "") else []
        return (
            {"facts": [*found, fact("Ann owns a yacht")]}
            if "text" in question
            else {"relations": []}
        )

    with ChatService(model) as service:
        llm = {"provider": "openai", "model": "m", "url": service.url}
        embed = {"provider": "none", "private": ["documents/secret/", "atoms/own/"]}
        with opened(vault, llm=llm, embed=embed) as store:
            web = f"Ann was here, and she bakes. {LONG}"
            result = document_service(store).ingest_text(web, "alex", "Ann")
            assert (result["status"], result["extraction"], result["memories"]) == (
                "extracting",
                "llm:m",
                [],
            )
            assert eventually(lambda: header(store, result)["status"] == "done")
            assert stated(store, "alex") == ["Ann bakes"]
            request_count = len(service.requests)
            assert document_service(store).ingest_text(web, "alex")["status"] == "done"
            private = document_service(store).ingest_text(f"I prefer tea. {LONG}", "secret", "Ann")
            assert (
                eventually(lambda: header(store, private)["status"] == "done")
                and len(service.requests) == request_count
            )
            assert stated(store, "secret") and "error" not in header(store, private)
            memory_service(store).add("I live in Oslo.", "own")
            memory_service(store).add("I live by the sea.", "own")
            assert len(stated(store, "own")) == 2 and len(service.requests) == request_count
            memory_service(store).add("Has a dog", "alex")
            assert len(service.requests) > request_count


def test_a_fact_that_a_model_drew_goes_when_its_words_go(vault: Path, web: Web) -> None:
    def model(question: dict[str, Any]) -> Any:
        statements = [
            ("she bakes", "Ann bakes"),
            ("she sings", "Ann sings"),
            ("she\nsings", "Ann sings"),
        ]
        if "text" not in question:
            return {"relations": []}
        return {
            "facts": [
                fact(statement, quote)
                for quote, statement in statements
                if quote in question["text"]
            ]
        }

    llm = {"provider": "openai", "model": "m", "url": ""}
    with ChatService(model) as service, opened(vault, llm=llm | {"url": service.url}) as store:
        for words, expected in (
            ("she bakes and she sings", ["Ann bakes", "Ann sings"]),
            ("she\nsings", ["Ann sings"]),
        ):
            web.pages["/ann"] = ("text/plain", f"Ann: {words}. {LONG}".encode())
            result = document_service(store).ingest_url(web.url("/ann"), "alex", "Ann")
            assert eventually(lambda result=result: header(store, result)["status"] == "done")  # type: ignore[misc]
            assert stated(store, "alex") == expected


def test_a_model_that_fails_leaves_it_to_the_rules_and_the_note_says_why(vault: Path) -> None:
    with ChatService(lambda _: {}) as service:
        service.always = failing(400)
        with opened(
            vault,
            llm={"provider": "openai", "model": "m", "url": service.url, "timeout_seconds": 1},
        ) as store:
            result = document_service(store).ingest_text(f"I prefer tea. {LONG}", "alex", "Tea")
            assert eventually(lambda: header(store, result)["status"] == "done")
            assert [statement.rstrip(".") for statement in stated(store, "alex")] == [
                "I prefer tea"
            ]
            assert header(store, result)["error"].startswith(
                "facts were extracted by rules, because"
            )


REPORT = "".join(
    f"Section {number} describes the sensor of hall {number}.\n" for number in range(12)
)


def answers(store: EnhancedStore, question: str) -> list[str]:
    found = recall(store, RecallRequest(question, "ana"))
    return [hit.result["text"] for hit in found.hits]


def test_a_document_with_the_same_title_and_user_is_a_new_version_of_the_old_one(
    store: EnhancedStore,
) -> None:
    documents = document_service(store)
    first = documents.ingest_text(
        f"{REPORT}\nI live in Oslo.\n\nThe budget is 5000 euros.\n", "ana", "Informe"
    )
    second = documents.ingest_text(
        f"{REPORT}\nI live in Rome.\n\nThe budget is 7000 euros.\n",
        "ana",
        "informe",
        {"checked": "yes"},
    )
    assert (second["id"], second["name"]) == (first["id"], first["name"])
    assert [document.title for document in documents.documents("ana")] == ["Informe"]
    assert any("new version" in warning for warning in second["warnings"])
    assert header(store, second)["checked"] == "yes"

    assert [statement.rstrip(".") for statement in stated(store, "ana")] == ["I live in Rome"]
    found = " ".join(answers(store, "budget in euros"))
    assert "7000" in found and "5000" not in found
    earlier = [
        store.read(first["name"], version=version.version).content
        for version in store.history(first["name"])
    ]
    assert any("5000" in text for text in earlier)


@pytest.mark.parametrize("number", [2, 3])
def test_documents_that_only_begin_alike_are_two(store: EnhancedStore, number: int) -> None:
    documents = document_service(store)
    letters = [
        f"Dear Anna,\n\nletter {word} speaks of {word}s only.\n"
        for word in ("kite", "harbour", "ledger")
    ]
    names = [documents.ingest_text(letter, "ana")["name"] for letter in letters[:number]]
    assert len({*names}) == number
    for word in ("kite", "harbour", "ledger")[:number]:
        assert word in " ".join(answers(store, f"letter {word}"))


def test_a_changed_text_without_a_title_is_a_new_version_by_its_heading_or_its_likeness(
    store: EnhancedStore,
) -> None:
    documents = document_service(store)
    first = documents.ingest_text("# Minutes\n\nWe meet on Monday.", "ana")
    assert (
        documents.ingest_text("# Minutes\n\nThe harbour master resigned.", "ana")["id"]
        == first["id"]
    )
    first = documents.ingest_text(f"The sensors\n{REPORT}They are blue.", "ana")
    assert (
        documents.ingest_text(f"The sensors\n{REPORT}They are green.", "ana")["id"] == first["id"]
    )


def test_two_pages_that_call_themselves_alike_are_two_documents(
    store: EnhancedStore, web: Web
) -> None:
    for word in ("kite", "ledger"):
        page = f"<html><head><title>Home</title></head><body><p>All about the {word}. {REPORT}</p></body></html>"
        web.pages[f"/{word}"] = ("text/html", page.encode())
    names = [
        document_service(store).ingest_url(web.url(f"/{word}"), "ana")["name"]
        for word in ("kite", "ledger")
    ]
    assert names[0] != names[1]
    assert {hit.name for hit in store.search("kite ledger").hits} == {*names}


def test_what_a_person_wrote_by_hand_is_never_an_earlier_version(
    store: EnhancedStore, write: Callable[[str, str | bytes], Path]
) -> None:
    file = write("documents/ana/Informe.md", "My own words.\n")
    result = document_service(store).ingest_text("Other words.", "ana", "Informe")
    assert result["name"] == "documents/ana/Informe 2" and file.read_text() == "My own words.\n"
    assert {hit.name for hit in store.search("words").hits} == {
        "documents/ana/Informe",
        result["name"],
    }


def test_a_changed_pdf_from_another_path_is_a_new_version(store: EnhancedStore) -> None:
    documents = document_service(store)
    first = documents.ingest_file(pdf(f"{REPORT}The budget is 5000 euros."), "Report.pdf", "ana")
    second = documents.ingest_file(pdf(f"{REPORT}The budget is 7000 euros."), "Report.pdf", "ana")
    assert second["name"] == first["name"]
    assert files(store).keys() == {"documents/ana/Report.md", "documents/ana/files/Report.pdf"}
    found = " ".join(answers(store, "budget in euros"))
    assert "7000" in found and "5000" not in found


def test_a_file_that_names_itself_is_called_so(store: EnhancedStore) -> None:
    page = b"<html><head><title>Tide tables</title></head><body><p>High water is at noon.</p></body></html>"
    documents = document_service(store)
    for data, name, title in (
        (page, "page-1.html", "Tide tables"),
        (docx("= Crane manual", "It lifts 12 t."), "scan0001.docx", "Crane manual"),
        (b"<p>Nothing names it.</p>", "letter.html", "letter"),
        (b"# Log\n\nThe crane was greased.", "2026-11-22.md", "2026-11-22"),
    ):
        result = documents.ingest_file(data, name, "ann")
        assert (result["title"], result["name"]) == (title, f"documents/ann/{title}")
    assert documents.ingest_file(page + b" ", "page.html", "bob", "My tides")["title"] == "My tides"


def test_metadata_keeps_its_json_types(store: EnhancedStore) -> None:
    metadata = {"prio": 2, "share": 0.5, "done": False, "word": "2", "list": [1, "a", True]}
    result = document_service(store).ingest_text("The crane is greased.", "ann", "Crane", metadata)
    properties = header(store, result)
    assert {key: properties[key] for key in metadata} == metadata
    assert [type(properties[key]) for key in metadata] == [
        type(value) for value in metadata.values()
    ]


def test_a_page_that_an_agent_stores_is_a_source_of_its_later_changes(
    store: EnhancedStore, web: Web
) -> None:
    web.pages["/rules"] = ("text/plain", LONG.encode())
    session = Session()
    arguments = {"url": web.url("/rules#part"), "container_tag": "alex"}
    caller: Caller = {"who": "claude-ai", "tool": "ingest_url"}
    ingest_url(store, caller, ingest_url.adapter.read(ingest_url, arguments), session)
    address, document = session.sources()
    assert address == web.url("/rules")
    assert document.startswith("documents/alex/")
