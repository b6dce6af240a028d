"""No text of a note or a caller is ever part of a statement.

Read from the code: what an f-string puts into SQL is a name of our own. And seen at work: a mark that goes into every
argument of every tool turns up among the bound values, and in no statement.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import simplemem
from simplemem.errors import SimplememError
from simplemem.models import Filter
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import ToolCall, answer_call
from simplemem.server.executor import StoreExecutor
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

ROOT = Path(simplemem.__file__).parent
_SQL = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|FROM|WHERE|ORDER BY|MATCH|JOIN|VALUES|EXISTS)\b"
)
OURS = {
    "index/audit.py": "count",
    "index/comparison.py": "note_id other_columns table",
    "index/changes.py": "condition order texts mark",
    "index/details.py": "source is_one_of_the_notes",
    "index/service.py": "_ORDER[sort] source first",
    "index/filters.py": "alternatives is_below is_in_one operator operator.join(alternatives) conditions.as_sql() mark key_mark value_mark nested_mark text_mark number_mark",
    "index/postgres/connection.py": "name table",
    "index/postgres/vectors.py": "mark first after is_among count column",
    "index/postgres/database.py": "name schema sql.Identifier(self.schema).as_string() table fresh_schema",
    "index/notes.py": "columns table where is_one_of_the_keys",
    "index/sqlite/engine.py": "setting first after is_among table dimension",
    "index/terms/query_terms.py": "positions has_deleted_notes needs_positions",
    "index/terms/merging.py": "is_in_range is_one_of_them",
    "index/terms/writer.py": "table is_one_of_them is_one_of_the_notes is_in_old_segment",
}
"""By file, what a statement is made of that the reading below cannot see to be ours: tables, columns and conditions out
of lists of that file, and numbers. A name that comes from a caller or a note has no place here: it is bound as a
value."""


def sources(word: str = "") -> Iterator[tuple[str, ast.Module]]:
    """The files of the program that contain a word."""
    for file in sorted(ROOT.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if word in source:
            yield file.relative_to(ROOT).as_posix(), ast.parse(source)


def says_sql(node: ast.AST) -> bool:
    texts = [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return bool(_SQL.search(" ".join(texts)))


def is_ours(node: ast.expr, known: list[str]) -> bool:
    """Whether this can only be text of the source itself, or a number."""
    if ast.unparse(node) in known:
        return True
    match node:
        case ast.Constant() | ast.Call(func=ast.Name("len" | "marks")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="dialect")), args=pieces):
            return all(is_ours(piece, known) for piece in pieces)
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(
                is_ours(getattr(part, "value", part), known)
                for part in parts
                if not isinstance(part, ast.Constant)
            )
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.strip("_").isupper()
        case ast.Subscript(value=value):
            return is_ours(value, known)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return is_ours(one, known) and is_ours(other, known)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[inside]):
            return is_ours(inside, known)
    return False


def is_put_together(node: ast.AST) -> bool:
    """Whether it is SQL with something in it."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return says_sql(node)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return says_sql(text)
    return False


def test_what_is_put_into_a_statement_is_a_name_of_our_own() -> None:
    strange = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in sources()
        for node in filter(is_put_together, ast.walk(tree))
        if isinstance(node, ast.expr) and not is_ours(node, OURS.get(path, "").split())
    ]
    assert not strange, (
        "bind it as a value, or say in OURS that it is nobody's text:\n" + "\n".join(strange)
    )


def test_sql_is_spoken_in_the_index_alone_and_to_a_database_that_is_imported() -> None:
    speaking = {
        path
        for path, tree in sources("execute")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") in ("execute", "executemany")
    }
    assert {path for path in speaking if not path.startswith("index/")} == {"importers/memories.py"}


INJECTIONS = [
    "{m}'; DROP TABLE notes; --", '{m}" OR "1"="1', "{m}') UNION SELECT sql FROM sqlite_master --", "{m}%' OR '%'='",
    "{m}\\'; DELETE FROM notes; --", "{m}) OR (1=1", "{m}; ATTACH 'x' AS y; --", "{m}*", "{m}?", "{m}_%[a]", "{m}:t0k0",
    "{m}`", "{m}/*", "{m}\" NEAR \"x",
]  # fmt: skip
MARK = "zqxmark"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that any connection is given from now on."""
    heard: set[str] = set()

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = lambda _cursor, sql, _values: heard.add(sql) is None

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, listen])
    return heard


def fitting(shape: dict[str, Any], text: str) -> Any:
    """What fits the schema of an argument, with the text wherever one may stand."""
    match shape.get("type"):
        case "object" if "properties" in shape:
            return {name: fitting(each, text) for name, each in shape["properties"].items()}
        case "object":
            return {text: text, "tags": [text], "title": text}
        case "array":
            return [fitting(shape["items"], text)]
        case "string" | None:
            return shape["enum"][0] if "enum" in shape else text
    return {"number": 0.5, "boolean": True}.get(shape["type"])


def test_a_mark_in_every_argument_of_every_tool_is_in_no_statement(
    vault: Path, statements: set[str]
) -> None:
    settings = Settings.model_validate(
        {"embed": {"provider": "none"}, "write": {"durability": "fast"}}
    )
    store = EnhancedStore(vault, settings)
    door = StoreExecutor(lambda: store)
    for k in range(3):
        store.create(
            f"{MARK}{k}", f"A plum {MARK} see [[{MARK}0]] #{MARK}", {"tags": [MARK], "type": MARK}
        )
    worked = set()
    for name, tool in (
        (face.name, tool) for face in built_in_profiles().values() for tool in choose_tools(face)
    ):
        shapes = tool.listing()["inputSchema"]["properties"]
        for number, injection in enumerate(INJECTIONS):
            text = injection.format(m=MARK)
            every = {key: fitting(shape, text) for key, shape in shapes.items()}
            alone = [
                {key: every[key]}
                for key in list(every)[number % len(INJECTIONS) :: len(INJECTIONS)]
            ]
            for sent in (
                every,
                *({"name": f"{MARK}1", "query": "plum", "content": text} | each for each in alone),
            ):
                arguments = {key: sent[key] for key in shapes.keys() & sent.keys()}
                if not answer_call(tool, door, ToolCall(arguments, text)).is_error:
                    worked.add((name, tool.name))
    for field in ("type", "prefix", "link_to", "linked_by", "since", "until"):
        for injection in INJECTIONS:
            try:
                store.search("plum", filter=Filter.of(**{field: injection.format(m=MARK)}))
            except SimplememError:
                continue
    door.close(writing=1, closing=5)
    assert len(worked) > 40, "they do their work, and do not only refuse"
    assert len(statements) > 30 and [sql for sql in statements if MARK in sql] == []
    with EnhancedStore(vault, settings) as after:
        assert [finding for finding in after.doctor() if finding.level == "error"] == []
