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
    folder = (folder or vault or Path()).expanduser()
    is_new = not (folder / ".simplemem").exists()
    is_created = not folder.exists()
    _check_is_folder(folder)
    if is_new:
        _check_is_not_home(folder)
    folder.mkdir(parents=True, exist_ok=True)

    with opened(folder, embed=True) as store:
        root = store.root
        (root / ".simplemem").mkdir(exist_ok=True)
        state = store.state()
        facts = store.stats()
        own_files = store.own_files()

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
    warnings = _overlap_warnings(folder, root) if is_new else []
    return Answer(answer, lines, warnings=warnings)


def _check_is_folder(path: Path) -> None:
    """Raise Invalid if there is a file at the path of a vault."""
    if path.exists() and not path.is_dir():
        hint = "A vault is a folder. Name the folder that contains the file."
        raise Invalid(f"{path} is a file", hint=hint)


def _overlap_warnings(folder: Path, root: Path) -> list[str]:
    """Return a warning for a vault around a new vault, and one for a vault directly in it.

    `folder` is the new vault as the user names it, `root` as warnings name it.
    """
    path = os.path.abspath(folder)
    outer_vault = marked_vault(os.path.dirname(path))
    inner_vault = vault_directly_below(path)

    warnings = []
    if outer_vault is not None:
        warnings.append(f"{root} is inside the vault {outer_vault}, which contains the same notes")
    if inner_vault is not None:
        warnings.append(
            f"{inner_vault} is a vault of its own, whose notes this vault also contains"
        )
    return warnings


def _check_is_not_home(folder: Path) -> None:
    """Raise Invalid for the home folder and the folders above it.

    A vault there would contain everything on the disk.
    """
    from simplemem.settings.location import contains_home

    path = folder.absolute()
    if contains_home(str(path), str(Path.home())):
        message = f"{path} contains more than notes: it is or contains your home folder"
        raise Invalid(message, hint="Name the folder of notes, as in `simplemem init ~/notes`.")


def _ready_line(root: Path, notes: int, *, is_new: bool, is_created: bool) -> list[Part]:
    """Return the line that says what `init` made, and how many notes there are.

    It made a vault if `is_new`, and also the folder if `is_created`.
    """
    count = format_count(notes, "note")
    verdict: Part = ("Vault ready" if is_new else "Already a vault", "green")
    if is_created:
        return [("Created", "green"), f" {root}. ", verdict, f": {count}"]
    return [verdict, f": {root}, {count}"]


def _content_lines(root: Path, state: IndexState, facts: Mapping[str, Any]) -> Lines:
    """Return what the vault contains, and what limits search.

    In a vault of Obsidian, a line says that its settings are used. `facts` is the dict that
    `store.stats` returns.
    """
    content = "No note yet"
    if state.notes:
        content = f"{_link_counts(facts)}, {format_count(facts['tags'], 'tag')}"
    lines: Lines = [[f"  {content}"]]
    if (root / ".obsidian").is_dir():
        lines.append(["  Obsidian's settings are used"])
    for reason, count in facts["hidden"].items():
        notes = format_count(count, "note")
        verb = "is" if count == 1 else "are"
        lines.append([f"  {notes} {verb} not searched: {reason}"])
    if state.pending:
        notes = format_count(state.pending, "note")
        lines.append([f"  No vectors yet for {notes}: until they are made, search uses words only"])
    return lines


def _next_steps(root: Path, state: IndexState) -> Lines:
    """Return the commands to try next, each with what it does.

    They have `--vault` if they would not find this vault from the current folder without it.
    """
    steps = []
    if state.pending:
        steps.append(("index", "makes the vectors now"))
    if state.notes:
        steps.append(("search 'what do you want to know'", "finds notes"))
    else:
        steps.append(("new 'First note' --edit", "writes one"))
    steps.append(("connect", "connects an agent"))
    steps.append(("doctor", "checks the notes and the index"))

    vault_option = ""
    if not _is_found_from_here(root):
        vault_option = f" --vault {shlex.quote(str(root))}"
    lines = Lines()
    for step, purpose in steps:
        lines.append([(f"  simplemem {step}{vault_option}", "bold"), f"  {purpose}"])
    return lines


def _is_found_from_here(root: Path) -> bool:
    """Return whether a command finds this vault from the current folder without `--vault`.

    False also if it finds none. Raises Invalid if the user's settings are not valid, and
    Unavailable if they cannot be read.
    """
    from simplemem.settings.find_vault import find_vault

    try:
        return find_vault() == root
    except NotFound:
        return False


def list_own_files(own_files: Sequence[OwnFile]) -> Lines:
    """Return what `.simplemem/` contains, and that only the index may be deleted."""
    rebuildable = []
    permanent = []
    for file in own_files:
        description = f"{file.path} ({file.holds})"
        if file.can_be_rebuilt:
            rebuildable.append(description)
        else:
            permanent.append(description)

    texts = []
    if rebuildable:
        names = ", ".join(rebuildable)
        texts.append(f"  {names} can be rebuilt with `simplemem index --rebuild`")
    if permanent:
        texts.append(f"  These cannot be rebuilt, so keep them: {', '.join(permanent)}")
    else:
        folders = ".simplemem/history and .simplemem/trash"
        texts.append(f"  Keep {folders}: they will contain earlier and deleted notes")
    return [[(text, "dim")] for text in texts]


