"""How a command is declared and run: a function that returns a value, or values one after the other, printed here by the
renderer of its type or with `--json` as it is. Failures are said here; a value with `failed` ends the program with 1."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from simplemem.cli.opening import finishing
from simplemem.cli.options import FILTERS, filter_of, flag
from simplemem.errors import Invalid, SimplememError, Unavailable

if TYPE_CHECKING:
    from simplemem.cli.output import Screen
    from simplemem.cli.text import Part

_Function = TypeVar("_Function", bound=Callable[..., Any])
_JSON = Annotated[bool, flag("--json", "Print JSON, for programs.")]


@dataclass(frozen=True)
class Answer:
    """What a command answers where the store has no value for it: facts for programs, the rest for people."""

    facts: Mapping[str, Any]
    lines: Sequence[Sequence[Part]] = ()
    table: Sequence[Sequence[Part]] = ()
    gives_way: int | None = None
    warnings: Sequence[str] = ()
    text: str = ""  # which goes into a pipe to the byte
    failed: bool = False

    def as_dict(self) -> dict[str, Any]:
        return dict(self.facts)


# -- how values are shown

_RENDERERS: dict[str, Callable[[Any, Screen], None]] = {}


def renderer(function: Callable[[Any, Screen], None]) -> Callable[[Any, Screen], None]:
    """Declare how values of a type are shown, the one the first argument names: nothing is loaded before there is
    one."""
    _RENDERERS[next(iter(function.__annotations__.values()))] = function
    return function


@renderer
def _answer(answer: Answer, screen: Screen) -> None:
    screen.table(answer.table, gives_way=answer.gives_way)
    if answer.text:
        screen.text(answer.text)
    for line in answer.lines:
        screen.say(*line)
    for warning in answer.warnings:
        screen.warn(warning)


def show(value: Any, *, compact: bool = False) -> None:
    """Print a value: for people, or with `--json` for programs."""
    from simplemem.cli.output import Screen, print_json

    if _RUN.get().as_json:
        print_json(value.as_dict(), compact=compact)
    else:
        _RENDERERS[type(value).__name__](value, Screen())


# -- a run of a command


@dataclass
class _Run:
    as_json: bool
    until_said: ExitStack


_RUN: ContextVar[_Run] = ContextVar("run")


def finish() -> ExitStack:
    """Hold a Ctrl-C back until the answer is printed, or what this gives is closed: what was written is also said."""
    held = _RUN.get().until_said
    held.enter_context(finishing())
    return held


def for_a_program() -> bool:
    """Whether `--json` was asked for."""
    return _RUN.get().as_json


def preview(plan: Any) -> None:
    """Show a person what is about to be done. A program hears of it when it is done."""
    if not for_a_program():
        show(plan)


def can_ask() -> bool:
    """Whether a person sits there who can be asked."""
    return not for_a_program() and sys.stdin.isatty() and sys.stderr.isatty()


def agree(question: str, *, refused: str, hint: str, yes: bool = False) -> None:
    """Have a person agree to what they were shown. Where nobody can be asked, say how to agree."""
    if yes:
        return
    if not can_ask():
        raise Invalid(refused, hint=hint)
    typer.confirm(question, abort=True, err=True)


def _run(function: Callable[..., Any], as_json: bool, arguments: dict[str, Any]) -> None:
    failure: SimplememError
    try:
        with ExitStack() as until_said:
            _RUN.set(_Run(as_json, until_said))
            value = function(**arguments)
            failed = False
            for each in value if isinstance(value, Iterator) else (value,):
                show(each, compact=isinstance(value, Iterator))
                failed = failed or getattr(each, "failed", False)
        if failed:
            raise typer.Exit(1)
        return
    except SimplememError as error:
        failure = error
    except BrokenPipeError:
        raise
    except OSError as error:
        # What the system refuses (no space, no permission) is no fault of ours: its own words will do.
        where = f": {error.filename}" if error.filename else ""
        failure = Unavailable(f"{error.strerror or error}{where}")
    from simplemem.cli.output import print_error

    print_error(failure, as_json=as_json)
    raise typer.Exit(1)


# -- how a command is declared


def command(
    group: typer.Typer,
    panel: str = "",
    *,
    name: str | None = None,
    filters: Sequence[str] = (),
    dashed_words: bool = False,
) -> Callable[[_Function], _Function]:
    """Declare a command and where it stands in `--help`. Its docstring is its help; lines that begin with `$` are
    examples.

    With `filters` it has those options, and its argument `narrowed` is the filter they make. With `dashed_words` a
    `-word` is a word with a meaning of its own, not options run together. Every command has `--json`.
    """

    def declare(function: _Function) -> _Function:
        lines = (inspect.getdoc(function) or "").replace("[", r"\[").split("\n")  # brackets are Rich's markup
        examples = [line for line in lines if line.startswith("$ ")]
        # Rich keeps line breaks as they stand: a paragraph is made one line, for the terminal to wrap.
        paragraphs = "\n".join(line for line in lines if line not in examples).strip().split("\n\n")
        parameters = _parameters(function, filters)

        def run(as_json: bool = False, **arguments: Any) -> None:
            if dashed_words:
                _refuse_unknown_options(arguments, parameters)
            if filters:
                arguments["narrowed"] = filter_of(**{each: arguments.pop(each) for each in filters})
            _run(function, as_json, arguments)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        declared = group.command(
            name or function.__name__,
            rich_help_panel=panel,
            help="\n\n".join(" ".join(each.split()) for each in paragraphs),
            epilog="\n".join(["[bold]Examples[/bold]", *examples]),
            context_settings={"ignore_unknown_options": True} if dashed_words else {},
        )
        declared(run)
        return function

    return declare


def _parameters(function: Callable[..., Any], filters: Sequence[str]) -> list[inspect.Parameter]:
    """The options of a command, as Typer reads them: its own, those of a filter in the place of `narrowed`, and
    `--json`."""
    declared = {each: hint for each, hint in function.__annotations__.items() if each not in ("return", "narrowed")}
    hints = get_type_hints(SimpleNamespace(__annotations__=declared), function.__globals__, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "narrowed":
            parameters += [_keyword(each, FILTERS[each], False if each == "require_all" else None) for each in filters]
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))
    return [*parameters, _keyword("as_json", _JSON, False)]


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _refuse_unknown_options(arguments: Mapping[str, Any], parameters: Iterable[inspect.Parameter]) -> None:
    """Where `-word` is allowed, a mistyped `--option` must still be told."""
    infos = [info for each in parameters for info in getattr(each.annotation, "__metadata__", ())]
    known = [name for info in infos for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    for value in arguments.values():
        for word in value if isinstance(value, list | tuple) else [value]:
            if isinstance(word, str) and word.startswith("--"):
                typed = word.partition("=")[0]
                near = get_close_matches(typed, known, 1)
                raise typer.BadParameter(f"no such option: {typed}" + (f" (did you mean {near[0]}?)" if near else ""))
