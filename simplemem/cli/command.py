"""Declare and run commands: functions that return an answer, or yield several.

This module prints the answers, for people or with `--json` for programs, and the errors. An answer
with `failed` makes the exit code 1.
"""

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
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from simplemem.cli.options import FILTERS, Command, complete_name, filter_of, flag
from simplemem.cli.output import Column, Part, Screen, print_error, print_json
from simplemem.cli.paths import path_in_vault
from simplemem.errors import Invalid, SimplememError, Unavailable

if TYPE_CHECKING:
    from rich.progress import Progress

    from simplemem.models import Filter, IndexState
    from simplemem.store import EnhancedStore, SyncReport

WHO = "command line"  # the author of changes by commands, in the history
_SECONDS_BEFORE_BAR = 1.0  # shorter work needs no progress bar
_Function = TypeVar("_Function", bound=Callable[..., Any])
_JSON = Annotated[bool, flag("--json", "Print JSON, for programs.")]


@dataclass(frozen=True)
class Answer:
    """The answer of a command: `facts` for programs, everything else for people.

    Attributes:
        facts: What `--json` prints.
        lines: Lines of text, each as parts with their styles.
        table: The rows of a table, printed before everything else.
        columns: How the columns of the table are printed.
        warnings: Sentences on stderr.
        text: Text that a pipe gets byte for byte.
        markdown: The text of a note, which is rendered in a terminal. None if the answer has none.
        labelled: Texts by their labels.
        more: How to see the rest, on stderr.
        failed: Whether the exit code is 1.
    """

    facts: Mapping[str, Any]
    lines: Sequence[Sequence[Part]] = ()
    table: Sequence[Sequence[Part]] = ()
    columns: tuple[Column, ...] = ()
    warnings: Sequence[str] = ()
    text: str = ""
    markdown: str | None = None
    labelled: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    failed: bool = False


def show(answer: Answer, *, compact: bool = False) -> None:
    """Print an answer: for people, or with `--json` for programs.

    With `compact`, the JSON is one line. Warnings are printed on stderr, and for people only.
    """
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


@dataclass(frozen=True)
class _Run:
    """The command that runs now."""

    as_json: bool
    until_printed: ExitStack  # closed when the answer is printed


_RUN: ContextVar[_Run] = ContextVar("run")
_SERVED: ContextVar[EnhancedStore | None] = ContextVar("served", default=None)
_FOLDER: ContextVar[Path] = ContextVar("folder")


def finish() -> ExitStack:
    """Delay a Ctrl-C until the answer is printed, so that the user learns what was written.

    Closing the returned stack ends the delay earlier.
    """
    stack = _RUN.get().until_printed
    stack.enter_context(finishing())
    return stack


def for_a_program() -> bool:
    """Return whether `--json` was passed."""
    return _RUN.get().as_json


def preview(plan: Answer) -> None:
    """Show a person what is about to change. A program gets only the final answer."""
    if not for_a_program():
        show(plan)


def can_ask() -> bool:
    """Return whether there is a terminal at which a user can be asked."""
    return not for_a_program() and sys.stdin.isatty() and sys.stderr.isatty()


def agree(question: str, *, refused: str, hint: str, yes: bool = False) -> None:
    """Ask the user to confirm what was shown.

    After a no, raises typer.Exit with the exit code 1. Raises Invalid with the message `refused`
    and with `hint` if there is no terminal. With `yes`, nobody is asked.
    """
    if yes:
        return
    if not can_ask():
        raise Invalid(refused, hint=hint)

    if not typer.confirm(question, err=True):
        Screen(stderr=True).say("Nothing was changed.")
        raise typer.Exit(1)


def _run(function: Callable[[], Any], as_json: bool) -> None:
    """Run a command and print its answers, or its error.

    Raises typer.Exit if it fails, and BrokenPipeError if the reader of its output has gone.
    """
    has_failed = False
    try:
        with ExitStack() as until_printed:
            _RUN.set(_Run(as_json, until_printed))
            result = function()
            is_stream = isinstance(result, Iterator)
            answers = result if is_stream else (result,)
            for answer in answers:
                show(answer, compact=is_stream)
                has_failed = has_failed or answer.failed
    except BrokenPipeError:
        raise
    except SimplememError as error:
        has_failed = True
        print_error(error, as_json=as_json)
    except OSError as error:
        has_failed = True
        print_error(_system_error(error), as_json=as_json)
    if has_failed:
        raise typer.Exit(1)


def _system_error(error: OSError) -> Unavailable:
    """Return what the system refused, for example for lack of space or permission, in its words."""
    reason = error.strerror or str(error)
    if error.filename:
        reason += f": {error.filename}"
    return Unavailable(reason)


