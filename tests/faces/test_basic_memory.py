"""The face of basic-memory, held to what its release 0.24.1 was seen to take and to answer (bench/basic_memory.py asks the
package itself)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from sdk_client import LEGACY, MODERN, connected, run, text_of

from simplemem.faces.basic_project import observations, slug
from simplemem.store import open_store

THEIRS = Path(__file__).parents[1] / "data" / "imports" / "basic-memory"
TEA = """# Tea

How we brew.

## Facts

- [fact] Water at 80 degrees #water (measured by Ann)
- [ ] a todo item

## Links

- pairs_with [[Ginger Cake]]
- requires [[Blue Kettle]] (always)
- [[Cups]]
"""
NOTES: list[dict[str, Any]] = [
    {"title": "Tea: A Guide", "content": TEA, "directory": "docs/drinks", "tags": ["tea"], "note_type": "guide",
     "metadata": {"status": "draft", "priority": 2}},
    {"title": "Ginger Cake", "content": "Spicy.\n- [recipe] Two spoons #ginger\n- goes_with [[Tea: A Guide]]\n",
     "directory": "docs/food", "tags": "cake, sweet"},
    {"title": "Blue Kettle", "content": "Boils in 3 minutes.", "directory": "docs"},
]  # fmt: skip


class Asked:
    """One client over the protocol, tool by tool; what it was told stands in `failed`."""

    def __init__(self, client: Any) -> None:
        self.client, self.failed = client, False

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        self.failed, text = bool(result.is_error), text_of(result)
        data = json.loads(text) if text[:1] in ("{", "[") and arguments.get("output_format", "") != "text" else text
        if not self.failed:
            said = {"true": True, "false": False}.get(text, data)
            assert result.structured_content == {"result": said}
        return data


def asked(vault: Path, body: Any, mode: str = MODERN) -> None:
    async def talk() -> None:
        async with connected(vault, mode, "basic-memory") as client:
            ask = Asked(client)
            for each in NOTES:
                await ask("write_note", **each)
            await body(ask)

    run(talk)


@pytest.mark.parametrize(
    ("path", "permalink"),
    {
        "docs/Tea Brewing- A Guide.md": "docs/tea-brewing-a-guide",
        "Some Folder/Sub_Dir/camelCaseName.md": "some-folder/sub-dir/camel-case-name",
        "HTTPServer v1.2.3.md": "httpserver-v1.2.3",
        "it's a dog’s life.md": "its-a-dogs-life",
        "a & b + c.md": "a-b-c",
        "dots...and,commas.md": "dots...and-commas",
        "iPhone12Pro.md": "i-phone12-pro",
        "2024Report.md": "2024-report",
        "Ünïcode ß Ø æ.md": "unicode-ss-o-ae",
        "Łódź.md": "lodz",
        "node.js.md": "node.js",
        "100% (sure) [ok].md": "100-sure-ok",
        "中文 mixed English.md": "中文-mixed-english",
        "a–b—c.md": "a-b-c",
        "C++ & C#.md": "c-c",
    }.items(),
)
def test_a_permalink_is_made_of_the_path(path: str, permalink: str) -> None:
    assert slug(path) == permalink


def test_observations_are_what_they_take_for_one() -> None:
    text = """- [fact] simple
