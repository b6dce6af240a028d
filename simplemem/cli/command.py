"""How a command is declared and run: a function that returns an answer, or answers one after the other, printed here for
people or with `--json` for programs. Failures are said here; an answer with `failed` ends the program with 1."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import FrameType, MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import typer

from simplemem.cli.options import FILTERS, Command, complete_name, filter_of, flag
from simplemem.cli.output import Column, Part, Screen, print_error, print_json
from simplemem.cli.paths import path_in_vault
from simplemem.errors import Invalid, SimplememError, Unavailable

if TYPE_CHECKING:
    from rich.progress import Progress

    from simplemem.models import IndexState
    from simplemem.store import EnhancedStore

WHO = "command line"  # how the history names whoever used these commands
_PATIENCE = 1.0  # seconds before a progress bar is worth showing
_Function = TypeVar("_Function", bound=Callable[..., Any])
_JSON = Annotated[bool, flag("--json", "Print JSON, for programs.")]


@dataclass(frozen=True)
class Answer:
    """What a command answers: facts for programs, the rest for people."""

    facts: Mapping[str, Any]
    lines: Sequence[Sequence[Part]] = ()
    table: Sequence[Sequence[Part]] = ()
    columns: tuple[Column, ...] = ()  # of the table
    warnings: Sequence[str] = ()
    text: str = ""  # which goes into a pipe to the byte
    markdown: str | None = None  # shown as it reads, in a terminal
    labelled: Mapping[str, str] = field(default_factory=dict)  # for people, each with its label
    more: str = ""  # how to see the rest, for people, on stderr
    failed: bool = False


def show(answer: Answer, *, compact: bool = False) -> None:
    """Print an answer: for people, or with `--json` for programs."""
    if for_a_program():
        print_json(answer.facts, compact=compact)
        return
    screen = Screen()
    screen.table(answer.table, columns=answer.columns)
    if answer.text:
        screen.text(answer.text)
    for line in answer.lines:
        screen.say(*line)
    if answer.markdown is not None:
        screen.note(answer.labelled, answer.markdown)
    else:
        screen.facts(answer.labelled)
    warn(*answer.warnings)
    if answer.more:
        Screen(stderr=True).say((answer.more, "dim"))


class _Run(NamedTuple):
    as_json: bool
    until_said: ExitStack


_RUN: ContextVar[_Run] = ContextVar("run")
_SERVED: ContextVar[EnhancedStore | None] = ContextVar("served", default=None)
_FOLDER: ContextVar[Path] = ContextVar("folder")


def finish() -> ExitStack:
    """Hold a Ctrl-C back until the answer is printed, or what this gives is closed: what was written is also said."""
    held = _RUN.get().until_said
    held.enter_context(finishing())
    return held


def for_a_program() -> bool:
    """Whether `--json` was asked for."""
    return _RUN.get().as_json


def preview(plan: Answer) -> None:
    """Show a person what is about to be done. A program hears of it when it is done."""
    if not for_a_program():
        show(plan)


def can_ask() -> bool:
    """Whether there is a terminal, and so a user to ask."""
    return not for_a_program() and sys.stdin.isatty() and sys.stderr.isatty()


def agree(question: str, *, refused: str, hint: str, yes: bool = False) -> None:
    """Have the user confirm what was shown. A no ends the command with 1, and nothing is changed.

    Without a terminal, raises Invalid with a hint on how to confirm.
    """
    if yes:
        return
    if not can_ask():
        raise Invalid(refused, hint=hint)
    if not typer.confirm(question, err=True):
        Screen(stderr=True).say("Nothing was changed.")
        raise typer.Exit(1)


def _run(function: Callable[[], Any], as_json: bool) -> None:
    failed = False
    try:
        with ExitStack() as until_said:
            _RUN.set(_Run(as_json, until_said))
            answers = function()
            for each in answers if isinstance(answers, Iterator) else (answers,):
                show(each, compact=isinstance(answers, Iterator))
                failed = failed or each.failed
    except BrokenPipeError:
        raise
    except (SimplememError, OSError) as error:
        failed = True
        if isinstance(
            error, OSError
        ):  # what the system refuses, for want of space or permission, in its own words
            error = Unavailable(
                f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
            )
        print_error(error, as_json=as_json)
    if failed:
        raise typer.Exit(1)


@contextmanager
def served_by(store: EnhancedStore, folder: Path) -> Iterator[None]:
    """Run commands on a store that a server has open, for a process whose current folder is `folder`."""
    token = _SERVED.set(store)
    folder_token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(folder_token)
        _SERVED.reset(token)


@contextmanager
def opened(
    vault: Path | None, *, embed: bool = False, sync: bool = True, make: bool = False
) -> Iterator[EnhancedStore]:
    """The store of a vault with its index updated, with `embed` the vectors too. With `make` it is made if need be."""
    served = _SERVED.get()
    if served is not None:
        served.catch_up(embed=embed)
        yield served
        return
    from simplemem import open_store
    from simplemem.settings.find_vault import find_existing_vault, find_vault
    from simplemem.settings.loading import load_settings

    root = find_vault(vault) if make else find_existing_vault(vault)
    if not root.exists():
        warn(f"creating the vault {root}")
    with open_store(root, settings=load_settings(vault=root).for_a_person(), person=True) as store:
        if sync:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=embed, begin=False)
            warn_doubted(report)
        yield store


def with_next_step(index: IndexState) -> IndexState:
    """The state of the index, which also says what makes the vectors that are missing."""
    if not index.pending:
        return index
    step = "`simplemem index` or a running server creates their vectors."
    return replace(index, reason=f"{index.reason} {step}".strip())


def warn_doubted(report: Any) -> None:
    """Say so when many notes are gone at once: an unmounted disk looks the same as a tidy mind."""
    if report.doubted:
        kept = f"{report.doubted} notes disappeared at once, and the index keeps them for now"
        warn(f"{kept}; if you deleted them, run `simplemem index --rebuild`")


def warn(*messages: str) -> None:
    """Say on stderr what a person should know beside the answer."""
    for message in messages:
        Screen(stderr=True).say(("note: ", "yellow"), message)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, drawn once the work has taken a second, gone however it ends. In a pipe it draws nothing."""
    screen = Screen(stderr=True)
    if not screen.is_terminal:
        yield lambda _stage, _done, _total: None
        return
    began = time.monotonic()
    bar: Progress | None = None

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - began < _PATIENCE or not total:
                return
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = (
                TextColumn("{task.description:>8}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            bar = Progress(*columns, console=screen.console, transient=True)
            bar.start()
        task = next((each.id for each in bar.tasks if each.description == stage), None)
        bar.update(
            bar.add_task(stage, total=total) if task is None else task, completed=done, total=total
        )

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def finishing() -> Iterator[None]:
    """Hold a Ctrl-C back until a write is done. A second one does not wait; even then nothing is torn."""
    before = signal.getsignal(signal.SIGINT)
    if (
        threading.current_thread() is not threading.main_thread()
        or before is not signal.default_int_handler
    ):
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            signal.default_int_handler(number, frame)
        held.append(number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


def command(
    group: typer.Typer,
    panel: str = "",
    *,
    name: str = "",
    filters: Sequence[str] = (),
    dashed_words: bool = False,
    old_options: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[_Function], _Function]:
    """Declare a command, which has `--json`, and where it stands in `--help`.

    Its docstring is its help, with examples after `$`. With `filters` it has those options, and `narrowed` is the
    filter they make. With `dashed_words` a `-word` is a word with a meaning of its own, not options run together.
    `old_options` are earlier names of options, each with its parameter: they work, and no help shows them.
    """

    def declare(function: _Function) -> _Function:
        lines = (inspect.getdoc(function) or "").split("\n")
        examples = [line for line in lines if line.startswith("$ ")]
        # A paragraph is made one line, for the help to wrap.
        paragraphs = "\n".join(line for line in lines if line not in examples).strip().split("\n\n")
        parameters = _parameters(function, filters)
        note_parameters = [parameter.name for parameter in parameters if _is_of_notes(parameter)]
        old_parameters = [_old_parameter(parameters, old, new) for old, new in old_options.items()]

        def run(as_json: bool = False, **arguments: Any) -> None:
            if dashed_words:
                _refuse_unknown_options(arguments, parameters)
            for parameter, new in zip(old_parameters, old_options.values(), strict=True):
                given = arguments.pop(parameter.name)
                if given is not None:
                    arguments[new] = given

            def answers() -> Any:
                for each in note_parameters:
                    arguments[each] = _without_paths(arguments[each], arguments.get("vault"))
                if filters:
                    arguments["narrowed"] = filter_of(
                        **{each: arguments.pop(each) for each in filters}
                    )
                return function(**arguments)

            _run(answers, as_json)

        run.__signature__ = inspect.Signature([*parameters, *old_parameters])  # type: ignore[attr-defined]
        group.command(
            name or function.__name__,
            cls=Command,
            rich_help_panel=panel,
            help="\n\n".join(" ".join(each.split()) for each in paragraphs),
            epilog="\n".join(examples),
            context_settings={"ignore_unknown_options": True} if dashed_words else {},
        )(run)
        return function

    return declare


def _parameters(function: Callable[..., Any], filters: Sequence[str]) -> list[inspect.Parameter]:
    """The options of a command as Typer reads them: its own, those of a filter for `narrowed`, and `--json`."""
    declared = {
        each: hint
        for each, hint in function.__annotations__.items()
        if each not in ("return", "narrowed")
    }
    hints = get_type_hints(
        SimpleNamespace(__annotations__=declared), function.__globals__, include_extras=True
    )
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "narrowed":
            parameters += [
                _keyword(each, FILTERS[each], False if each == "require_all" else None)
                for each in filters
            ]
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))
    return [*parameters, _keyword("as_json", _JSON, False)]


def _old_parameter(
    parameters: Sequence[inspect.Parameter], old: str, new: str
) -> inspect.Parameter:
    """A hidden option under an earlier name, which is None unless it is given."""
    [parameter] = [each for each in parameters if each.name == new]
    kind = get_args(parameter.annotation)[0]
    hidden = typer.Option(old, hidden=True)
    return _keyword(f"old_{new}", Annotated[kind | None, hidden], None)


def _is_of_notes(parameter: inspect.Parameter) -> bool:
    """Whether a parameter names notes."""
    infos = getattr(parameter.annotation, "__metadata__", ())
    return any(getattr(info, "autocompletion", None) is complete_name for info in infos)


def _without_paths(named: Any, vault: Path | None) -> Any:
    """What names notes, with the path inside the vault in place of each path on the disk."""
    if isinstance(named, str) and named.lower().endswith(".md"):
        served = _SERVED.get()
        if served is not None:
            return path_in_vault(named, served.root, _FOLDER.get())
        from simplemem.settings.find_vault import find_existing_vault

        return path_in_vault(named, find_existing_vault(vault), Path.cwd())
    if isinstance(named, list | tuple):
        return [_without_paths(each, vault) for each in named]
    return named


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _refuse_unknown_options(
    arguments: Mapping[str, Any], parameters: Iterable[inspect.Parameter]
) -> None:
    """Where `-word` is allowed, a mistyped `--option` must still be told."""
    infos = [info for each in parameters for info in getattr(each.annotation, "__metadata__", ())]
    known = [
        name
        for info in infos
        for name in (info.default, *(info.param_decls or ()))
        if isinstance(name, str)
    ]
    for value in arguments.values():
        for word in value if isinstance(value, list | tuple) else [value]:
            if isinstance(word, str) and word.startswith("--"):
                typed = word.partition("=")[0]
                near = get_close_matches(typed, known, 1)
                raise typer.BadParameter(
                    f"no such option: {typed}" + (f" (did you mean {near[0]}?)" if near else "")
                )
