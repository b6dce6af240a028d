"""Commands about the vault as a whole: init, stats, inspect."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened
from simplemem.cli.options import VaultOption, argument
from simplemem.cli.output import (
    OPTIONAL,
    SHRINKS,
    WHOLE,
    Lines,
    Part,
    amount,
    megabytes,
    one_line,
    tags_shown,
)
from simplemem.errors import Invalid, NotFound
from simplemem.note.words import format_count
from simplemem.settings.find_vault import vault_directly_below
from simplemem.settings.location import marked_vault

if TYPE_CHECKING:
    from simplemem.models import IndexState, OwnFile

commands = typer.Typer()
_PANEL = "Vault"
_MAX_PROBLEMS = 3  # that `stats` shows


@command(commands, _PANEL)
def init(
    folder: Annotated[
        Path | None, argument("FOLDER", "The folder of notes; by default the current folder.")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make a folder a vault. No note is changed.

    simplemem writes its own files to `.simplemem/` in the folder, which git and Obsidian ignore.
    Only the index, `index.db`, can be rebuilt (`simplemem index --rebuild`); the folder also
    contains the history and the trash. If the folder is a vault already, the command shows what it
    contains.

    $ simplemem init
    $ simplemem init ~/Documents/notes
    $ simplemem init . --json"""
    if folder is not None and vault is not None:
        raise typer.BadParameter("FOLDER and --vault cannot be combined")
    root = (folder or vault or Path()).expanduser()
    if root.exists() and not root.is_dir():
        hint = "A vault is a folder. Name the folder that contains the file."
        raise Invalid(f"{root} is a file", hint=hint)

    is_new = not (root / ".simplemem").exists()
    warnings: list[str] = []
    if is_new:
        _refuse_home(root)
    outer = marked_vault(os.path.dirname(os.path.abspath(root))) if is_new else None
    inner = vault_directly_below(os.path.abspath(root)) if is_new else None
    is_created = not root.exists()
    root.mkdir(parents=True, exist_ok=True)

    with opened(root, embed=True) as store:
        (store.root / ".simplemem").mkdir(exist_ok=True)
        root = store.root
        state = store.state()
        facts = store.stats()
        own_files = store.own_files()

    if outer is not None:
        warnings.append(f"{root} is inside the vault {outer}, which contains the same notes")
    if inner is not None:
        warnings.append(f"{inner} is a vault of its own, whose notes this vault also contains")
    lines: Lines = [
        _ready_line(root, state.notes, is_new=is_new, is_created=is_created),
        *_content_lines(root, state, facts),
        *list_own_files(own_files),
        ["Next:"],
        *_next_steps(root, state),
    ]
    answer: dict[str, Any] = {"vault": str(root), "new": is_new, "notes": state.notes}
    if state.pending:
        answer["pending_vectors"] = state.pending
    answer["folder"] = [file.as_dict() for file in own_files]
    return Answer(answer, lines, warnings=warnings)


def _refuse_home(root: Path) -> None:
    """Raise Invalid for the home folder and the folders above it.

    A vault there would contain everything on the disk.
    """
    from simplemem.settings.location import contains_home

    path = root.absolute()
    if contains_home(str(path), str(Path.home())):
        message = f"{path} contains more than notes: it is or contains your home folder"
        raise Invalid(message, hint="Name the folder of notes, as in `simplemem init ~/notes`.")


def _ready_line(root: Path, notes: int, *, is_new: bool, is_created: bool) -> list[Part]:
    """Return the line that says whether `init` made a vault, a folder, or nothing."""
    count = format_count(notes, "note")
    verdict: Part = ("Vault ready" if is_new else "Already a vault", "green")
    if is_created:
        return [("Created", "green"), f" {root}. ", verdict, f": {count}"]
    return [verdict, f": {root}, {count}"]


def _content_lines(root: Path, state: IndexState, facts: Mapping[str, Any]) -> Lines:
    """Return what the vault contains, and what limits search."""
    lines: Lines = [["  No note yet"]]
    if state.notes:
        lines = [[f"  {_links(facts)}, {format_count(facts['tags'], 'tag')}"]]
    if (root / ".obsidian").is_dir():
        lines.append(["  Obsidian's settings are used"])
    for reason, count in facts["hidden"].items():
        verb = "is" if count == 1 else "are"
        lines.append([f"  {format_count(count, 'note')} {verb} not searched: {reason}"])
    if state.pending:
        missing = format_count(state.pending, "note")
        text = f"  No vectors yet for {missing}: until they are made, search uses words only"
        lines.append([text])
    return lines


def _next_steps(root: Path, state: IndexState) -> Lines:
    """Return the commands to try next, each with what it does."""
    steps = []
    if state.pending:
        steps.append(("index", "makes the vectors now"))
    if state.notes:
        steps.append(("search 'what do you want to know'", "finds notes"))
    else:
        steps.append(("new 'First note' --edit", "writes one"))
    steps.append(("connect", "connects an agent"))
    steps.append(("doctor", "checks the notes and the index"))

    vault_option = "" if _is_found_from_here(root) else f" --vault {shlex.quote(str(root))}"
    return [
        [(f"  simplemem {step}{vault_option}", "bold"), f"  {purpose}"] for step, purpose in steps
    ]


def _is_found_from_here(root: Path) -> bool:
    """Return whether a command finds this vault from the current folder without `--vault`."""
    from simplemem.settings.find_vault import find_vault

    try:
        return find_vault() == root
    except NotFound:
        return False