- [two words] spaced #a/b category
- [fact]nospace
- [] nothing
- [ ] todo #tag
- [x] done
- [link](http://x.y) item
* [star] star
1. [num] numbered
  - [nested] item (one) (two)
- no category but #hashtag
- [c] has context (in middle) more
- [c] (only context)
- rel [[T1]] #tag
- rel [[T2]]
- url http://x/#frag
> - [q] quoted
```
- [code] in code #x
```
"""
    assert list(observations(text)) == [
        ("fact", "simple"),
        ("two words", "spaced #a/b category"),
        ("star", "star"),
        ("num", "numbered"),
        ("nested", "item (one)"),
        ("note", "no category but #hashtag"),
        ("c", "has context (in middle) more"),
        ("note", "rel [[T1]] #tag"),
    ]


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_notes_are_written_and_read_in_its_words(vault: Path, mode: str) -> None:
    async def body(ask: Asked) -> None:
        text = await ask("read_note", identifier="memory://docs/drinks/tea-a-guide", output_format="text")
        assert (
            text == (vault / "docs/drinks/Tea- A Guide.md").read_text()
            and "permalink: main/docs/drinks/tea-a-guide" in text
        )
        for each in ("Tea: A Guide", "main/docs/drinks/tea-a-guide", "docs/drinks/Tea- A Guide.md", "[[tea: a guide]]"):
            data = await ask("read_note", identifier=each, output_format="json")
            assert data["frontmatter"]["priority"] == 2 and data["content"] == TEA and len(data["checksum"]) == 64
        kettle: dict[str, Any] = {"title": "Blue Kettle", "content": "Boils in 5 minutes.", "directory": "docs"}
        told = await ask("write_note", **kettle)
        assert ask.failed and told.startswith(
            '# Error: Note already exists\n\n**"Blue Kettle"** already exists (`main/docs/'
        )
        assert (await ask("write_note", **kettle, output_format="json"))["error"] == "NOTE_ALREADY_EXISTS"
        stale = await ask("write_note", **kettle, overwrite=True, expected_checksum="abc", output_format="json")
        assert (stale["error"], stale["action"]) == ("NOTE_REVISION_CONFLICT", "conflict")
        read = await ask("read_note", identifier="Blue Kettle", include_content=False, output_format="json")
        assert read["checksum"] == stale["currentChecksum"] and "content" not in read
        told = await ask("write_note", **kettle, overwrite=True, tags=["k"], expected_checksum=read["checksum"])
        assert told.startswith(
            "# Updated note\nproject: main\nfile_path: docs/Blue Kettle.md\npermalink: main/docs/blue-kettle\n"
        )
        assert "\n## Tags\n- k\n" in told
        lines = await ask("read_note", identifier="docs/blue-kettle", start_line=1, end_line=2)
        assert lines.startswith("Lines 1-2 of ") and lines.endswith(
            "start_line=3, end_line=4\n1: ---\n2: title: Blue Kettle"
        )
        told = await ask("read_note", identifier="ginger")
        assert (
            told.startswith('\n# Note Not Found in main: "ginger"\n') and "## 1. Ginger Cake" in told and not ask.failed
        )
        assert (await ask("read_note", identifier="ginger", output_format="json"))["error"] == "NOTE_NOT_FOUND"
        outside = await ask("write_note", title="x", content="x", directory="../out")
        assert ask.failed and "paths must stay within project boundaries" in outside
        assert (await ask("read_note", identifier="x", project="other")) == "Project not found: 'other'" and ask.failed

    asked(vault, body, mode)


def test_edits_count_what_they_replace_and_find_their_section(vault: Path) -> None:
    async def body(ask: Asked) -> None:
        async def edit(operation: str, content: str, **more: Any) -> Any:
            return await ask("edit_note", identifier="Tea: A Guide", operation=operation, content=content, **more)

        assert (await edit("append", "- [new] fact")).startswith("# Edited note (append)\nproject: main\n")
        assert "operation: Replaced content under section '## Facts'" in await edit(
            "replace_section", "New.", section="## Facts"
        )
        await edit("insert_before_section", "Before.", section="Links")
        await edit("prepend", "First.", metadata={"status": "done", "title": "Nope"})
        text = (vault / "docs/drinks/Tea- A Guide.md").read_text()
        assert (
            "---\n\nFirst.\n# Tea" in text
            and "## Facts\nNew.\n\nBefore.\n\n## Links\n" in text
            and text.endswith("- [new] fact")
        )
        assert 'title: "Tea: A Guide"' in text and "status: done" in text
        for heading, more in (
            ("# Edit Failed - Text Not Found\n", {"operation": "find_replace", "find_text": "nowhere"}),
            (
                "# Edit Failed - Wrong Replacement Count\n\nExpected 2 ",
                {"find_text": "brew", "expected_replacements": 2},
            ),
            ("# Edit Failed\n\nError editing note", {"operation": "replace_section", "section": "## Nope"}),
            ("# Edit Failed - Note Revision Conflict\n", {"operation": "append", "expected_checksum": "abc"}),
        ):
            assert (await edit(**{"operation": "find_replace", "content": "x"} | more)).startswith(
                heading
            ) and ask.failed
        assert (vault / "docs/drinks/Tea- A Guide.md").read_text() == text
        made = await ask("edit_note", identifier="d/new one", operation="append", content="x", output_format="json")
        assert made["fileCreated"] and made["permalink"] == "main/d/new-one"
        told = await ask("edit_note", identifier="none", operation="find_replace", content="x", find_text="y")
        assert ask.failed and told.startswith("# Edit Failed - Note Not Found\n")

    asked(vault, body)


def test_what_is_found_has_its_shapes(vault: Path) -> None:
    async def body(ask: Asked) -> None:
        async def titles(**more: Any) -> list[str]:
            return [each["title"] for each in (await ask("search_notes", **more, output_format="json"))["results"]]

        text = await ask("search_notes", query="ginger")
        assert text.startswith(
            "# Search Results: ginger\n*project: main*\n\n### Ginger Cake\n- permalink: main/docs/food/ginger-cake\n"
        )
        assert text.endswith("| page 1, page_size 10*") and (await ask("search_notes")).startswith(
            "# No Search Criteria\n"
        )
        assert (await ask("search_notes", query="zzqqx")).startswith("No results found for 'zzqqx' in project 'main'.")
        guide = ["Tea: A Guide"]
        for more in ({"tags": "tea"}, {"status": "draft"}, {"note_types": ["GUIDE"]}, {"query": "tag:tea"}):
            assert await titles(**more) == guide, more
        for wanted, found in (({"$gt": 1}, guide), ({"$in": [1, 3]}, []), (2, guide), ({"$exists": True}, guide)):
            assert await titles(metadata_filters={"priority": wanted}) == found, wanted
        assert await titles(query="docs/*", search_type="permalink", page_size=2, page=2) == ["Ginger Cake"]
        assert await titles(categories=["recipe"]) == ["recipe: Two spoons #ginger..."]
        assert await titles(query="kettle", entity_types=["relation"]) == ["Tea: A Guide -> Blue Kettle"]
        data = await ask("build_context", url="memory://docs/drinks/tea-a-guide")
        [result] = data["results"]
        assert [(each["category"], each["content"]) for each in result["observations"]] == [
            ("fact", "Water at 80 degrees #water")
        ]
        related = [each.get("relation_type") or each["title"] for each in result["related_results"]]
        assert related == ["links_to", "pairs_with", "requires", "goes_with", "Ginger Cake", "Blue Kettle"]
        assert [len((await ask("build_context", url=url))["results"]) for url in ("docs/*", "docs/nope")] == [3, 0]
        text = await ask("build_context", url="Blue Kettle", output_format="text")
        assert (
            "### Relations\n- [[Tea: A Guide]] requires [[Blue Kettle]]\n" in text and "*1 primary, 2 related |" in text
        )
        text = await ask("recent_activity", page_size=2)
        assert "**📄 Recent Notes & Documents (2):**\n  • " in text and "Use page=2 to see more." in text
        assert (
            len(await ask("recent_activity", type=["observation"], timeframe="2 days ago", output_format="json")) == 2
        )
        assert (
            await ask("recent_activity", timeframe="gibberish")
        ) == "Could not parse timeframe: gibberish" and ask.failed
        text = await ask("list_directory", dir_name="/docs")
        assert "📁 drinks                         /docs/drinks\n" in text and text.endswith(
            "Total: 3 items (2 directories, 1 file)"
        )
        nodes = (await ask("list_directory", depth=3, file_name_glob="*ea*", output_format="json"))["nodes"]
        assert [node["file_path"] for node in nodes] == ["docs/drinks/Tea- A Guide.md"]

    asked(vault, body)


def test_moves_and_deletes_can_be_undone_and_links_follow(vault: Path) -> None:
    async def body(ask: Asked) -> None:
        told = await ask("move_note", identifier="Blue Kettle", destination_path="archive/The Kettle.md")
        assert told.startswith("✅ Note moved successfully\n") and "🔗 Permalink: main/docs/blue-kettle\n" in told
        assert "requires [[The Kettle" in (vault / "docs/drinks/Tea- A Guide.md").read_text()
        for more, error in (
            ({"destination_path": "x/noext"}, "FILE_EXTENSION_REQUIRED"),
            ({"destination_path": "../x.md"}, "SECURITY_VALIDATION_ERROR"),
            ({}, "MISSING_DESTINATION"),
        ):
            moved = await ask("move_note", identifier="Ginger Cake", **more, output_format="json")
            assert (moved["moved"], moved["error"]) == (False, error) and not ask.failed
        told = await ask("move_note", identifier="docs", destination_path="old/docs", is_directory=True)
        assert told.startswith("# Directory Moved Successfully\n") and "- Total files: 2\n" in told
        assert await ask("delete_note", identifier="nope") == "false"
        assert await ask("delete_note", identifier="docs/blue-kettle") == "true"
        told = await ask("delete_note", identifier="old", is_directory=True)
        assert "- `old/docs/food/Ginger Cake.md`" in told and not list(vault.glob("old/docs/*/*.md"))

    asked(vault, body)
    with open_store(vault) as store:
        store.undo(store.last_step())
    assert (vault / "old/docs/food/Ginger Cake.md").is_file() and (vault / "old/docs/drinks/Tea- A Guide.md").is_file()


def test_a_vault_of_theirs_is_served_and_not_one_byte_is_changed(vault: Path) -> None:
    shutil.copytree(THEIRS, vault, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}

    async def body(ask: Asked) -> None:
        found = await ask("search_notes", query="*", page_size=100, output_format="json")
        for each in found["results"]:
            assert (await ask("read_note", identifier=each["permalink"], output_format="json"))["file_path"] == each[
                "file_path"
            ]
        assert (await ask("list_directory", depth=10, page_size=200, output_format="json"))["total"] > len(before)

    asked(vault, body)
    assert {path: path.read_bytes() for path in before} == before
