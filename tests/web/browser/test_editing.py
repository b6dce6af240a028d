"""Writing on the page, in a real browser: the editor, conflicts, tasks, moving, deleting, and capture without a connection."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

PLAN = "# Plan\n\nSee [[Other]].\n\n- [ ] call Ida\n- [x] book a hall\n\nThe end.\n"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return a vault with a plan that links to another note."""
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Plan.md").write_text(PLAN)
    (folder / "Other.md").write_text("# Other\n\nA heron. #bird/heron\n")
    return folder


@pytest.fixture
def server(serve: Callable[..., Served], vault: Path) -> Served:
    return serve()


def address(server: Served, path: str) -> str:
    """Return the address of a page of a server."""
    return f"http://127.0.0.1:{server.port}{path}"


def open_editor(page: Page, server: Served, path: str = "/edit/Plan") -> Page:
    """Open the form of a note, and wait for the editor in it."""
    page.goto(address(server, path))
    page.locator(".cm-content").wait_for()
    return page


def type_at_end(page: Page, text: str) -> None:
    """Type a text at the end of the note in the editor."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def test_the_editor_saves_with_the_keyboard_and_escape_leads_back_to_the_note(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_editor(open_page(server), server)
    type_at_end(page, "More to do.")
    page.keyboard.press("Control+s")
    expect(page.locator("#editor-status")).to_have_text("Saved.")
    assert (vault / "Plan.md").read_text() == PLAN + "More to do."

    page.keyboard.press("Control+s")
    expect(page.locator("#editor-status")).to_have_text("Nothing to save.")
    page.wait_for_timeout(500)  # just after a letter, Escape ends the search for completions
    page.keyboard.press("Escape")
    page.wait_for_url("**/note/Plan")
    expect(page.locator(".text")).to_contain_text("More to do.")


def test_control_enter_saves_and_leads_back(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_editor(open_page(server), server)
    expect(page.locator("#editor-keys")).to_be_visible()
    type_at_end(page, "More to do.")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("link", name="Back")).to_be_visible()
    page.keyboard.type(" And more.")
    expect(page.get_by_role("link", name="Cancel")).to_be_visible()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/note/Plan")
    assert (vault / "Plan.md").read_text() == PLAN + "More to do. And more."


def test_what_is_typed_first_stands_below_the_properties(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    (vault / "Plan.md").write_text("---\ntype: plan\n---\n\n" + PLAN)
    page = open_editor(open_page(server), server)
    page.locator("label[for=text]").click()
    page.keyboard.type("First. ")
    page.keyboard.press("Control+s")
    expect(page.locator("#editor-status")).to_have_text("Saved.")
    assert "---\n\nFirst. # Plan" in (vault / "Plan.md").read_text()


def test_the_preview_comes_into_view_and_the_buttons_stay_in_view(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    (vault / "Plan.md").write_text(PLAN + "A line.\n\n" * 100)
    page = open_editor(open_page(server, width=PHONE_WIDTH), server)
    page.emulate_media(reduced_motion="reduce")  # the page scrolls at once
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview h1")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()


def test_wikilinks_and_tags_are_completed(server: Served, open_page: OpenPage) -> None:
    page = open_editor(open_page(server), server)
    type_at_end(page, "See [[oth")
    page.get_by_role("option", name="Other").click()
    expect(page.locator(".cm-content")).to_contain_text("See [[Other]]")

    page.keyboard.type(" and #her")
    page.get_by_role("option", name="bird/heron").click()
    expect(page.locator(".cm-content")).to_contain_text("and #bird/heron")

    page.keyboard.press("Control+s")
    expect(page.locator("#editor-status")).to_have_text("Saved.")


def test_the_preview_looks_like_the_note(server: Served, open_page: OpenPage, vault: Path) -> None:
    (vault / "Plan.md").write_text("> [!warning] Mind the gap\n\n[[Nowhere]]\n")
    page = open_editor(open_page(server), server)
    page.get_by_role("button", name="Preview").click()
    preview = page.locator("#preview")
    expect(preview.get_by_role("link", name="Nowhere")).to_have_css(
        "text-decoration-style", "dashed"
    )
    colour = "callout => getComputedStyle(callout).borderLeftColor"
    colour_in_preview = preview.locator(".callout").evaluate(colour)

    page.goto(address(server, "/note/Plan"))
    assert page.locator(".callout").evaluate(colour) == colour_in_preview


def test_the_preview_follows_what_is_typed(server: Served, open_page: OpenPage) -> None:
    page = open_editor(open_page(server), server)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview h1")).to_have_text(re.compile(r"^Plan #\s*$"))
    type_at_end(page, "\n**loud** <script>alert(1)</script>")
    expect(page.locator("#preview strong")).to_have_text("loud")
    assert page.locator("#preview script").count() == 0


def test_two_browsers_that_change_different_places_get_a_merge(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    first = open_editor(open_page(server), server)
    second = open_editor(open_page(server), server)

    type_at_end(first, "From the first.")
    first.keyboard.press("Control+s")
    expect(first.locator("#editor-status")).to_have_text("Saved.")

    second.locator(".cm-content").click()
    second.keyboard.press("Control+Home")
    second.keyboard.type("From the second.\n")
    second.get_by_role("button", name="Save").click()
    second.get_by_role("heading", name="has changed meanwhile").wait_for()
    assert "From the first." in second.locator("#current").input_value()
    assert "From the second." in second.locator("#mine").input_value()
    assert (vault / "Plan.md").read_text() == PLAN + "From the first."

    second.get_by_role("button", name="Save the merge").click()
    second.wait_for_url("**/note/Plan")
    text = (vault / "Plan.md").read_text()
    assert text == "From the second.\n" + PLAN + "From the first."


def test_a_text_outlives_a_session_that_has_ended(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_editor(open_page(server), server)
    type_at_end(page, "Not to be lost.")
    page.context.clear_cookies()
    page.keyboard.press("Control+s")
    page.get_by_role("link", name="Sign in again").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("link", name="Sign in again").click()

    page.fill("input[name=token]", server.token)
    page.press("input[name=token]", "Enter")
    page.wait_for_url("**/edit/Plan")
    expect(page.locator(".cm-content")).to_contain_text("Not to be lost.")
    expect(page.locator("#editor-status")).to_contain_text("restored")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/note/Plan")
    assert (vault / "Plan.md").read_text() == PLAN + "Not to be lost."

    open_editor(page, server)
    expect(page.locator("#editor-status")).to_have_text("")


def test_a_new_note_is_created_in_a_folder_and_leaves_no_draft(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server)
    page.get_by_role("link", name="New note").click()
    page.locator(".cm-content").wait_for()
    page.get_by_label("Title").fill("Fulmar")
    page.get_by_label("Folder").fill("birds")
    page.locator(".cm-content").click()
    page.keyboard.type("It flies.")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/note/birds/Fulmar")
    assert "It flies." in (vault / "birds/Fulmar.md").read_text()

    open_editor(page, server, "/new")
    assert page.locator("textarea[name=text]").input_value() == ""


def test_one_click_ticks_a_task_in_the_text(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/note/Plan")
    page.locator(".text").get_by_role("button", name="Done: call Ida").click()
    page.locator(".text").get_by_role("button", name="Open again: call Ida").wait_for()
    assert (vault / "Plan.md").read_text() == PLAN.replace("[ ]", "[x]")

    page.locator(".text").get_by_role("button", name="Open again: book a hall").click()
    page.locator(".text").get_by_role("button", name="Done: book a hall").wait_for()
    assert "- [x] call Ida\n- [ ] book a hall\n" in (vault / "Plan.md").read_text()


def test_a_moved_note_takes_its_links_along_and_undo_moves_it_back(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/note/Other")
    page.get_by_role("link", name="Move").click()
    expect(page.locator("main")).to_contain_text("Links to it in 1 note")
    page.get_by_label("New name").fill("birds/Heron")
    page.get_by_role("button", name="Move").click()
    page.get_by_role("heading", name="birds/Heron").wait_for()
    assert "Plan" in page.locator("main").inner_text()
    assert "[[Heron" in (vault / "Plan.md").read_text()

    page.get_by_role("button", name="Undo").click()
    page.wait_for_load_state()
    assert (vault / "Plan.md").read_text() == PLAN and (vault / "Other.md").exists()


def test_a_deleted_note_is_brought_back_with_undo(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/note/Other")
    page.get_by_role("link", name="Delete").click()
    expect(page.locator("main")).to_contain_text("1 note links to it")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("heading", name="Other is in the trash").wait_for()
    assert not (vault / "Other.md").exists()

    page.get_by_role("button", name="Undo").click()
    page.wait_for_load_state()
    assert (vault / "Other.md").exists()


def test_without_script_a_note_is_written_and_a_task_ticked(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/note/Plan", script=False)
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text in Markdown").fill(PLAN + "By hand.\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("By hand.")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/note/Plan")
    assert (vault / "Plan.md").read_text() == PLAN + "By hand.\n"

    page.get_by_text("Tasks", exact=True).click()
    page.get_by_role("button", name="Done: call Ida").click()
    page.wait_for_url("**/note/Plan")
    assert "- [x] call Ida" in (vault / "Plan.md").read_text()


def daily_note(vault: Path) -> str:
    """Return the text of the only daily note, or "" if there is none."""
    notes = [path for path in vault.glob("*.md") if re.fullmatch(r"\d{4}-\d\d-\d\d", path.stem)]
    return notes[0].read_text() if notes else ""


def capture(page: Page, text: str) -> None:
    """Type a text into the field of the capture page, and save it."""
    page.get_by_label("What is on your mind?").fill(text)
    page.get_by_role("button", name="Save").click()


def test_a_capture_without_a_connection_is_sent_once_when_there_is_one(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/capture", width=PHONE_WIDTH)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    capture(page, "at home")
    expect(page.locator("#capture-status")).to_have_text("Saved.")

    page.context.set_offline(True)
    page.reload()
    capture(page, "in the tunnel")
    expect(page.locator("#capture-status")).to_contain_text("Kept on this device")
    page.reload()
    expect(page.locator("#waiting")).to_contain_text("in the tunnel")
    assert "tunnel" not in daily_note(vault)

    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#capture-status")).to_have_text("Saved.")
    expect(page.locator("#waiting li")).to_have_count(0)
    lines = daily_note(vault).splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["at home", "in the tunnel"]


def test_a_capture_whose_answer_is_lost_is_not_added_twice(
    server: Served, open_page: OpenPage, vault: Path
) -> None:
    page = open_page(server, "/capture")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")

    def lose_answer(route) -> None:  # type: ignore[no-untyped-def]
        route.fetch()
        route.abort()

    page.route("**/capture", lose_answer)
    capture(page, "only once")
    expect(page.locator("#waiting")).to_contain_text("only once")
    page.unroute("**/capture")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#waiting li")).to_have_count(0)
    assert daily_note(vault).count("only once") == 1


def test_the_service_worker_keeps_the_capture_page_and_static_files_only(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/capture")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.goto(address(server, "/note/Plan"))
    page.goto(address(server, "/capture"))
    kept = page.evaluate(
        "caches.keys()"
        ".then((names) => Promise.all(names.map((name) => caches.open(name).then((c) => c.keys()))))"
        ".then((lists) => lists.flat().map((request) => new URL(request.url).pathname))"
    )
    assert "/capture" in kept
    assert all(path == "/capture" or path.startswith("/static/") for path in kept)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (PHONE_WIDTH, "light")])
def test_axe_finds_nothing_in_the_editor_or_on_a_conflict(
    server: Served, open_page: OpenPage, width: int, scheme: str
) -> None:
    page = open_editor(open_page(server, width=width, scheme=scheme), server)
    assert findings_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    server.tool("update_memory", name="Plan", append="An agent was faster.")
    type_at_end(page, "A person was slower.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="has changed meanwhile").wait_for()
    page.locator(".cm-content").wait_for()
    assert findings_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