def list_own_files(own_files: Sequence[OwnFile]) -> Lines:
    """Return what `.simplemem/` contains, and that only the index may be deleted."""
    rebuilt = ", ".join(f"{file.path} ({file.holds})" for file in own_files if file.can_be_rebuilt)
    permanent = ", ".join(
        f"{file.path} ({file.holds})" for file in own_files if not file.can_be_rebuilt
    )
    texts = []
    if rebuilt:
        texts.append(f"  {rebuilt} can be rebuilt with `simplemem index --rebuild`")
    if permanent:
        texts.append(f"  These cannot be rebuilt, so keep them: {permanent}")
    else:
        folders = ".simplemem/history and .simplemem/trash"
        texts.append(f"  Keep {folders}: they will contain earlier and deleted notes")
    return [[(text, "dim")] for text in texts]


def _links(facts: Mapping[str, Any]) -> str:
    """Return the number of links, and of those that are unresolved."""
    links = format_count(facts["links"], "link")
    unresolved = facts["unresolved_links"]
    return f"{links} ({amount(unresolved)} unresolved)" if unresolved else links


@command(commands, _PANEL)
def stats(vault: VaultOption = None) -> Answer:
    """Show the size of the vault and the state of its index.

    The output also says what limits search, such as missing vectors.

    $ simplemem stats
    $ simplemem stats --json | jq .notes"""
    with opened(vault) as store:
        facts = store.stats()
    rows = {
        "vault": facts["vault"] + (", read-only" if facts["read_only"] else ""),
        "notes of": _commit(facts),
        "links": _link_facts(facts),
        "not searched": _hidden_notes(facts),
        "problems": _problems(facts),
        "index": _index_facts(facts),
        "vectors": _vector_facts(facts),
        "reranker": facts["reranker"].removeprefix("none"),
        "state": one_line(f"{facts['state']['state']}. {facts['state']['reason']}"),
    }
    labelled = {label: text for label, text in rows.items() if text}
    summary: Part = (f"{amount(facts['notes'])} notes, {amount(facts['words'])} words", "bold")
    warnings = [str(warning) for warning in facts.get("warnings", ())]
    return Answer(facts, [[summary]], labelled=labelled, warnings=warnings)


def _commit(facts: Mapping[str, Any]) -> str:
    """Return the branch and commit of a vault that is read from a git repository, or ""."""
    if "branch" not in facts:
        return ""
    return f"{facts['branch']}, commit {facts['commit'][:12]}"


def _link_facts(facts: Mapping[str, Any]) -> str:
    tags = format_count(facts["tags"], "tag")
    return f"{_links(facts)}, {tags}, {amount(facts['files'])} files in all"


def _hidden_notes(facts: Mapping[str, Any]) -> str:
    return "; ".join(f"{reason}: {amount(count)}" for reason, count in facts["hidden"].items())


def _problems(facts: Mapping[str, Any]) -> str:
    """Return the first problems of notes, and the number of the others."""
    problems = [f"{note['path']}: {note['problem']}" for note in facts["problems"]]
    problems += [f"{file['path']}: {file['why']}" for file in facts["skipped"]]
    text = "; ".join(problems[:_MAX_PROBLEMS])
    hidden_count = len(problems) - _MAX_PROBLEMS
    if hidden_count > 0:
        text += f"; `simplemem doctor` shows {hidden_count} more"
    return text


def _index_facts(facts: Mapping[str, Any]) -> str:
    size = megabytes(facts["index_bytes"])
    passages = amount(facts["passages"])
    return f"{_index_in_server(facts)}{size}, {passages} passages, {facts['index_path']}"


def _vector_facts(facts: Mapping[str, Any]) -> str:
    embedding = facts["embedding"]
    text = f"{amount(embedding['notes_with_vectors'])} notes by {embedding['wanted']}"
    if facts["pending_vectors"]:
        text += f", {amount(facts['pending_vectors'])} missing"
    return text


def _index_in_server(facts: Mapping[str, Any]) -> str:
    """Return the engine of an index in a database server, and how current it is; "" for SQLite."""
    engine: str = facts["engine"]
    if engine.startswith("SQLite"):
        return ""
    seconds = facts["lag_seconds"]
    if seconds is None:
        return f"{engine}, not yet compared with the notes, "
    return f"{engine}, compared with the notes {seconds} s ago, "


@command(commands, _PANEL)
def inspect(vault: VaultOption = None) -> Answer:
    """Show the links, tags and unresolved links of each note.

    With --json, the answer also contains the aliases of each note and the notes that link to it.

    $ simplemem inspect
    $ simplemem inspect --json | jq '."README.md".links'"""
    with opened(vault) as store:
        notes = store.inspect()
    rows = Lines()
    for path, facts in notes.items():
        tags = tags_shown(tag.lstrip("#") for tag in facts["tags"])
        unresolved = ", ".join(facts["unresolved"])
        row: list[Part] = [
            (path, "cyan"),
            f"{len(facts['links'])} out",
            f"{len(facts['backlinks'])} in",
            (tags, "green"),
            (f"unresolved: {unresolved}" if unresolved else "", "yellow"),
        ]
        rows.append(row)
    return Answer(notes, table=rows, columns=(WHOLE, OPTIONAL, OPTIONAL, SHRINKS, SHRINKS))
