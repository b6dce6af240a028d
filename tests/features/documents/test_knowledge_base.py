"""The knowledge base: a folder of Markdown of the vault, or beside it, asked and written by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import eventually

from simplemem.errors import Invalid, NotFound, ReadOnly, TooLong
from simplemem.features.documents.knowledge_base import KnowledgeBase, knowledge_base_of
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
Opened = Callable[..., KnowledgeBase]


@pytest.fixture(params=["beside", "inside"])
def folder(request: pytest.FixtureRequest, vault: Path) -> Path:
    """A knowledge base, in the vault or not, that holds two files."""
    base: Path = vault / "kb" if request.param == "inside" else vault.parent / "kb"
    (base / "docs").mkdir(parents=True)
    (base / "intro.md").write_text("# Intro\n\nThe lighthouse keeper is called Osmund.\n")
    (base / "notes.txt").write_text("The lighthouse keeper is called Zygote.")
    (vault / "diary.md").write_text("The lighthouse keeper is called Maurice.\n")
    return base


@pytest.fixture
def opened(vault: Path, folder: Path) -> Iterator[Opened]:
    stores: list[EnhancedStore] = []

    def open_base(base: Path = folder, **more: object) -> KnowledgeBase:
        settings = {"documents": {"knowledge_base": base}, "embed": {"provider": "none"}, **more}
        stores.append(EnhancedStore(vault, Settings.model_validate(settings)))
        stores[-1].sync()
        return knowledge_base_of(stores[-1])

    yield open_base
    for store in stores:
        store.close()


def passages_for(base: KnowledgeBase, question: str) -> dict[str, str]:
    return {passage["source"]: passage["content"] for passage in base.query(question, 5)[0]}


def test_only_its_notes_are_asked_and_they_are_called_by_their_paths_in_it(opened: Opened) -> None:
    found, _ = opened().query("who is the lighthouse keeper?", 5)
    assert [passage["source"] for passage in found] == ["intro.md"] and "Osmund" in found[0][
        "content"
    ]
    assert found[0].keys() == {"content", "source", "score", "heading", "line"}
    assert found[0]["heading"] == "Intro" and found[0]["line"] >= 1 and 0 < found[0]["score"] <= 1


def test_what_is_in_it_is_in_no_answer_of_the_store_beside_it(
    opened: Opened, folder: Path, vault: Path
) -> None:
    base = opened()
    names = [hit.name for hit in base.store.search("lighthouse keeper").hits]
    assert names == ["diary"] if folder.parent != vault else set(names) == {"diary", "kb/intro"}


@pytest.mark.parametrize(
    "text", ["# Fog\r\n\r\nAt 180 hertz.", "---\nmodified: 2020-01-01\n---\n\nFog.\n", "é\n", ""]
)
def test_a_file_is_written_to_the_byte_again_too(opened: Opened, folder: Path, text: str) -> None:
    base = opened()
    written = base.update("docs/fog horn.md", text)
    assert (folder / "docs" / "fog horn.md").read_bytes() == text.encode() and written.is_new
    again = base.update("docs/fog horn.md", f"{text}More.\r\n", who="agent")
    assert (folder / "docs" / "fog horn.md").read_bytes() == f"{text}More.\r\n".encode()
    assert not again.is_new and again.sha256 != written.sha256 and again.replaced == written.sha256
    assert base.update("docs/fog horn.md", f"{text}More.\r\n").is_new is False
    assert "docs/fog horn.md" in passages_for(base, "fog horn") or not text


def test_a_file_that_is_no_text_is_replaced(opened: Opened, folder: Path) -> None:
    (folder / "odd.md").write_bytes(b"\xff\xfe")
    opened().update("odd.md", "Even.\n")
    assert (folder / "odd.md").read_bytes() == b"Even.\n"


def test_what_a_person_does_there_counts_at_the_next_question(opened: Opened, folder: Path) -> None:
    base = opened()
    assert passages_for(base, "lighthouse keeper")
    (folder / "intro.md").write_text("The lighthouse keeper is called Ida.\n")
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "wreck.md").write_text("The wreck lies at 41 fathoms.\n")
    assert eventually(lambda: "Ida" in passages_for(base, "lighthouse keeper").get("intro.md", ""))
    assert eventually(lambda: "deep/er/wreck.md" in passages_for(base, "the wreck"))
    (folder / "intro.md").unlink()
    assert eventually(lambda: "intro.md" not in passages_for(base, "lighthouse keeper"))


BAD = [
    "", ".md", "../out.md", "/tmp/x.md", "a/../../b.md", "a/./b.md", "x.txt", "noending", ".hidden/x.md", ".simplemem/x.md",
    "x\0.md", "out/through.md", "linked.md", "docs", "docs/", "a//b.md", "a\\b.md", "con.md", "\ud800.md",
    "a/" * 300 + "b.md", "x" * 300 + ".md",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD, ids=lambda path: ascii(path[:20]))
def test_a_path_that_leads_elsewhere_is_refused(
    opened: Opened, folder: Path, tmp_path: Path, path: str
) -> None:
    base, outside = opened(), tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.md").write_text("Kept.\n")
    os.symlink(outside, folder / "out")
    os.symlink(outside / "kept.md", folder / "linked.md")
    with pytest.raises((Invalid, TooLong)):
        base.update(path, "evil")
    assert (outside / "kept.md").read_text() == "Kept.\n" and len(list(outside.iterdir())) == 1
    assert "evil" not in "".join(path.read_text() for path in tmp_path.rglob("*.md"))


def test_rules_hold_there_too(opened: Opened, folder: Path) -> None:
    with pytest.raises(Invalid, match="nothing was written"):
        opened(write={"secrets": "refuse"}).update("key.md", f"The key is {KEY}.\n")
    with pytest.raises(ReadOnly):
        opened(read_only=True).update("plan.md", "A plan.\n")
    assert not (folder / "key.md").exists() and not (folder / "plan.md").exists()


def test_a_question_of_nothing_breaks_nothing(opened: Opened) -> None:
    base = opened()
    for question in ("", "???", '"', "tag:x"):
        base.query(question, 5)


@pytest.mark.parametrize("place", ["vault", ".", "none", "vault/diary.md"])
def test_a_folder_that_cannot_be_one_is_said(opened: Opened, vault: Path, place: str) -> None:
    with pytest.raises(Invalid, match="knowledge base"):
        opened(vault.parent / place)


def test_without_a_folder_there_is_none(plain_store: EnhancedStore) -> None:
    with pytest.raises(NotFound):
        knowledge_base_of(plain_store)


def test_a_passage_of_it_holds_no_comment(opened: Opened, folder: Path) -> None:
    (folder / "crane.md").write_text(
        "# Crane\n\nThe zinc crane <!-- secret --> lifts %%aside%% ten tons.\n"
    )
    [passage] = opened().query("zinc crane", 5)[0]
    assert passage["content"] == "# Crane\n\nThe zinc crane lifts ten tons."
