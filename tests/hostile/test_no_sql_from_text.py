"""No text of a note or a caller is ever part of a statement (durability.md F49, F50).

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
from simplemem.config import Settings
from simplemem.errors import SimplememError
from simplemem.faces.profiles import PROFILES, choose
from simplemem.memory import Filter
from simplemem.server.calls import perform
from simplemem.server.door import Door
from simplemem.store import EnhancedStore

ROOT = Path(simplemem.__file__).parent
_SQL = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|FROM|WHERE|ORDER BY|MATCH|JOIN|VALUES|EXISTS)\b"
)
_TEXTS = (ast.JoinedStr, ast.BinOp, ast.Call)
_RUNS_SQL = {"execute", "executemany"}

OURS = {
    ("index/file.py", "name"): "one of two pragmas",
    ("index/file.py", "setting"): "one of four pragmas",
    ("index/notes.py", "name"): "a table of ours, where one is declared",
    ("index/notes.py", "columns"): "its columns, declared with it",
    ("index/notes.py", "owner"): "one of its columns",
    ("index/notes.py", "places"): "as many question marks as it has columns",
    ("index/filters.py", "where"): "what Narrow.condition put together: names and numbers of its own",
    ("index/filters.py", "name"): "one of two letters, from a list there",
    ("index/legs.py", "narrowed"): "one of two conditions",
    ("index/legs.py", "row"): "a column of our tables",
    ("index/legs.py", "score"): "an expression written there",
    ("index/legs.py", "table"): "one of our tables, by the leg",
    ("index/text.py", "table"): "one of our tables, from a list there",
    ("index/vector_cache.py", "marks"): "as many question marks as there are values",
    ("index/audit.py", "table"): "one of our tables, from a list there",
    ("index/audit.py", "owner"): "a column of our tables, from a list there",
    ("index/audit.py", "leg"): "one of our tables, from a list there",
    ("index/changes.py", "condition"): "written there",
    ("index/changes.py", "', '.join('?' * 15)"): "as many question marks as there are values",
    ("index/vectors.py", "waits"): "one of two conditions",
}
"""What a statement is made of that the reading below can't see to be ours, and why it is."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ROOT.rglob("*.py")):
        yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def says_sql(node: ast.AST) -> bool:
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return bool(_SQL.search(" ".join(texts)))


def is_ours(node: ast.expr, bound: dict[str, list[ast.expr]], seen: frozenset[str] = frozenset()) -> bool:
    """Whether this can only be text of the source itself, or a number."""
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr():
            return all(is_ours(part.value, bound, seen) for part in node.values if isinstance(part, ast.FormattedValue))
        case ast.Name(name):
            if name.strip("_").isupper():
                return True
            values = bound.get(name, [])
            return name not in seen and bool(values) and all(is_ours(each, bound, seen | {name}) for each in values)
        case ast.Attribute(value=value, attr=attr):
            of_a_shelf = attr in ("table", "flag") and ast.unparse(value).split(".")[-1].lower() in (
                "shelf",
                "now",
                "next",
            )
            return of_a_shelf or attr.isupper()
        case ast.Subscript(value=value):
            return is_ours(value, bound, seen)
        case ast.IfExp(body=body, orelse=orelse):
            return is_ours(body, bound, seen) and is_ours(orelse, bound, seen)
        case ast.BinOp(left=left, right=right):
            return is_ours(left, bound, seen) and is_ours(right, bound, seen)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return all(is_ours(each, bound, seen) for each in elements)
        case ast.Call(func=ast.Name("enumerate")) | ast.Call(func=ast.Name("len")):
            return True
    return False


