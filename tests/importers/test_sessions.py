"""Sessions of coding agents are imported into the archive, with secrets masked.

The files in tests/data were written by the programs themselves (Claude Code 2.1.197, Codex 0.169.0,
Gemini CLI 0.61.0), against a server that gave all of them the same answers.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simplemem import open_store
from simplemem.cli.app import app
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.importers.sessions import AGENTS, read
from simplemem.note.dates import parse_moment
from simplemem.store import EnhancedStore

DATA = Path(__file__).parents[1] / "data" / "sessions"
PLACES = {
    "claude-code": ".claude/projects/-home-ida-parser/09976976.jsonl",
    "codex": ".codex/sessions/2026/11/23/rollout-2026-11-23T19-18-20-01a209d8.jsonl",
    "gemini-cli": ".gemini/tmp/parser/chats/session-2026-11-23T19-18-df5d96e4.jsonl",
}


@pytest.fixture
def home() -> Path:
    for agent, place in PLACES.items():
        file = Path.home() / place
        file.parent.mkdir(parents=True)
        shutil.copy(DATA / f"{agent}.jsonl", file)
    (Path.home() / ".gemini/tmp/parser/.project_root").write_text("/home/ida/parser")
    return Path.home()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as opened:
        yield opened


def plan_import(store: EnhancedStore, *agents: str, **how: Any) -> Plan:
    return make_plan(
        store, "sessions", "sessions", "archive/sessions", read(agents or AGENTS, **how)
    )


def notes(store: EnhancedStore) -> dict[str, str]:
    paths = [draft.path for draft in plan_import(store).drafts] or list(store.extension.files())
    return {
        str(store.read(path[:-3]).frontmatter["agent"]): store.read(path[:-3]).content
        for path in paths
    }


def add(file: Path, *rows: Any) -> None:
    with file.open("a") as end:
        end.writelines(json.dumps(row) + "\n" for row in rows)


def test_a_session_becomes_a_note_with_its_messages_and_a_line_per_tool_call(
    store: EnhancedStore, home: Path
) -> None:
    apply_plan(store, plan_import(store))
    found = notes(store)
    assert set(found) == set(AGENTS)
    calls = {
        "claude-code": "- Bash: ls -la",
        "codex": "- exec_command: ls -la",
        "gemini-cli": "- list_directory: /home/ida",
    }
    for agent, text in found.items():
        assert "> Why does the parser fail?" in text
        assert "I look at the folder first." in text
        assert "has no encoding" in text
        assert f"> {calls[agent]}" in text
        assert all(
            hidden not in text
            for hidden in ("drwx", "a.py", "environment_context", "session_context", "skill")
        )
    assert "And on Windows?" in found["claude-code"]


def test_a_note_has_its_source_and_secrets_are_masked(store: EnhancedStore, home: Path) -> None:
    apply_plan(store, plan_import(store, "claude-code"))
    (path,) = store.extension.files()
    header = store.read(path[:-3]).frontmatter
    assert path.startswith("archive/sessions/2026/11/2026-11-23 Why does the parser fail")
    assert (header["type"], header["project"], header["private"]) == (
        "session",
        "/home/ida/parser",
        True,
    )
    assert str(header["source"]).startswith("claude-code:")
    text = (store.root / path).read_text()
    assert "hunter2" not in text
    assert "password: [redacted]" in text
    assert (store.search("parser").hits, len(store.search("archive: parser").hits)) == ((), 1)


def test_a_continued_session_updates_its_note_unless_the_note_was_edited(
    store: EnhancedStore, home: Path
) -> None:
    apply_plan(store, plan_import(store))
    assert plan_import(store).drafts == ()
    message = {
        "role": "user",
        "content": "And <private>for Bo</private> on macOS?<system-reminder>Be quick</system-reminder>",
    }
    row = {
        "type": "user",
        "message": message,
        "uuid": "u9",
        "timestamp": "2026-11-23T19:30:00Z",
        "cwd": "/home/ida/parser",
    }
    add(home / PLACES["claude-code"], row | {"isMeta": True, "message": {"content": "meta"}}, row)
    content = [{"type": "input_text", "text": "And for codex?"}]
    item = {"type": "message", "role": "user", "content": content}
    add(
        home / PLACES["codex"],
        {"timestamp": "2026-11-23T19:31:00Z", "type": "response_item", "payload": item},
    )
    (codex,) = [
        path
        for path in store.extension.files()
        if "codex" in store.read(path[:-3]).frontmatter["source"]
    ]
    store.update(codex[:-3], append="My own remark.")
    plan = plan_import(store)
    assert (plan.new, plan.changed, len(plan.skipped)) == (0, 1, 1)
    apply_plan(store, plan)
    found = notes(store)
    assert "And  on macOS?" in found["claude-code"]
    assert "meta" not in found["claude-code"]
    assert ("And for codex?" in found["codex"], "My own remark." in found["codex"]) == (False, True)


def test_since_and_project_select_sessions(store: EnhancedStore, home: Path) -> None:
    for how in ({"since": parse_moment("2100-01-01")}, {"project": Path("/home/ida/other")}):
        with pytest.raises(Exception, match="nothing to import"):
            plan_import(store, **how)
    assert plan_import(store, project=Path("/home/ida"), since=parse_moment("2020-01-01")).new == 3


def test_older_formats_of_sessions_are_read(store: EnhancedStore) -> None:
    old = Path.home() / ".codex/sessions/2025/06/01/rollout-old.jsonl"
    chats = Path.home() / ".gemini/tmp/f00/chats"
    for folder in (old.parent, chats):
        folder.mkdir(parents=True)
    rules = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nrules\n</INSTRUCTIONS>"
    questions = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in (rules, "Hi?")
    ]
    shell = {
        "type": "local_shell_call",
        "action": {"type": "exec", "command": ["bash", "-lc", "ls"]},
    }
    patch = {
        "type": "custom_tool_call",
        "name": "apply_patch",
        "input": "*** Begin Patch\n*** Add File: b.py",
    }
    add(
        old,
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        *questions,
        shell,
        patch,
    )
    user = {
        "id": "1",
        "timestamp": "2025-10-01T10:00:00Z",
        "type": "user",
        "content": "Which files?",
    }
    answer = {
        "id": "2",
        "timestamp": "2025-10-01T10:00:09Z",
        "type": "gemini",
        "content": "One.",
        "toolCalls": [],
    }
    document = {
        "sessionId": "g",
        "projectHash": "f00",
        "messages": [user, answer],
        "summary": "Files of the house",
    }
    (chats / "session-2025-10-01T10-00-g.json").write_text(json.dumps(document, indent=1))
    forgotten = {
        "id": "3",
        "timestamp": "2025-10-01T10:01:00Z",
        "type": "user",
        "content": "Forget me",
    }
    add(
        chats / "session-2025-10-01T10-00-h.jsonl",
        {"sessionId": "h", "kind": "main"},
        user,
        answer,
        forgotten,
        {"$rewindTo": "3"},
    )
    add(chats / "session-2025-10-01T10-00-s.jsonl", {"sessionId": "s", "kind": "subagent"}, user)
    plan = plan_import(store)
    assert (plan.new, [part.reason for part in plan.skipped]) == (
        3,
        ["it contains no message from the user"],
    )
    text = "\n".join(str(draft.text) for draft in plan.drafts)
    assert "title: Files of the house" in text
    assert "- shell: bash -lc ls\n>\n> - apply_patch: *** Begin Patch *** Add File: b.py" in text
    assert "rules" not in text
    assert "Forget me" not in text


def test_a_file_that_is_no_session_is_skipped_and_the_rest_is_imported(
    store: EnhancedStore, home: Path
) -> None:
    file = home / PLACES["claude-code"]
    file.with_name("agent-1.jsonl").write_text("a subagent's, not read")
    file.with_name("odd.jsonl").write_text('{"type": "user", "message": {"content": [3]}}\n{"cut')
    add(file.with_name("bad.jsonl"), {"type": "user", "message": {"content": 7}})
    plan = plan_import(store, "claude-code")
    assert (plan.new, sorted(Path(part.origin).name for part in plan.skipped)) == (
        1,
        ["bad.jsonl", "odd.jsonl"],
    )


def test_the_command_previews_and_a_dry_run_writes_nothing(tmp_path: Path, home: Path) -> None:
    (tmp_path / "vault" / ".simplemem").mkdir(parents=True)
    vault = ["--vault", str(tmp_path / "vault"), "--json"]
    result = CliRunner().invoke(app, ["import", "sessions", "--dry-run", *vault])
    assert (json.loads(result.stdout)["new"], list(tmp_path.rglob("*.md"))) == (3, [])
    assert (
        CliRunner()
        .invoke(app, ["import", "sessions", "--agent", "codex", "--yes", *vault])
        .exit_code
        == 0
    )
    assert len(list((tmp_path / "vault/archive/sessions/2026/11").glob("*.md"))) == 1
    for wrong in (["--agent", "cursor"], ["--since", "soon"]):
        refused = CliRunner().invoke(app, ["import", "sessions", *wrong, *vault])
        assert (refused.exit_code, "hint" in refused.stdout + refused.stderr) == (1, True)
