"""The page of problems: a check in the background, what it found, and fixing it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.web.conftest import Served
from tests.web.test_page import Browser


def checked(browser: Browser) -> str:
    """Return the page of problems when the check has ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = browser.get("/doctor").body.decode()
        if 'data-phase="running"' not in text:
            return text
        time.sleep(0.1)
    raise AssertionError("the check did not end")


def with_broken_link(tmp_path: Path) -> Path:
    """Return a vault with a link that names a note by its alias, which Obsidian does not resolve."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Harbour master.md").write_text(
        "---\naliases: [Port keeper]\n---\nAda keeps the harbour.\n"
    )
    (vault / "Boat.md").write_text("It is moored.\n\nAsk the [[Port keeper]].\n")
    return vault


def test_the_first_visit_starts_a_check_and_its_findings_lead_to_the_notes(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    with_broken_link(tmp_path)
    browser = Browser(serve())

    page = checked(browser)
    assert re.search(r'<a href="/note/Boat">Boat\.md</a>.*line 3', page), page
    assert "Port keeper" in page


def test_the_fixes_are_shown_and_applied_in_one_step_that_can_be_undone(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    vault = with_broken_link(tmp_path)
    boat = vault / "Boat.md"
    before = boat.read_bytes()
    browser = Browser(serve())

    page = checked(browser)
    assert '<span class="add">+Ask the [[Harbour master|Port keeper]].' in page
    number = re.search(r'name="check" value="(\d+)"', page)
    assert number is not None

    fixed = browser.post("/doctor/fix", check=number[1])
    assert fixed.status == 303
    assert "[[Harbour master|Port keeper]]" in boat.read_text()
    version = re.search(r"version=(v\d+)", fixed.headers["location"])
    assert version is not None

    assert browser.post("/undo", version=version[1]).status == 303
    assert boat.read_bytes() == before


def test_the_fixes_of_an_earlier_check_are_refused(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    vault = with_broken_link(tmp_path)
    browser = Browser(serve())
    checked(browser)
    assert browser.post("/doctor/check").status == 303
    checked(browser)

    assert browser.post("/doctor/fix", check="1").status == 400
    assert "[[Port keeper]]" in (vault / "Boat.md").read_text()


def test_a_note_that_changed_since_the_check_is_not_fixed(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    boat = with_broken_link(tmp_path) / "Boat.md"
    browser = Browser(serve())
    checked(browser)
    boat.write_text("Sold. Ask the [[Port keeper]].\n")

    assert browser.post("/doctor/fix", check="1").status == 409
    assert boat.read_text() == "Sold. Ask the [[Port keeper]].\n"


def test_only_an_administrator_sees_problems_and_a_form_of_another_page_starts_nothing(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    reader = Browser(server, server.new_token("reader", "--write"))
    assert reader.get("/doctor").status == 403
    assert reader.post("/doctor/check").status == 403

    owner = Browser(server)
    assert owner.post("/doctor/check", origin="http://evil.example").status == 403