def _link_counts(facts: Mapping[str, Any]) -> str:
    """Return the number of links, and of those that are unresolved."""
    links = format_count(facts["links"], "link")
    if not facts["unresolved_links"]:
        return links
    return f"{links} ({amount(facts['unresolved_links'])} unresolved)"


@command(commands, _PANEL)
def stats(vault: VaultOption = None) -> Answer:
    """Show the size of the vault and the state of its index.

    The output also says what limits search, such as missing vectors.

    $ simplemem stats
    $ simplemem stats --json | jq .notes"""
    with opened(vault) as store:
        facts = store.stats()

    texts = {
        "vault": _vault_text(facts),
        "notes of": _commit_text(facts),
        "links": _links_text(facts),
        "not searched": _hidden_text(facts),
        "problems": _problems_text(facts),
        "index": _index_text(facts),
        "vectors": _vectors_text(facts),
        "reranker": facts["reranker"].removeprefix("none"),
        "state": _state_text(facts),
    }
    labelled = {label: text for label, text in texts.items() if text}
    summary: Part = (f"{amount(facts['notes'])} notes, {amount(facts['words'])} words", "bold")
    warnings = [str(warning) for warning in facts.get("warnings", ())]
    return Answer(facts, [[summary]], labelled=labelled, warnings=warnings)


# The functions below return one text of `stats`. Their argument is what `store.stats` returns.


def _vault_text(facts: Mapping[str, Any]) -> str:
    """Return the path of the vault, and whether it is read-only."""
    path: str = facts["vault"]
    return f"{path}, read-only" if facts["read_only"] else path


def _commit_text(facts: Mapping[str, Any]) -> str:
    """Return the branch and commit of a vault that is read from a git repository, or ""."""
    if "branch" not in facts:
        return ""
    return f"{facts['branch']}, commit {facts['commit'][:12]}"


def _links_text(facts: Mapping[str, Any]) -> str:
    """Return the numbers of links, tags and files."""
    tags = format_count(facts["tags"], "tag")
    return f"{_link_counts(facts)}, {tags}, {amount(facts['files'])} files in all"


def _hidden_text(facts: Mapping[str, Any]) -> str:
    """Return how many notes are not searched for each reason, or ""."""
    return "; ".join(f"{reason}: {amount(count)}" for reason, count in facts["hidden"].items())


def _problems_text(facts: Mapping[str, Any]) -> str:
    """Return the first three problems of notes and files, and the number of the others.

    "" if there is none.
    """
    problems = [f"{note['path']}: {note['problem']}" for note in facts["problems"]]
    problems += [f"{file['path']}: {file['why']}" for file in facts["skipped"]]
    text = "; ".join(problems[:_MAX_PROBLEMS])
    hidden_count = len(problems) - _MAX_PROBLEMS
    if hidden_count > 0:
        text += f"; `simplemem doctor` shows {hidden_count} more"
    return text


def _index_text(facts: Mapping[str, Any]) -> str:
    """Return the size of the index, the number of its passages, and its place.

    Before them comes the engine, unless it is SQLite.
    """
    size = megabytes(facts["index_bytes"])
    passages = amount(facts["passages"])
    return f"{_engine_text(facts)}{size}, {passages} passages, {facts['index_path']}"


def _engine_text(facts: Mapping[str, Any]) -> str:
    """Return the engine of an index in a database server, and how current it is; "" for SQLite."""
    engine: str = facts["engine"]
    if engine.startswith("SQLite"):
        return ""
    seconds = facts["lag_seconds"]
    if seconds is None:
        return f"{engine}, not yet compared with the notes, "
    return f"{engine}, compared with the notes {seconds} s ago, "


def _vectors_text(facts: Mapping[str, Any]) -> str:
    """Return how many notes have vectors, of which model, and how many lack them."""
    embedding = facts["embedding"]
    text = f"{amount(embedding['notes_with_vectors'])} notes by {embedding['wanted']}"
    if facts["pending_vectors"]:
        text += f", {amount(facts['pending_vectors'])} missing"
    return text


def _state_text(facts: Mapping[str, Any]) -> str:
    """Return how complete the index is, and why."""
    state = facts["state"]
    return one_line(f"{state['state']}. {state['reason']}")


@command(commands, _PANEL)
def inspect(vault: VaultOption = None) -> Answer:
    """Show the links, tags and unresolved links of each note.

    With --json, the answer also contains the aliases of each note and the notes that link to it.

    $ simplemem inspect
    $ simplemem inspect --json | jq '."README.md".links'"""
    with opened(vault) as store:
        notes = store.inspect()
    rows = [_inspected_row(path, facts) for path, facts in notes.items()]
    return Answer(notes, table=rows, columns=(WHOLE, OPTIONAL, OPTIONAL, SHRINKS, SHRINKS))


def _inspected_row(path: str, facts: Mapping[str, Any]) -> list[Part]:
    """Return the row of `inspect` for a note, from the `facts` of `store.inspect` about it.

    It has the path, the numbers of links and of backlinks, the tags, and the unresolved links.
    """
    tags = tags_shown(tag.lstrip("#") for tag in facts["tags"])
    unresolved = ", ".join(facts["unresolved"])
    if unresolved:
        unresolved = f"unresolved: {unresolved}"
    return [
        (path, "cyan"),
        f"{len(facts['links'])} out",
        f"{len(facts['backlinks'])} in",
        (tags, "green"),
        (unresolved, "yellow"),
    ]
