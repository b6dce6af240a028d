"""What the documentation says is so: generated parts are what the program prints, links lead somewhere, commands can be
typed, and Python runs."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
import typer.main
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

import simplemem
from simplemem.cli.app import app
from simplemem.cli.serve import parse_options
from simplemem.cli.serve_choice import choose_profile

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
FAULTS = REPOSITORY / "tests" / "faults.md"
PROGRAM: Any = typer.main.get_command(app)
USAGE_ERROR: Any = typer.BadParameter.__base__
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
# Its agents start a dozen servers.
_SLOW_PAGE = DOCS / "own-agent.md"
WITH_PYTHON = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page == _SLOW_PAGE else [])
    for page in PAGES
    if re.search(r"^```py", page.read_text(encoding="utf-8"), re.MULTILINE)
]

of_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------ what is shown


@pytest.mark.slow
def test_sessions_and_settings_are_what_the_program_prints(generate: ModuleType) -> None:
    pages = generate.pages()
    assert {page.name for page in pages} == set(generate.PAGES)
    assert {page: page.read_text(encoding="utf-8") for page in pages} == pages


def test_the_reference_lists_what_the_program_has() -> None:
    command = [sys.executable, str(DOCS / "generate_reference.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_page_of_the_command_line_names_every_command() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in PROGRAM.commands if not re.search(rf"\b{name}\b", text)] == []


def test_the_page_of_the_python_api_names_every_method_and_whatever_the_package_offers() -> None:
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    methods = [
        name
        for name, _ in inspect.getmembers(simplemem.EnhancedStore, inspect.isfunction)
        if name[0] != "_"
    ]
    offered = [name for name in simplemem.__all__ if name != "__version__"]
    assert [name for name in (*methods, *offered) if not re.search(rf"\b{name}\b", text)] == []


def test_the_notes_that_the_page_of_conversations_shows_lie_in_the_example() -> None:
    shown = [
        "\n".join(fence.lines)
        for fence in fences_in(DOCS / "conversations.md")
        if fence.kind == "markdown"
    ]
    kept = [
        note.read_text(encoding="utf-8").rstrip("\n")
        for note in (REPOSITORY / "vault-example").rglob("*.md")
    ]
    assert len(shown) == 2 and [text for text in shown if text not in kept] == []


# ------------------------------------------------------------------ links


def test_the_navigation_of_the_site_leads_to_every_page() -> None:
    navigation = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE))
    assert listed == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


@of_every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [target for target in links_in(page) if not leads_somewhere(target, page)] == []


def leads_somewhere(target: str, page: Path) -> bool:
    path, _, heading = unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    return (
        file.is_relative_to(REPOSITORY)
        and file.exists()
        and (not heading or heading in anchors_in(file))
    )


def links_in(page: Path) -> Iterator[str]:
    """The links of a page that stay in the repository."""
    for token in inline_tokens(page):
        for each in token.children or ():
            target = str(each.attrGet("href") or each.attrGet("src") or "")
            if target and not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield target


@functools.cache
def anchors_in(page: Path) -> set[str]:
    """The headings of a page as a link names them on the forges that show Markdown."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for opening, token in pairwise(tokens):
        if opening.type == "heading_open":
            name = re.sub(r"[^\w\- ]", "", token.content.lower()).replace(" ", "-")
            number = 1
            anchor = name
            while anchor in found:
                anchor, number = f"{name}-{number}", number + 1
            found.add(anchor)
    return found


def inline_tokens(page: Path) -> list[Token]:
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    return [token for token in tokens if token.type == "inline"]


# ------------------------------------------------------------------ commands


@of_every_page
def test_every_command_that_is_shown_can_be_typed(page: Path) -> None:
    refused = {line: refusals(line) for line in commands_in(page)}
    assert {line: why for line, why in refused.items() if why} == {}


@dataclass(frozen=True)
class Fence:
    """A block of code: what it is said to be, its lines, and the line of the page on which they begin."""

    kind: str
    lines: list[str]
    line: int


def fences_in(page: Path) -> Iterator[Fence]:
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            yield Fence(
                token.info.split(" ")[0].strip(), token.content.split("\n")[:-1], token.map[0] + 1
            )


def commands_in(page: Path) -> Iterator[str]:
    """What a reader is told to type: in a session what follows the prompt, in a script every line."""
    for fence in fences_in(page):
        if fence.kind not in ("console", "sh", "bash", "shell"):
            continue
        lines = iter(fence.lines)
        for line in lines:
            if fence.kind == "console" and not line.startswith("$ "):
                continue
            typed = line.removeprefix("$ ")
            while not is_whole(typed):
                typed = typed.removesuffix("\\") + "\n" + next(lines).removeprefix("> ")
            yield typed


def is_whole(typed: str) -> bool:
    """Whether a shell would run this, or wait for the rest of it."""
    try:
        shlex.split(typed, comments=True)
    except ValueError:
        return False
    return not typed.endswith("\\")