def bindings(function: ast.AST) -> dict[str, list[ast.expr]]:
    """What each local name may be: what is assigned to it, or what a loop over it goes through."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            target, through = node.target, node.iter
            if (
                isinstance(target, ast.Tuple)
                and isinstance(through, ast.Call)
                and ast.unparse(through.func) == "enumerate"
            ):
                target = target.elts[0]
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(through)
    for argument in ast.walk(function):
        if isinstance(argument, ast.arg):
            found.setdefault(argument.arg, []).append(ast.Name("given_by_a_caller"))
    return found


def put_into_statements() -> Iterator[tuple[str, int, str]]:
    """Everything that is put into a statement and is not plainly ours."""
    for path, tree in sources():
        owner: dict[int, ast.AST] = {}
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                owner |= {
                    id(node): function for node in ast.walk(function) if isinstance(node, _TEXTS)
                }  # the innermost last
        for node in ast.walk(tree):
            if not (isinstance(node, _TEXTS) and says_sql(node)):
                continue
            bound = bindings(owner.get(id(node), tree))
            if isinstance(node, ast.JoinedStr):
                for part in node.values:
                    if isinstance(part, ast.FormattedValue) and not is_ours(part.value, bound):
                        yield path, node.lineno, ast.unparse(part.value)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
                if not is_ours(node, bound):
                    yield path, node.lineno, ast.unparse(node)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".format") and says_sql(node.func):
                yield path, node.lineno, ast.unparse(node)


def test_what_is_put_into_a_statement_is_a_name_of_our_own() -> None:
    strange = [f"{path}:{line} {what}" for path, line, what in put_into_statements() if (path, what) not in OURS]
    assert not strange, "bind it as a value, or say in OURS why it is nobody's text:\n" + "\n".join(strange)


def test_sql_is_spoken_in_the_index_alone() -> None:
    speaking = {
        path
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_SQL
    }
    assert {path for path in speaking if not path.startswith("index/")} == set()


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
        def note(_cursor: Any, sql: str, _values: Any) -> bool:
            heard.add(sql)
            return True

        connection.exec_trace = note

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, listen])
    return heard


def filled(shape: dict[str, Any], text: str) -> Any:
    kind = shape.get("type")
    if kind == "object":
        return {text: text, "tags": [text], "title": text}
    if kind == "array":
        return [dict.fromkeys(shape.get("items", {}).get("properties", {}), text) or text]
    return text if kind == "string" else None


def fitting(shape: dict[str, Any], text: str) -> Any:
    """What fits the schema of a tool that is strict about it, with the text wherever one may stand."""
    match shape.get("type"):
        case "object":
            return {name: fitting(each, text) for name, each in shape.get("properties", {}).items()}
        case "array":
            return [fitting(shape["items"], text)]
        case "number":
            return 0.5
        case "boolean":
            return True
        case _:
            return text


def test_a_mark_in_every_argument_of_every_graph_server_is_in_no_statement(vault: Path, statements: set[str]) -> None:
    settings = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
    store = EnhancedStore(vault, settings)
    door = Door(vault, lambda: store)
    worked = set()
    for tool in choose(PROFILES["memento"]):
        for injection in INJECTIONS:
            asked = fitting(tool.input, injection.format(m=MARK))
            if not perform(tool, door, asked, MARK).is_error:
                worked.add(tool.name)
    door.close(writing=1, closing=5)
    assert len(worked) > 12, "they do their work, and do not only refuse"
    assert len(statements) > 20
    assert [sql for sql in statements if MARK in sql] == []


def test_a_mark_in_every_argument_of_every_tool_is_in_no_statement(vault: Path, statements: set[str]) -> None:
    settings = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
    store = EnhancedStore(vault, settings)
    door = Door(vault, lambda: store)
    for k in range(3):
        store.create(f"{MARK}{k}", f"A plum {MARK} see [[{MARK}0]] #{MARK}", {"tags": [MARK], "type": MARK})
    for tool in (tool for profile in PROFILES.values() for tool in choose(profile)):
        shapes = tool.listing()["inputSchema"]["properties"]
        for number, injection in enumerate(INJECTIONS):
            text = injection.format(m=MARK)
            every = {name: value for name, shape in shapes.items() if (value := filled(shape, text)) is not None}
            perform(tool, door, every, f"{text} 1")
            for name in list(every)[number % len(INJECTIONS) :: len(INJECTIONS)]:
                alone = {"name": f"{MARK}1", "query": "plum", "content": text, name: every[name]}
                perform(tool, door, alone, text)
    for field in ("type", "prefix", "link_to", "linked_by", "since", "until"):
        for injection in INJECTIONS:
            try:
                store.search("plum", filter=Filter.of(**{field: injection.format(m=MARK)}))
            except SimplememError:
                continue
    door.close(writing=1, closing=5)
    assert len(statements) > 30
    assert [sql for sql in statements if MARK in sql] == []
    with EnhancedStore(vault, settings) as after:
        assert [finding for finding in after.doctor() if finding.level == "error"] == []