@contextmanager
def served_by(store: EnhancedStore, folder: Path) -> Iterator[None]:
    """Run commands on the store of a server while the context is open.

    They run for another process, whose current folder is `folder`.
    """
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
    """Open the store of a vault, and update its index first; with `embed`, its vectors too.

    In a server that runs the command, its store is yielded. Without `sync`, the index is not
    updated. With `make`, a vault that does not exist is created. Raises NotFound otherwise, Invalid
    for a wrong setting, and Unavailable if the index cannot be opened.
    """
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
    """Return the state of the index. If vectors are missing, it says what creates them."""
    if not index.pending:
        return index
    step = "`simplemem index` or a running server creates their vectors."
    return replace(index, reason=f"{index.reason} {step}".strip())


def warn_doubted(report: SyncReport) -> None:
    """Warn if many notes disappeared at once: the reason may be a disk that is not mounted."""
    if report.doubted:
        warn(
            f"{report.doubted} notes disappeared at once, and the index keeps them for now;"
            " if you deleted them, run `simplemem index --rebuild`"
        )


def warn(*messages: str) -> None:
    """Print warnings on stderr."""
    for message in messages:
        Screen(stderr=True).say(("note: ", "yellow"), message)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows progress on stderr.

    It takes the stage, how much of it is done, and the total. The bar appears if the work takes
    longer than a second, and disappears at its end. A pipe gets none.
    """
    screen = Screen(stderr=True)
    if not screen.is_terminal:
        yield lambda _stage, _done, _total: None
        return

    start = time.monotonic()
    bar: Progress | None = None

    def update(stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done, if the work has taken a second already."""
        nonlocal bar
        if bar is None:
            if time.monotonic() - start < _SECONDS_BEFORE_BAR or not total:
                return
            bar = _new_bar(screen)
            bar.start()

        task_id = next((task.id for task in bar.tasks if task.description == stage), None)
        if task_id is None:
            task_id = bar.add_task(stage, total=total)
        bar.update(task_id, completed=done, total=total)

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


def _new_bar(screen: Screen) -> Progress:
    """Return a progress bar that is removed from the screen at its end."""
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
    return Progress(*columns, console=screen.console, transient=True)


@contextmanager
def finishing() -> Iterator[None]:
    """Delay a Ctrl-C until a write is done: KeyboardInterrupt is then raised.

    A second Ctrl-C is not delayed; no note is damaged even then. Outside the main thread, and if
    something else handles Ctrl-C, nothing is delayed.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    old_handler = signal.getsignal(signal.SIGINT)
    if not is_main_thread or old_handler is not signal.default_int_handler:
        yield
        return

    delayed: list[int] = []

    def delay(number: int, frame: FrameType | None) -> None:
        """Record the first Ctrl-C, and raise KeyboardInterrupt for the second."""
        if delayed:
            signal.default_int_handler(number, frame)
        delayed.append(number)

    signal.signal(signal.SIGINT, delay)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old_handler)
    if delayed:
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
    """Declare a command that has `--json`, and its section in `--help`.

    The docstring of the function is the help, with examples after `$`. With `filters`, the command
    has these options, and the parameter `narrowed` gets the filter that they make. With
    `dashed_words`, `-word` is a word of a query and not a group of options. `old_options` are
    earlier names of options, each with its parameter: they work, but no help shows them.
    """

    def declare(function: _Function) -> _Function:
        """Add the command to the group, and return the function unchanged."""
        parameters = _parameters(function, filters)
        note_names = [parameter.name for parameter in parameters if _is_of_notes(parameter)]
        old_parameters = [_old_parameter(parameters, old, new) for old, new in old_options.items()]

        def run(as_json: bool = False, **arguments: Any) -> None:
            # Typer calls this with the parsed arguments. The help is the docstring of `function`.
            if dashed_words:
                _refuse_unknown_options(arguments, parameters)
            _rename_old_options(arguments, old_options.values())

            def answer() -> Any:
                """Return what the function returns, for the arguments as it takes them."""
                for name in note_names:
                    arguments[name] = _without_paths(arguments[name], arguments.get("vault"))
                if filters:
                    arguments["narrowed"] = _pop_filter(arguments, filters)
                return function(**arguments)

            _run(answer, as_json)

        signature = inspect.Signature([*parameters, *old_parameters])
        run.__signature__ = signature  # type: ignore[attr-defined]
        description, examples = _help_of(function)
        group.command(
            name or function.__name__,
            cls=Command,
            rich_help_panel=panel,
            help=description,
            epilog=examples,
            context_settings={"ignore_unknown_options": True} if dashed_words else {},
        )(run)
        return function

    return declare


def _rename_old_options(arguments: dict[str, Any], new_names: Iterable[str]) -> None:
    """Replace the arguments of hidden options by those of the parameters with these names."""
    for new_name in new_names:
        value = arguments.pop(_old_name(new_name))
        if value is not None:
            arguments[new_name] = value


def _old_name(new_name: str) -> str:
    """Return the name of the parameter for an earlier name of an option."""
    return f"old_{new_name}"


def _pop_filter(arguments: dict[str, Any], filters: Sequence[str]) -> Filter:
    """Remove the arguments of filter options, and return the filter that they describe."""
    options = {name: arguments.pop(name) for name in filters}
    return filter_of(**options)


def _help_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the description of a command, and its examples, one per line with their `$`.

    Each paragraph of the description is one line, for the help to wrap.
    """
    lines = (inspect.getdoc(function) or "").split("\n")
    examples = [line for line in lines if line.startswith("$ ")]
    text = "\n".join(line for line in lines if line not in examples)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
    return "\n\n".join(paragraphs), "\n".join(examples)


