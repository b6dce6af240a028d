"""Every regular expression of the code does work in proportion to its text.

A pattern of a module is tried with every operation that the code uses its name for; one written inside a function, with
its own operation. A pattern that is made while the program runs has to be named here.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import pytest
from effort import LONG
from linear import HOSTILE, grows_too_fast

import simplemem
from simplemem.features.changes.cues import cue_languages
from simplemem.features.conversations.trait_rules import trait_languages
from simplemem.features.facts.day_language import day_languages
from simplemem.features.facts.message_rules import message_rules
from simplemem.features.facts.small_talk import courtesy_languages
from simplemem.features.facts.unstated import unstated_languages
from simplemem.features.graph.attributes import split_attributes

ROOT = Path(simplemem.__file__).parent
SIZE = 4_000
LARGE = 128_000 if LONG else 16_000
MADE_WHILE_RUNNING = {  # words, to the letter
    "search/rank.py": ["re.escape(word)"],
    "cli/output.py": ["f'({words})'"],
    "note/proposal.py": ["f'{re.escape(character)}+'"],
    "web/highlights.py": ["pattern"],
    "web/link_labels.py": ["pattern"],
    "features/documents/agent_facts.py": ["f'(?<!\\\\w){words}(?!\\\\w)'"],
    "features/conversations/recall.py": ["f'{name}\\\\b'", 'f"\\\\b{name}(?:[\'’]s)?\\\\b"'],
}
TABLES_MADE_WHILE_RUNNING = {
    "features/changes/cues.py": cue_languages,
    "features/conversations/trait_rules.py": trait_languages,
    "features/facts/day_language.py": day_languages,
    "features/facts/message_rules.py": message_rules,
    "features/facts/small_talk.py": courtesy_languages,
    "features/facts/unstated.py": unstated_languages,
}
SEARCHES = {"search", "sub", "subn", "split", "findall", "finditer"}
OPERATIONS = SEARCHES | {"match", "fullmatch"}


def module_at(path: str) -> ModuleType:
    dotted = path.removesuffix(".py").replace("/", ".").removesuffix("__init__")
    return importlib.import_module(f"simplemem.{dotted}".rstrip("."))


def patterns() -> Iterator[tuple[str, str, str, re.Pattern[str]]]:
    """Module, name or place, operation on a text, and the pattern."""
    sources = {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(ROOT.rglob("*.py"))
    }
    everywhere = uses_of_names("\n".join(sources.values()))
    tabled = set[int]()
    for path, source in sources.items():
        try:
            module = module_at(path)
        except ModuleNotFoundError:  # of another system
            continue
        here = uses_of_names(source)
        for name, value in vars(module).items():
            pattern = getattr(value, "__self__", value)  # `re.compile(...).match` under a name
            if isinstance(pattern, re.Pattern) and re.search(
                rf"^{name}\b[^=\n]*=", source, re.MULTILINE
            ):
                used = (here if name.startswith("_") else everywhere).get(name, set())
                # One that is handed on may be used for anything.
                for operation in {value.__name__} if value is not pattern else used or {"search"}:
                    yield path, name, operation, pattern
        tables = dict(vars(module))
        if path in TABLES_MADE_WHILE_RUNNING:
            made = TABLES_MADE_WHILE_RUNNING[path]()
            tables |= {f"made {number}": table for number, table in enumerate(made)}
        for pattern in in_tables(tables, depth=3):
            if id(pattern) not in tabled:  # a table is imported by several modules
                tabled.add(id(pattern))
                yield path, "a table", "match", pattern
        for node in ast.walk(ast.parse(source)) if "re." in source else ():
            if isinstance(node, ast.Call) and is_operation_of_re(node.func):
                asked = node.args[0]
                for each in (
                    (asked.body, asked.orelse) if isinstance(asked, ast.IfExp) else (asked,)
                ):
                    if (written := ast.unparse(each)) not in MADE_WHILE_RUNNING.get(path, ()):
                        pattern = re.compile(eval(written, vars(module)))
                        yield path, f"line {node.lineno}", ast.unparse(node.func)[3:], pattern


def uses_of_names(source: str) -> dict[str, set[str]]:
    """The operations that are called on each name of a source."""
    uses = defaultdict[str, set[str]](set)
    for name, operation in re.findall(rf"\b(\w+)\.({'|'.join(OPERATIONS)})\b", source):
        uses[name].add(operation)
    return uses


def is_operation_of_re(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Name("re"), attr=name):
            return name in OPERATIONS
    return False


def in_tables(held: object, depth: int) -> Iterator[re.Pattern[str]]:
    """The patterns that stand in tables and dataclasses of a module."""
    items: Iterable[object] = ()
    if isinstance(held, dict):
        items = held.values()
    elif isinstance(held, (tuple, list)):
        items = held
    elif is_dataclass(held) and not isinstance(held, type):
        items = [getattr(held, field.name) for field in fields(held)]
    for item in items:
        if isinstance(item, re.Pattern) and (depth < 3 or not isinstance(held, dict)):
            yield item
        elif depth:
            yield from in_tables(item, depth - 1)


Found = list[tuple[str, str, str, re.Pattern[str]]]


@pytest.fixture(scope="module")
def found() -> Found:
    """All patterns. Looking for them takes seconds, so no worker does it that has no test of this file."""
    return list(patterns())


def test_the_search_for_patterns_finds_them(found: Found) -> None:
    assert "note/secrets.py" in {path for path, name, _, _ in found if name == "a table"}
    assert len({id(pattern) for _, _, _, pattern in found}) > 100
    assert any(path.startswith("note/") and operation == "match" for path, _, operation, _ in found)


@pytest.mark.parametrize(
    ("size", "every"),
    [(SIZE, 3), pytest.param(LARGE if LONG else 2 * SIZE, 1, marks=pytest.mark.slow)],
)
def test_a_pattern_does_twice_the_work_for_twice_the_text(
    found: Found, size: int, every: int
) -> None:
    """Each pattern gets one in `every` texts. Neighbours get different ones."""
    slow = [
        f"{path}: {name}.{operation}: {told}"
        for number, (path, name, operation, pattern) in enumerate(found)
        for piece in HOSTILE[number % every :: every]
        if (
            told := grows_too_fast(
                lambda text, p=pattern, o=operation: used_on(p, o, text), piece, size
            )
        )
    ]
    assert not slow, "\n".join(slow)


def used_on(pattern: re.Pattern[str], operation: str, text: str) -> None:
    held = text if isinstance(pattern.pattern, str) else text.encode()
    if operation in SEARCHES:
        for _ in pattern.finditer(held):  # type: ignore[arg-type]
            pass
    else:
        getattr(pattern, operation)(held)


def test_a_pattern_that_is_not_linear_would_be_found() -> None:
    quadratic = re.compile(r"\[\[([^\]]+)\]\]")
    # The first look is one measurement, which other work on the machine may spoil.
    attempts = (
        grows_too_fast(lambda text: used_on(quadratic, "search", text), "[[", SIZE)
        for _ in range(5)
    )
    assert any(attempts)


@pytest.mark.parametrize(
    "piece", ["%% a=", "a=x", ' %% a="', ' %% a="\\', " %% a=1", " %%", "%%", "\\", '"', " "]
)
def test_attributes_behind_a_bullet_are_read_in_proportion_to_their_line(piece: str) -> None:
    """Several patterns at work together: `a=xa=xa=x` may be divided in more ways than there is time for."""
    assert not grows_too_fast(lambda line: split_attributes(f"Said %% {line} %%"), piece, LARGE)