def simple_commands(line: str) -> Iterator[list[str]]:
    """The commands of a pipe or a list, without redirections and what is set before them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    tokens = iter(lexer)
    for token in tokens:
        if re.fullmatch(r"[<>]+&?", token):
            next(tokens)
        elif re.fullmatch(r"[();|&]+", token):
            yield words
            words = []
        elif words or not re.match(r"\w+=", token):
            words.append(token)
    yield words


def refusals(line: str) -> list[str]:
    """What a shell would be told by the commands of a line that cannot be typed so: those of ours, and of make."""
    said = []
    for words in simple_commands(line):
        if words[:1] == ["make"]:
            targets = re.findall(
                r"^(\w+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
            )
            said += [f"no target {word}" for word in words[1:] if word not in targets]
        if "--" in words and Path(words[0]).name != "simplemem":
            words = words[words.index("--") + 1 :]  # what a client is told to run
        words = words[2:] if words[:2] == ["python", "-m"] else words
        if words and Path(words[0]).name == "simplemem":
            said += (
                refusals_of_serve(words[2:])
                if words[1:2] == ["serve"]
                else refusals_of_command(words[1:])
            )
    return said


def refusals_of_command(arguments: list[str]) -> list[str]:
    group, for_serve = PROGRAM, arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    try:
        while hasattr(group, "commands") and arguments and not arguments[0].startswith("-"):
            name, *arguments = arguments
            group = group.commands[name]
        if hasattr(group, "default_name"):
            group = group.commands[group.default_name]
        context = group.make_context(
            "simplemem", arguments or (["--help"] if hasattr(group, "commands") else [])
        )
    except typer.Exit:
        return []
    except KeyError as error:
        return [f"no command {error}"]
    except USAGE_ERROR as error:
        return [str(error.format_message())]
    if for_serve:
        return refusals_of_serve(for_serve)
    # Where `-word` is a word, the command itself looks for options that are none.
    given = [
        word
        for value in context.params.values()
        if isinstance(value, (list, tuple))
        for word in value
    ]
    return [f"no option {word}" for word in given if str(word).startswith("--")]


def refusals_of_serve(arguments: list[str]) -> list[str]:
    try:
        choose_profile(parse_options(arguments))
    except typer.Exit:
        return []
    except USAGE_ERROR as error:
        return [str(error.format_message())]
    return []


# ------------------------------------------------------------------ Python


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_that_is_shown_runs_and_prints_what_is_shown(
    page: Path, generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = [fence for fence in fences_in(page) if fence.kind in ("python", "pycon")]
    for folder in (
        tmp_path / "notes",
        Path.home() / "balloons",
    ):  # where the pages say that they have one
        generate.copy_example(folder)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    said: list[str] = []
    for fence in fences:
        if fence.kind == "python":
            exec(compile("\n" * fence.line + "\n".join(fence.lines), str(page), "exec"), names)
            continue
        shown = doctest.DocTestParser().get_doctest(
            "\n".join(fence.lines) + "\n", {}, page.name, str(page), fence.line
        )
        shown.globs = names
        doctest.DocTestRunner(verbose=False).run(shown, out=said.append, clear_globs=False)
    assert "".join(said) == ""


# ------------------------------------------------------------------ the house and its rules


def test_every_file_that_contributors_are_sent_to_is_there() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {
        path for path in re.findall(r"`([\w./-]+)`", text) if "/" in path and "NAME" not in path
    }
    assert (
        len(named) > 10 and sorted(path for path in named if not (REPOSITORY / path).exists()) == []
    )


def test_the_changelog_begins_with_the_version_that_is_here() -> None:
    headings = re.findall(
        r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings[0] == simplemem.__version__


def test_a_commit_and_a_push_are_checked_with_what_ci_runs() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))[
        "repos"
    ][0]["hooks"]
    rules = (REPOSITORY / "Makefile").read_text(encoding="utf-8").split("\n\n")
    rule = {each.partition(":")[0]: each for each in rules}
    assert rule["lint"].partition("##")[0].split()[1:] == ["style", "types"]
    first, second = rule["test"].split("\n")
    assert first.partition("##")[0].split()[-1] == "style"
    assert second.endswith("types quick")  # which run at the same time
    checks = [
        line.partition("$(BIN)/")[2]
        for name in ("style", "types", "quick")
        for line in rule[name].split("\n")
        if line.startswith("\t")
    ]
    assert [hook["entry"].removeprefix(".venv/bin/") for hook in hooks] == checks


def test_every_test_that_is_named_for_a_fault_is_there() -> None:
    text = FAULTS.read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)", text)
    assert len(named) > 50
    tests = REPOSITORY / "tests"
    missing = [f"{file}::{name}" for file, name in named if not (tests / file).is_file()
               or not re.search(rf"\b{name}\b", (tests / file).read_text(encoding="utf-8"))]  # fmt: skip
    assert missing == []


def test_every_fault_that_the_page_on_writing_names_has_a_row_with_tests() -> None:
    page = (DOCS / "internals" / "writing.md").read_text(encoding="utf-8")
    faults = set(re.findall(r"^\| F\d+ \| (.+?) \|", page, re.MULTILINE))
    rows = re.findall(r"^\| (.+?) \| .+? \| (.*) \|$", FAULTS.read_text("utf-8"), re.MULTILINE)
    tested = {fault for fault, tests in rows if ".py" in tests}
    assert len(faults) > 70
    assert faults - tested == set()


def test_every_row_about_a_fault_has_a_name_of_its_own_and_a_test() -> None:
    rows = re.findall(
        r"^\| (?!Fault )(.+?) \|.*\| (.*) \|$", FAULTS.read_text("utf-8"), re.MULTILINE
    )
    names = [fault for fault, _ in rows]
    assert len(names) == len(set(names))
    assert [fault for fault, tests in rows if ".py" not in tests] == []