def _parameters(function: Callable[..., Any], filters: Sequence[str]) -> list[inspect.Parameter]:
    """Return the parameters of a command for Typer: its own, those of its filter, and `--json`."""
    declared = {
        name: hint
        for name, hint in function.__annotations__.items()
        if name not in ("return", "narrowed")
    }
    annotated = SimpleNamespace(__annotations__=declared)
    hints = get_type_hints(annotated, function.__globals__, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "narrowed":
            parameters += map(_filter_parameter, filters)
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))
    return [*parameters, _keyword("as_json", _JSON, False)]


def _filter_parameter(name: str) -> inspect.Parameter:
    """Return the parameter of a filter option."""
    is_flag = name == "require_all"
    return _keyword(name, FILTERS[name], False if is_flag else None)


def _old_parameter(
    parameters: Sequence[inspect.Parameter], old: str, new: str
) -> inspect.Parameter:
    """Return a hidden option with an earlier name. Its value is None unless it is passed."""
    [parameter] = [parameter for parameter in parameters if parameter.name == new]
    kind = get_args(parameter.annotation)[0]
    hidden = typer.Option(old, hidden=True)
    return _keyword(_old_name(new), Annotated[kind | None, hidden], None)


def _is_of_notes(parameter: inspect.Parameter) -> bool:
    """Return whether the value of a parameter names notes."""
    infos = getattr(parameter.annotation, "__metadata__", ())
    return any(getattr(info, "autocompletion", None) is complete_name for info in infos)


def _without_paths(value: Any, vault: Path | None) -> Any:
    """Return an argument that names notes, with paths in the vault for paths on the disk.

    A list is returned with each of its names replaced. Names that do not end with `.md`, and values
    that are no text, are returned as they are. Raises NotFound if there is no vault, Invalid for a
    path outside it, and Ambiguous for a path that means one note in the vault and another in the
    current folder.
    """
    if isinstance(value, list | tuple):
        return [_without_paths(name, vault) for name in value]
    if not isinstance(value, str) or not value.lower().endswith(".md"):
        return value

    served = _SERVED.get()
    if served is not None:
        return path_in_vault(value, served.root, _FOLDER.get())

    from simplemem.settings.find_vault import find_existing_vault

    return path_in_vault(value, find_existing_vault(vault), Path.cwd())


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Return a parameter with this name, type hint and default, that is passed by its name."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _refuse_unknown_options(
    arguments: Mapping[str, Any], parameters: Iterable[inspect.Parameter]
) -> None:
    """Raise a usage error for a mistyped `--option` of a command that takes `-word`.

    `arguments` are the values that Typer parsed, by the names of the `parameters` of the command.
    """
    known_options = _option_names(parameters)
    for value in arguments.values():
        words = value if isinstance(value, list | tuple) else [value]
        for word in words:
            if not isinstance(word, str) or not word.startswith("--"):
                continue
            name = word.partition("=")[0]
            similar = get_close_matches(name, known_options, 1)
            suggestion = f" (did you mean {similar[0]}?)" if similar else ""
            raise typer.BadParameter(f"no such option: {name}{suggestion}")


def _option_names(parameters: Iterable[inspect.Parameter]) -> list[str]:
    """Return the names of all options, such as `--limit` and `-n`."""
    names: list[Any] = []
    for parameter in parameters:
        for info in getattr(parameter.annotation, "__metadata__", ()):
            names += [info.default, *(info.param_decls or ())]
    return [name for name in names if isinstance(name, str)]
