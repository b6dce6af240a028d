"""Only bound parameters carry what people and notes say into SQL (F50): read in the source, and tried with a corpus."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simplemem
from simplemem.errors import SimplememError
from simplemem.memory import Filter
from simplemem.store import EnhancedStore

_PACKAGE = Path(simplemem.__file__).parent
_RUNS_SQL = {"execute", "executemany"}

# What may stand in an SQL text beside its letters: names of tables and columns that the source itself lists, numbers,
# and conditions put together from such with a `?` for every value. A new one is looked at before it is written here.
_OF_OUR_OWN = {
    "_COLUMNS", "_KNOWN", "_ROW", "_SCHEMA.read_text(encoding='utf-8')", "_vectors_of(note_id, found.shelf)", "blocks",
    "found.shelf.flag", "found.shelf.table", "owner", "name", "shelf.flag", "shelf.table", "table", "wants_nothing", "where",
    "APPLICATION_ID", "SCHEMA_VERSION", "_SUMS", "leg", "rows",
}  # fmt: skip

HOSTILE = (
    "' OR '1'='1", "' OR 1=1 --", '" OR ""="', "'; DROP TABLE notes; --", "') UNION SELECT sql FROM sqlite_master --",
    "%", "_", "*", "?", "[a-z]", "tea%' --", "\\", "`", "';--", "1; ATTACH DATABASE '/tmp/x' AS y", "x' AND 1=0 UNION ALL "
    "SELECT path FROM notes --", "\x00", "NEAR(a b)", "a OR b", "title:tea", '"', "''", "tea' || 'x", "{0}", "%s", ":first",
    "?1", "$x", "@x", "load_extension('x')", "(SELECT path FROM notes)", "tea*", "^tea", "-tea", "é'\u2028--",
)  # fmt: skip


def spliced() -> set[str]:
    """The source of whatever is put into an SQL text that is run at once."""
    found: set[str] = set()
    for file in _PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_SQL
            ):
                continue
            for part in ast.walk(node.args[0]) if node.args else ():
                if isinstance(part, ast.FormattedValue):
                    found.add(ast.unparse(part.value))
                elif isinstance(part, (ast.BinOp, ast.Call)):
                    found.add(ast.unparse(part))
    return found


def test_nothing_but_names_of_our_own_is_put_into_a_statement() -> None:
    assert spliced() - _OF_OUR_OWN == set()
    assert spliced(), "the statements are found at all"


@pytest.fixture
def filled(plain_store: EnhancedStore, write: Callable[..., Path]) -> EnhancedStore:
    write("tea.md", "---\ntags: [drink, status/done]\ntype: note\n---\nOolong. [[cup]]\n")
    write("cup.md", "A cup.\n")
    plain_store.sync()
    return plain_store


def test_a_hostile_text_finds_what_it_says_and_nothing_more(filled: EnhancedStore) -> None:
    for text in HOSTILE:
        for ask in asks_with(filled, text):
            try:
                assert not ask(), text
            except SimplememError as refused:
                assert refused.code in ("invalid", "not_found", "too_long"), (text, refused)
        filled.search(text, explain=True)
        filled.context(text, budget_tokens=200)
        assert filled.list().total == 2
    assert [finding.message for finding in filled.doctor() if finding.level == "error"] == []


def asks_with(filled: EnhancedStore, text: str) -> list[Callable[[], Any]]:
    """Every place where a question takes a text."""
    return [
        lambda: filled.list(filter=Filter.of(tags={text: True})).items,
        lambda: filled.list(filter=Filter.of(tags={"status": text})).items,
        lambda: filled.list(filter=Filter.of(type=text)).items,
        lambda: filled.list(filter=Filter.of(prefix=text)).items,
        lambda: filled.search("oolong", filter=Filter.of(tags={text: True})).hits,
        lambda: filled.search(f'"{text}" qqqq', mode="text", filter=Filter.of(type=text)).hits,
        lambda: filled.list(filter=Filter.of(link_to=text)).items,
        lambda: filled.list(filter=Filter.of(since=text, type="nothing")).items,
        lambda: filled.list(sort=text).items,
        lambda: filled.list(cursor=text).items,
        lambda: filled.names(text) if text.strip("%_*?") and "tea" not in text else [],
        lambda: filled.read(text),
    ]
