"""Every regular expression of the code, found by reading it, does work in proportion to its text (F46, G11).

Module-level patterns are tried with every operation that the code uses them for; one written inside a function, with its own
operation. A pattern that is made while the program runs has to be named here.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from effort import LONG
from linear import HOSTILE, grows_too_fast

import simplemem
from simplemem.kinds.graph.spelling import split_attributes

ROOT = Path(simplemem.__file__).parent
SIZE = 128_000 if LONG else 16_000
MADE_WHILE_RUNNING = {
    ("note/names.py", "pattern"): "one of a table, in which they are found below",
    ("embed/prefixes.py", "shape"): "one of the module's own few, tried on the name of a model",
    ("search/excerpt.py", "re.escape(word)"): "one word, to the letter",
    ("vault/place.py", "pattern"): "one of a table, in which they are found below",
    (
        "note/secrets.py",
        "f'(?<![\\\\w-]){re.escape(letters)}({rest})(?![A-Za-z0-9])'",
    ): "one of a table, in which they are found below",
}
SEARCHES = {"search", "sub", "subn", "split", "findall", "finditer"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ROOT.rglob("*.py")):
        yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def is_re(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "re"


def uses(trees: dict[str, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """What is done with a name: anywhere, or in its own module when it begins with an underscore."""
    found: dict[tuple[str, str], set[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                place = path if node.value.id.startswith("_") else ""
                found.setdefault((place, node.value.id), set()).add(node.attr)
    return found


def patterns() -> Iterator[tuple[str, str, str, list[re.Pattern[str]]]]:
    """Module, name or place, operation on a text, and the pattern or its alternatives."""
    read = dict(modules())
    used = uses(read)
    for path, tree in read.items():
        names = {
            id(node.value): target.id
            for node in ast.walk(tree)
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        handed = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_re(node.func.value)):
                continue
            if node.func.attr in ("escape", "purge") or (path, ast.unparse(node.args[0])) in MADE_WHILE_RUNNING:
                continue
            name = names.get(id(node), f"line {node.lineno}")
            operations = used.get((path if name.startswith("_") else "", name), set()) & {
                "match",
                "fullmatch",
                *SEARCHES,
            }
            if id(node) in handed:  # `re.compile(...).match` under a name
                operations = {handed[id(node)]}
            if node.func.attr != "compile":
                operations = {node.func.attr}
            # A pattern in a table, or one that is handed on, may be used for anything.
            for operation in {"search" if each in SEARCHES else each for each in operations or {"search"}}:
                yield path, name, operation, compiled(path, node)

    for path in read:
        for pattern in patterns_in(vars(module_at(path)), depth=3):
            yield path, "a table", "match", [pattern]  # how those in tables are used


def patterns_in(held: object, depth: int) -> Iterator[re.Pattern[str]]:
    """The patterns that stand in tables of a module; those that have a name are found in its code."""
    items = held.values() if isinstance(held, dict) else held if isinstance(held, (tuple, list)) else ()
    for item in items:
        if isinstance(item, re.Pattern):
            if isinstance(held, (tuple, list)):
                yield item
        elif depth:
            yield from patterns_in(item, depth - 1)


def module_at(path: str) -> ModuleType:
    dotted = path.removesuffix(".py").replace("/", ".").removesuffix("__init__")
    return importlib.import_module(f"simplemem.{dotted}".rstrip("."))


def compiled(path: str, call: ast.Call) -> list[re.Pattern[str]]:
    module = module_at(path)
    wanted = call.args[0]
    choices = [wanted.body, wanted.orelse] if isinstance(wanted, ast.IfExp) else [wanted]
    flags = call.args[1] if len(call.args) > 1 and call.func.attr == "compile" else None  # type: ignore[attr-defined]
    value = eval(ast.unparse(flags), vars(module)) if flags is not None else 0
    return [re.compile(eval(ast.unparse(each), vars(module)), value) for each in choices]


FOUND = list(patterns())


def test_the_search_for_patterns_finds_them() -> None:
    assert "note/secrets.py" in {path for path, name, _, _ in FOUND if name == "a table"}
    assert len(FOUND) > 150
    assert ("note/body.py", "match") in {(path, operation) for path, _, operation, _ in FOUND}


@pytest.mark.parametrize("path", sorted({path for path, _, _, _ in FOUND}))
def test_a_pattern_does_twice_the_work_for_twice_the_text(path: str) -> None:
    slow = []
    for where, name, operation, choices in FOUND:
        if where != path:
            continue
        for pattern in choices:
            for piece in HOSTILE:
                told = grows_too_fast(lambda text, p=pattern, o=operation: used_on(p, o, text), piece, SIZE)
                if told:
                    slow.append(f"{where}: {name}.{operation}: {told}")
    assert not slow, "\n".join(slow)


def used_on(pattern: re.Pattern[str], operation: str, text: str) -> None:
    held: Any = text if isinstance(pattern.pattern, str) else text.encode()
    if operation == "search":
        for _ in pattern.finditer(held):
            pass
    else:
        getattr(pattern, operation)(held)


def test_a_pattern_that_is_not_linear_would_be_found() -> None:
    quadratic = re.compile(r"\[\[([^\]]+)\]\]")
    assert grows_too_fast(lambda text: used_on(quadratic, "search", text), "[[", SIZE)


@pytest.mark.parametrize(
    "piece", ["%% a=", "a=x", ' %% a="', ' %% a="\\', " %% a=1", " %%", "%%", "\\", '"', " ", "a "]
)
def test_attributes_behind_a_bullet_are_read_in_proportion_to_their_line(piece: str) -> None:
    """Several patterns at work together: `a=xa=xa=x` may be divided in more ways than there is time for."""
    assert not grows_too_fast(lambda line: split_attributes(f"Said %% {line} %%"), piece, SIZE)
