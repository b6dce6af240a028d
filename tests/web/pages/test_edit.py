"""Writing on the page as a browser without the script does it: forms, hashes, conflicts and rights."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest

from simplemem import open_store
from tests.web.conftest import OWNER, Served
from tests.web.test_page import Browser

PLAN = "---\ntags: [idea]\n---\n# Plan\n\nSee [[Other]].\n\n- [ ] call Ida\n- [x] done\n"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Plan.md").write_bytes(PLAN.encode())
    (folder / "Other.md").write_text("# Other\n")
    return folder


@pytest.fixture
def server(serve: Callable[..., Served], vault: Path) -> Served:
    return serve()


def hash_of(text: str) -> str:
    """Return the hash that a form must name for a note with this text."""
    return hashlib.sha256(text.encode()).hexdigest()


def field(page: bytes, name: str) -> str:
    """Return the text of a text field of a page, as a browser reads it."""
    found = re.search(
        rf'<textarea[^>]*id="{name}"[^>]*>\n(.*?)</textarea>', page.decode(), re.DOTALL
    )
    assert found is not None
    return html.unescape(found[1])


def test_a_form_shows_the_whole_note_and_saves_it_as_a_person(server: Served, vault: Path) -> None:
    browser = Browser(server)
    page = browser.get("/edit/Plan").body
    assert field(page, "text") == PLAN and hash_of(PLAN) in page.decode()

    sent = PLAN.replace("done", "paid").replace("\n", "\r\n")
    saved = browser.post("/edit/Plan", text=sent, if_sha256=hash_of(PLAN))
    assert saved.status == 303 and saved.headers["location"] == "/note/Plan"
    assert (vault / "Plan.md").read_bytes() == PLAN.replace("done", "paid").encode()
    with open_store(vault, read_only=True) as store:
        change = store.history("Plan")[0]
    assert (change.who, change.tool, change.kind) == ("owner", "page", "human")


def test_a_save_that_changes_nothing_writes_nothing(server: Served, vault: Path) -> None:
    browser = Browser(server)
    text = "one\r\ntwo\nthree"
    (vault / "Mixed.md").write_bytes(text.encode())
    before = (vault / "Mixed.md").stat().st_mtime_ns
    sent = field(browser.get("/edit/Mixed").body, "text").replace("\n", "\r\n")
    assert browser.post("/edit/Mixed", text=sent, if_sha256=hash_of(text)).status == 303
    assert (vault / "Mixed.md").read_bytes() == text.encode()
    assert (vault / "Mixed.md").stat().st_mtime_ns == before


def test_a_conflict_shows_both_texts_and_a_merge_and_writes_nothing(
    server: Served, vault: Path
) -> None:
    browser = Browser(server)
    server.tool("update_memory", name="Plan", append="An agent wrote this.")
    theirs = (vault / "Plan.md").read_text()
    mine = PLAN.replace("# Plan", "# My plan")
    page = browser.post("/edit/Plan", text=mine, if_sha256=hash_of(PLAN))
    assert page.status == 409
    assert field(page.body, "mine") == mine and field(page.body, "current") == theirs
    merged = field(page.body, "text")
    assert "# My plan" in merged and "An agent wrote this." in merged and "<<<<" not in merged
    assert (vault / "Plan.md").read_text() == theirs

    saved = browser.post("/edit/Plan", text=merged, if_sha256=hash_of(theirs))
    assert saved.status == 303 and (vault / "Plan.md").read_text() == merged


def test_changes_of_the_same_line_are_marked(server: Served, vault: Path) -> None:
    browser = Browser(server)
    server.tool("update_memory", name="Plan", edits=[{"old": "# Plan", "new": "# Their plan"}])
    mine = PLAN.replace("# Plan", "# My plan")
    page = browser.post("/edit/Plan", text=mine, if_sha256=hash_of(PLAN))
    merged = field(page.body, "text")
    assert page.status == 409 and "# My plan" in merged and "# Their plan" in merged
    assert "<<<<<<<" in merged and b"1 place differently" in page.body


def test_a_text_that_cannot_be_saved_stays_in_the_form(server: Served, vault: Path) -> None:
    browser = Browser(server)
    broken = "---\ntags: [idea\n---\nMy long text.\n"
    page = browser.post("/edit/Plan", text=broken, if_sha256=hash_of(PLAN))
    assert page.status == 400 and field(page.body, "text") == broken
    assert (vault / "Plan.md").read_text() == PLAN

    page = browser.post("/edit/Plan", text="My long text.")
    assert page.status == 400 and field(page.body, "text") == "My long text."

    (vault / "Plan.md").unlink()
    page = browser.post("/edit/Plan", text="My long text.", if_sha256=hash_of(PLAN))
    assert page.status == 404 and field(page.body, "text") == "My long text."
    assert b'action="/new"' in page.body and b'value="Plan"' in page.body


def test_a_note_with_broken_properties_can_only_be_read(server: Served, vault: Path) -> None:
    text = "---\ntags: [idea\n---\nText.\n"
    (vault / "Broken.md").write_text(text)
    browser = Browser(server)
    page = browser.get("/edit/Broken").body
    assert b"cannot be changed here" in page and b" readonly>" in page
    saved = browser.post("/edit/Broken", text="New.", if_sha256=hash_of(text))
    assert saved.status == 422 and (vault / "Broken.md").read_text() == text
    assert b'action="/tag/' not in browser.get("/note/Broken").body


@pytest.mark.parametrize("name", ["birds/Plan", "Nothing yet", "", "../../Plan", "a\0b", "C:\\x"])
def test_a_preview_has_the_links_and_embeds_of_the_note(
    server: Served, vault: Path, name: str
) -> None:
    (vault / "birds").mkdir()
    (vault / "birds/Plan.md").write_text("# Plan\n")
    (vault / "birds/Heron.md").write_text("# Heron\n\nIt *waits*.\n")
    text = "---\ntype: plan\n---\n[[Heron]], [[Nowhere]].\n\n![[Heron]]\n"
    page = Browser(server).post("/preview", name=name, text=text).body.decode()
    assert '<a href="/note/birds/Heron" class="wikilink">Heron</a>' in page
    assert "unresolved" in page and "<em>waits</em>" in page
    assert "type: plan" not in page


def test_a_hostile_text_is_escaped_in_every_form(server: Served, vault: Path) -> None:
    text = "</textarea><script>alert(1)</script>\n"
    (vault / "Evil.md").write_text(text)
    browser = Browser(server)
    conflict = browser.post("/edit/Evil", text=text + "x", if_sha256=hash_of("another"))
    for page in (
        browser.get("/edit/Evil"),
        conflict,
        browser.post("/new", title='"><script>', text=text, action="preview"),
        browser.get("/new?name=%22%3E%3Cscript%3Ealert(1)"),
    ):
        assert b"<script>alert" not in page.body and b'"><script>' not in page.body


def test_a_note_is_created_in_a_folder_and_not_over_another(server: Served, vault: Path) -> None:
    browser = Browser(server)
    created = browser.post("/new", title="Fulmar", folder="birds/", text="It flies.\r\n")
    assert created.status == 303 and created.headers["location"] == "/note/birds/Fulmar"
    assert (vault / "birds/Fulmar.md").read_text().endswith("\n\nIt flies.\n")
    assert b'<option value="birds">' in browser.get("/new").body

    again = browser.post("/new", title="Fulmar", folder="birds", text="Another text.")
    assert again.status == 409 and field(again.body, "text") == "Another text."
    assert browser.post("/new", title=" ", text="x").status == 400
    assert browser.post("/new", title="../../outside", text="x").status == 400


def test_a_template_begins_a_new_note(serve: Callable[..., Served], vault: Path) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian/templates.json").write_text('{"folder": "Templates"}')
    (vault / "Templates").mkdir()
    (vault / "Templates/Meeting.md").write_text("# {{title}}\n\nAgenda\n")
    browser = Browser(serve())
    assert b"<option>Meeting</option>" in browser.get("/new").body
    created = browser.post("/new", title="Monday", template="Meeting", text="Bring rope.")
    assert created.headers["location"] == "/edit/Monday"
    assert (vault / "Monday.md").read_text() == "# Monday\n\nAgenda\n\nBring rope.\n"


def test_a_note_is_moved_with_its_links_and_moved_back(server: Served, vault: Path) -> None:
    browser = Browser(server)
    form = browser.get("/move/Other").body.decode()
    assert "Links to it in 1 note" in form
    moved = browser.post("/move/Other", new_name="birds/Heron")
    assert moved.status == 303
    done = browser.get(moved.headers["location"]).body.decode()
    version = re.search(r'name="version" value="(v\d+)"', done)
    assert version is not None and "birds/Heron" in done and "/note/Plan" in done
    assert "[[Heron" in (vault / "Plan.md").read_text()

    browser.post("/undo", version=version[1])
    assert (vault / "Plan.md").read_text() == PLAN and (vault / "Other.md").exists()
    taken = browser.post("/move/Other", new_name="Plan")
    assert taken.status == 409 and b'value="Plan"' in taken.body


def test_a_note_is_deleted_only_as_it_was_shown_and_brought_back(
    server: Served, vault: Path
) -> None:
    browser = Browser(server)
    assert b"1 note links" in browser.get("/delete/Other").body
    assert browser.post("/delete/Other", if_sha256=hash_of("another text")).status == 409
    assert browser.post("/delete/Other").status == 400

    deleted = browser.post("/delete/Other", if_sha256=hash_of("# Other\n"))
    assert not (vault / "Other.md").exists()
    done = browser.get(deleted.headers["location"]).body.decode()
    version = re.search(r'name="version" value="(v\d+)"', done)
    assert version is not None and "in the trash" in done
    browser.post("/undo", version=version[1])
    assert (vault / "Other.md").read_text() == "# Other\n"
    assert browser.get("/changed?version=v999").status == 404


def test_tags_are_added_and_removed(server: Served, vault: Path) -> None:
    browser = Browser(server)
    browser.post("/tag/Plan", add="#bird/heron")
    browser.post("/tag/Plan", remove="idea")
    text = (vault / "Plan.md").read_text()
    assert "bird/heron" in text and "idea" not in text
    assert browser.post("/tag/Plan").status == 400


def test_a_task_is_ticked_also_after_a_change_of_another_line(server: Served, vault: Path) -> None:
    browser = Browser(server)
    page = browser.get("/note/Plan").body.decode()
    assert 'name="line" value="8"' in page and 'name="line" value="9" class="is-done"' in page

    server.tool("update_memory", name="Plan", edits=[{"old": "# Plan", "new": "# A plan"}])
    ticked = browser.post("/task/Plan", line="8", if_sha256=hash_of(PLAN))
    assert ticked.status == 303
    text = (vault / "Plan.md").read_text()
    assert "# A plan" in text and "- [x] call Ida" in text

    assert browser.post("/task/Plan", line="1", if_sha256=hash_of(text)).status == 400
    assert browser.post("/task/Plan", line="x", if_sha256=hash_of(text)).status == 400
    assert (vault / "Plan.md").read_text() == text


def test_the_daily_note_is_created_by_a_form_and_opened_afterwards(
    server: Served, vault: Path
) -> None:
    browser = Browser(server)
    assert b"no daily note for today" in browser.get("/daily").body
    assert len(list(vault.glob("*.md"))) == 2
    created = browser.post("/daily")
    assert re.fullmatch(r"/edit/\d{4}-\d\d-\d\d", created.headers["location"])
    opened = browser.get("/daily")
    assert re.fullmatch(r"/note/\d{4}-\d\d-\d\d", opened.headers["location"])


def test_names_and_tags_are_completed(server: Served, vault: Path) -> None:
    (vault / "birds").mkdir()
    (vault / "birds/Other.md").write_text("---\naliases: [Grey heron]\n---\n")
    browser = Browser(server)
    script = {"Cookie": browser.cookie, "Accept": "application/json"}

    def complete(path: str) -> list[dict[str, str]]:
        choices: list[dict[str, str]] = server.ask("GET", path, token=None, headers=script).data
        return choices

    assert complete("/complete/notes?q=pla")[0]["link"] == "Plan"
    assert {choice["link"] for choice in complete("/complete/notes?q=other")} == {
        "Other",
        "birds/Other",
    }
    assert complete("/complete/notes?q=grey")[0]["link"] == "birds/Other|Grey heron"
    assert len(complete("/complete/notes?q=")) == 3
    assert complete("/complete/tags?q=ID") == ["idea"]


def test_a_capture_without_the_script_is_added_once(server: Served, vault: Path) -> None:
    browser = Browser(server)
    page = browser.get("/capture").body.decode()
    number = re.search(r'name="id" value="(\w+)"', page)
    assert number is not None and "Plan" not in page
    for _ in range(2):
        sent = browser.post("/capture", id=number[1], text="buy rope")
        assert sent.headers["location"] == "/captured"
    notes = [path.read_text() for path in vault.glob("20*.md")]
    assert len(notes) == 1 and notes[0].count("buy rope") == 1
    refused = browser.post("/capture", id="", text="keep me")
    assert refused.status == 400 and field(refused.body, "text") == "keep me"


def test_the_service_worker_may_control_the_capture_page_of_its_vault(server: Served) -> None:
    worker = server.ask("GET", "/static/capture-worker.js", token=None)
    assert worker.headers["service-worker-allowed"] == "/capture"
    assert "service-worker-allowed" not in server.ask("GET", "/static/capture.js").headers
    manifest = server.ask("GET", "/static/capture.webmanifest", token=None)
    assert manifest.headers["content-type"].startswith("application/manifest+json")
    policy = Browser(server).get("/capture").headers["content-security-policy"]
    assert "worker-src 'self'" in policy and "manifest-src 'self'" in policy


FORMS = {
    "/edit/Plan": {"text": "Lost.", "if_sha256": hash_of(PLAN)},
    "/new": {"title": "Forged", "text": "x"},
    "/move/Plan": {"new_name": "Forged"},
    "/delete/Plan": {"if_sha256": hash_of(PLAN)},
    "/tag/Plan": {"add": "forged"},
    "/task/Plan": {"line": "8", "if_sha256": hash_of(PLAN)},
    "/daily": {},
    "/capture": {"id": "capture-1", "text": "forged"},
}


def notes_of(vault: Path) -> dict[str, str]:
    """Return the texts of all notes of a vault by their paths."""
    return {str(path.relative_to(vault)): path.read_text() for path in vault.rglob("*.md")}


def test_forms_of_other_pages_are_refused(server: Served, vault: Path) -> None:
    browser = Browser(server)
    before = notes_of(vault)
    for path, fields in FORMS.items():
        assert browser.post(path, origin=None, **fields).status == 403
        assert browser.post(path, origin="https://evil.example", **fields).status == 403
    assert notes_of(vault) == before


def test_without_the_right_to_write_there_are_no_buttons_and_no_forms(
    server: Served, vault: Path
) -> None:
    browser = Browser(server, server.new_token("reader"))
    before = notes_of(vault)
    page = browser.get("/note/Plan").body.decode()
    assert "/edit/" not in page and "/task/" not in page and ">New note<" not in page
    for path, fields in FORMS.items():
        refused = browser.post(path, **fields)
        assert refused.status == 403 and b"<h1>" in refused.body
        assert path == "/daily" or browser.get(path).status in (303, 403)
    assert browser.get("/daily").status == 404
    assert notes_of(vault) == before


def test_a_read_only_vault_has_no_buttons_and_no_forms(
    serve: Callable[..., Served], vault: Path
) -> None:
    browser = Browser(serve("--read-only"))
    before = notes_of(vault)
    page = browser.get("/note/Plan").body.decode()
    assert "/edit/" not in page and "/task/" not in page and ">New note<" not in page
    for path, fields in FORMS.items():
        assert browser.post(path, **fields).status == 403
    for path in ("/edit/Plan", "/new", "/move/Plan", "/delete/Plan", "/capture"):
        assert browser.get(path).status == 403
    assert notes_of(vault) == before


def test_nobody_writes_without_signing_in(server: Served, vault: Path) -> None:
    headers = {
        "Accept": "text/html",
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{server.port}",
    }
    before = notes_of(vault)
    for path, fields in FORMS.items():
        answer = server.ask("POST", path, urlencode(fields).encode(), token=None, headers=headers)
        assert answer.status == 401 and f'value="{path}"'.encode() in answer.body
    assert notes_of(vault) == before
    assert OWNER not in str(before)


def test_the_form_of_a_new_note_has_few_folders_and_the_server_completes_the_others(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    for number in range(60):
        folder = tmp_path / "vault" / f"place {number:02}" / "rooms"
        folder.mkdir(parents=True)
        (folder / "n.md").write_text("words")
    server = serve()
    browser = Browser(server)
    assert browser.get("/note/place 59/rooms/n".replace(" ", "%20")).status == 200
    page = browser.get("/new").body.decode()
    assert page.count("<option") == 20 and '<option value="place 00/rooms">' in page
    assert browser.get("/complete/folders?q=E+59").data == ["place 59", "place 59/rooms"]
    assert browser.get("/complete/folders?q=rooms").data[0] == "place 00/rooms"
    assert browser.get("/complete/folders?q=nowhere").data == []


def test_the_page_of_a_missing_note_leads_whoever_may_write_to_its_editor(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    server = serve()
    missing = Browser(server).get("/note/birds/Grey%20heron")
    assert missing.status == 404
    assert b'<a href="/edit/birds/Grey%20heron">Create this note</a>' in missing.body

    reader = Browser(server, server.new_token("reader"))
    assert b"Create this note" not in reader.get("/note/birds/Grey%20heron").body
