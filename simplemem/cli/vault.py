"""Commands about the vault as a whole: init, index, stats, inspect, config, doctor, conflicts."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview, progress_bar, warn, warn_doubted
from simplemem.cli.options import VaultOption, YesOption, argument, complete_name, flag, option
from simplemem.cli.output import Lines, Part, amount, diff_lines, in_words, megabytes, one_line, tags_shown
from simplemem.cli.write import undo_with
from simplemem.errors import Invalid, NotFound
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.memory import ConflictMerge, ConflictMerged, Finding, Mended, Mending, OwnFile
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Keep"
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_MOST = 3  # findings of one kind that are shown
_Keep = Literal["note", "copy", "marked", "merge"]
_KEEPS: dict[str, _Keep] = {"note": "note", "copy": "copy", "both": "marked", "": "merge"}


@command(commands, _PANEL)
def init(
    folder: Annotated[Path | None, argument("FOLDER", "The folder of notes. Without it: this one.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make a folder a vault, or look at the one it is. No note is changed.

    What simplemem keeps of its own goes to `.simplemem/` in it, which git and Obsidian leave alone. Of that only the
    index, `index.db`, can be made again (`simplemem index --rebuild`); the folder also holds history and trash.

    $ simplemem init
    $ simplemem init ~/Documents/notes
    $ simplemem init . --json"""
    if folder is not None and vault is not None:
        raise typer.BadParameter("either FOLDER or --vault, not both")
    root = (folder or vault or Path()).expanduser()
    if root.exists() and not root.is_dir():
        raise Invalid(f"{root} is a file", hint="A vault is a folder.")
    root.mkdir(parents=True, exist_ok=True)
    is_new = not (root / ".simplemem").exists()
    with opened(root) as store:
        (store.root / ".simplemem").mkdir(exist_ok=True)
        root, state, facts = store.root, store.state(), store.stats()
        own_files = store.own_files()
    notes = state.notes
    done: Part = ("Vault ready" if is_new else "A vault already", "green")
    ready: list[Part] = [done, f": {root}, {counted(notes, 'note')}"]
    found = [_links(facts), counted(facts["tags"], "tag")] if notes else ["No note yet"]
    found += ["Obsidian's settings"] if (root / ".obsidian").is_dir() else []
    found += [f"not searched, {each}" for each in _left_out(facts)]
    where = "" if _is_found_from_here(root) else f" --vault {shlex.quote(str(root))}"
    first = ("search 'what do you want to know'", "finds notes") if notes else ("new 'First note' --edit", "writes one")
    client = ("install", "connects an agent")
    steps = [first, client, ("doctor", "says what is broken")]
    lines: Lines = [ready, [f"  {', '.join(found)}"]]
    answer: dict[str, Any] = {"vault": str(root), "new": is_new, "notes": notes}
    if state.pending:
        answer["pending_vectors"] = state.pending
        missing = counted(state.pending, "note")
        lines.append([f"  Search goes by words for now: vectors of {missing} are made later"])
        steps.insert(0, ("index", "makes the vectors now, for search by meaning"))
    then: Lines = [[(f"  simplemem {step}{where}", "bold"), f"  {what}"] for step, what in steps]
    answer["folder"] = [each.as_dict() for each in own_files]
    return Answer(answer, [*lines, *_contents(own_files), ["Next:"], *then])


def _is_found_from_here(root: Path) -> bool:
    """Whether a command finds this vault from the current folder without `--vault`."""
    from simplemem.config import find_vault

    try:
        return find_vault() == root
    except NotFound:
        return False


def _contents(own_files: Sequence[OwnFile]) -> Lines:
    """What `.simplemem/` contains, and that only the index may be deleted."""
    rebuilt = [each for each in own_files if each.can_be_rebuilt]
    kept = [each for each in own_files if not each.can_be_rebuilt]
    lines: Lines = []
    if rebuilt:
        files = ", ".join(f"{each.path} ({each.holds})" for each in rebuilt)
        lines.append([(f"  Can be made again with `simplemem index --rebuild`: {files}", "dim")])
    if kept:
        files = ", ".join(f"{each.path} ({each.holds})" for each in kept)
        lines.append([(f"  Cannot be made again: {files}", "dim")])
    else:
        lines.append(
            [("  .simplemem/history and .simplemem/trash will hold earlier and deleted notes: keep them", "dim")]
        )
    return lines


def _links(facts: Mapping[str, Any]) -> str:
    broken = facts["unresolved_links"]
    return counted(facts["links"], "link") + (f" ({amount(broken)} broken)" if broken else "")


def _left_out(facts: Mapping[str, Any]) -> list[str]:
    return [f"{why}: {amount(count)}" for why, count in facts["hidden"].items()]


@command(commands, _PANEL)
def index(
    rebuild: Annotated[bool, flag("--rebuild", "Throw the index away and make it anew.")] = False,
    watch: Annotated[bool, flag("--watch", "Stay, and index every change as it is made. Ctrl-C ends it.")] = False,
    engine: Annotated[
        str, option("--engine", "ENGINE", "Build it in another engine, with the vectors there are.")
    ] = "",
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Update the index. Other commands do so by themselves. What was made stays when it is ended halfway, and the next
    run goes on from there.

    An ENGINE is the address of a PostgreSQL without a password, a file that holds an address, `settings` for what
    `index.engine` names, or `sidecar`. The index in use stays as it is until a setting names the other.

    $ simplemem index
    $ simplemem index --rebuild
    $ simplemem index --watch
    $ simplemem index --engine postgresql://memory@db.example.org/memory
    $ simplemem index --engine sidecar"""
    if engine and (rebuild or watch):
        raise typer.BadParameter("--engine goes without --rebuild and --watch")
    began = time.monotonic()
    with opened(vault, sync=False) as store:
        if engine:
            yield _moved(store, engine)
            return
        try:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=True, rebuild=rebuild)
        except KeyboardInterrupt:
            warn(f"stopped. {store.state().reason} `simplemem index` goes on from there.".replace("  ", " "))
            raise
        warn_doubted(report)
        now, seconds, facts = store.state(), time.monotonic() - began, report.as_dict()
        counts = [f"{facts[key]} {key}" for key in ("added", "modified", "moved", "removed", "embedded") if facts[key]]
        done = f"Made anew: {counted(now.notes, 'note')}" if rebuild else ", ".join(counts)
        done = done or ("Not done" if report.trouble else "Nothing to do")
        warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
        if report.trouble:
            warnings.append(now.reason if report.trouble in now.reason else report.trouble)
        line: list[Part] = [(done, "yellow" if report.trouble else "green"), (f"  in {seconds:.1f} s", "dim")]
        facts["seconds"] = round(seconds, 3)
        yield Answer(facts, [line], warnings=warnings, failed=bool(report.trouble))
        if not watch:
            return
        changed: SimpleQueue[frozenset[str]] = SimpleQueue()
        store.on_change(changed.put)
        store.start(embed=True)
        warn(f"watching {store.root}; Ctrl-C ends it")
        while True:
            with suppress(Empty):  # waiting without end would keep Windows from hearing a Ctrl-C
                names = sorted(changed.get(timeout=1.0))
                yield Answer({"changed": names}, [[("indexed ", "dim"), (name, "cyan")] for name in names])


def _moved(store: EnhancedStore, engine: str) -> Answer:
    from simplemem.config import settings_with_sources, user_config_path

    if re.search(r"//[^/@]*:[^/@]*@|password=", engine):
        hint = "Put it into ~/.pgpass, or the whole address into a file: --engine ~/.config/simplemem/engine"
        raise Invalid("a password on a command line can be read by everybody on this machine", hint=hint)
    source = {key: source for key, _, source in settings_with_sources(vault=store.root)}["index.engine"]
    if engine == "settings" and source == "default":
        raise Invalid("no setting names an engine", hint="--engine postgresql://USER@HOST/DATABASE")
    named = store.settings.index.engine if engine == "settings" else engine
    try:
        with progress_bar() as progress:
            moved = store.move_index(None if engine == "sidecar" else named, progress)
    except KeyboardInterrupt:
        warn("stopped. The index in use is as it was; the same command goes on from here.")
        raise
    use = f"Use it by SIMPLEMEM_INDEX_ENGINE={shlex.quote(engine)}, or [index] engine in {user_config_path(os.environ)}"
    if engine == "sidecar":
        use = f"Use it by taking index.engine out of {source}"
    done = f"Built in {moved.engine}: {counted(moved.notes, 'note')}, vectors of {moved.taken} taken over"
    use = "Your settings name it." if moved.in_use else use
    lines: Lines = [[(done, "yellow" if moved.trouble else "green")], [("  " + moved.place, "dim")], [f"  {use}"]]
    warnings = [moved.trouble] if moved.trouble else []
    return Answer({**moved.as_dict(), "use": use}, lines, warnings=warnings, failed=bool(moved.trouble))


@command(commands, _PANEL)
def stats(vault: VaultOption = None) -> Answer:
    """Show what is in the vault and its index, and whatever lessens search.

    $ simplemem stats
    $ simplemem stats --json | jq .notes"""
    with opened(vault) as store:
        facts = store.stats()
    problems = [f"{each['path']}: {each['problem']}" for each in facts["problems"]]
    problems += [f"{each['path']}: {each['why']}" for each in facts["skipped"]]
    by_meaning = f"{amount(facts['embedding']['notes_with_vectors'])} notes by {facts['embedding']['wanted']}"
    in_use = facts["engine"]
    in_use = "" if in_use.startswith("SQLite") else f"{in_use}, compared with the notes {facts['lag_seconds']} s ago, "
    shown = {
        "vault": facts["vault"] + (", open for reading only" if facts["read_only"] else ""),
        **({"notes of": f"{facts['branch']}, commit {facts['commit'][:12]}"} if "branch" in facts else {}),
        "links": f"{_links(facts)}, {counted(facts['tags'], 'tag')}, {amount(facts['files'])} files in all",
        "left out": "; ".join(_left_out(facts)),
        "unread": "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more: doctor" if problems[3:] else ""),
        "index": f"{in_use}{megabytes(facts['index_bytes'])}, {amount(facts['passages'])} passages, {facts['index_path']}",
        "meaning": by_meaning + f", {amount(facts['pending_vectors'])} to come" * bool(facts["pending_vectors"]),
        "reranker": facts["reranker"].removeprefix("none"),
        "state": one_line(f"{facts['state']['state']}. {facts['state']['reason']}"),
    }
    summary: list[Part] = [(f"{amount(facts['notes'])} notes, {amount(facts['words'])} words", "bold")]
    about = {label: said for label, said in shown.items() if said}
    return Answer(facts, [summary], labelled=about, warnings=list(map(str, facts.get("warnings", ()))))


@command(commands, _PANEL)
def inspect(vault: VaultOption = None) -> Answer:
    """Show what was read in each note: links, tags, aliases, and broken links.

    $ simplemem inspect
    $ simplemem inspect --json | jq '."README.md".links'"""
    with opened(vault) as store:
        notes = store.inspect()
    rows = Lines()
    for path, facts in notes.items():
        tags = (tags_shown(tag.lstrip("#") for tag in facts["tags"]), "green")
        broken = (f"unresolved: {', '.join(facts['unresolved'])}" if facts["unresolved"] else "", "yellow")
        rows.append([(path, "cyan"), f"{len(facts['links'])} out", f"{len(facts['backlinks'])} in", tags, broken])
    return Answer(notes, table=rows)


@command(commands, _PANEL)
def config(
    example: Annotated[bool, flag("--example", "Print a settings file with everything in it.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Show the settings in force, and where each came from.

    A flag beats the environment, the environment beats the vault's `.simplemem/config.toml`, that beats your
    own `~/.config/simplemem/config.toml`, that beats the default.

    The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting `vault`, else the nearest folder, from the current
    one upwards, that contains `.simplemem/` or `.obsidian/`, else `./.memories`, else `~/simplemem`. The last is never
    used inside another folder of Markdown notes.

    $ simplemem config
    $ simplemem config --example > ~/.config/simplemem/config.toml
    $ SIMPLEMEM_SEARCH_LIMIT=10 simplemem config --json"""
    from simplemem.config import example_config, find_existing_vault, find_vault, settings_with_sources

    if example:
        return Answer({"example": example_config()}, text=example_config())

    warnings = list[str]()
    try:
        find_existing_vault(vault)
    except NotFound as error:
        warnings.append(f"{error.message}. {error.hint}")
    try:
        root = find_vault(vault)
    except NotFound:
        root = None

    found = {key: (_shown(value), source) for key, value, source in settings_with_sources({"vault": vault}, vault=root)}
    found["vault"] = (None if root is None else str(root), _source_of_vault(root, found["vault"][1]))
    rows: Lines = [
        [key, (in_words(value), "" if source == "default" else "bold"), (source, "dim")]
        for key, (value, source) in found.items()
    ]
    facts = {key: {"value": value, "source": source} for key, (value, source) in found.items()}
    return Answer(facts, table=rows, warnings=warnings)


def _source_of_vault(root: Path | None, source: str) -> str:
    """Say where the vault was found if no setting names it."""
    if source != "default" or root is None:
        return source
    here = Path.cwd()
    if root in (here, *here.parents):
        return "the nearest vault upward"
    if root == here / ".memories":
        return "./.memories"
    return source


def _shown(value: Any) -> Any:
    """A setting as JSON has it: paths are texts, and a secret stays covered."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", "**********@", value)  # who asks and by which password, in an address
    return value if value is None or isinstance(value, (str, int, float, dict)) else str(value)


@command(commands, _PANEL)
def doctor(
    fix: Annotated[bool, flag("--fix", "Mend broken links, as one change, after showing it and asking.")] = False,
    only: Annotated[list[str] | None, option("--only", "CHECK", "Only these: `links`, or `links,headers`.")] = None,
    dry_run: Annotated[bool, flag("--dry-run", "With --fix: show what it would do, and do none.")] = False,
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault, its index and the disk they are on. Ends with 0 when there is nothing, or notes only; with 1 for
    an error or a warning.

    It compares the index with one made anew, and looks for broken links and what they may mean, headers that cannot be
    read, secrets and conflict copies. It ends with what `.simplemem/` contains. Without `--fix` it changes nothing.

    The checks: index, headers, notes, links, conflicts, secrets, place, git.

    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix"""
    checks = [name.strip() for names in only or () for name in names.split(",")]
    mended: Mended | None = None
    with opened(vault) as store:
        with progress_bar() as progress:
            mending = store.plan_mending(progress, only=checks) if fix else None
            findings = mending.left if mending is not None else store.doctor(progress, only=checks)
        own_files = store.own_files()
        if mending is not None and dry_run:
            findings = mending.findings
        elif mending is not None and mending.changes:
            preview(Answer({}, _changes(mending)))
            what = f"change {counted(len(mending.changes), 'file')} in one step"
            refused, hint = f"this would {what}", "See it with --dry-run; agree with --yes."
            agree(f"{what.capitalize()}?", refused=refused, hint=hint, yes=yes)
            finish()
            mended = store.mend(mending, who=WHO)
    failed = any(finding.level != "note" for finding in findings)
    facts: dict[str, Any] = {"ok": not failed, "findings": [each.as_dict() for each in findings]}
    facts["folder"] = [each.as_dict() for each in own_files]
    lines, warnings = _findings(findings, only or ()), tuple[str, ...]()
    if not only:
        lines += _contents(own_files)
    if mending is not None:
        changes = [{"path": each.path, "what": [*each.what], "diff": each.diff} for each in mending.changes]
        facts["fix"] = {"done": mended is not None, "changes": changes, "unmended": [*mending.unmended]}
        if mended is None:
            warnings = mending.unmended
            lines = (_changes(mending) or [[("Nothing can be mended without a person.", "green")]]) + lines
        else:
            warnings = mended.warnings
            facts["fix"] |= mended.as_dict()
            done: Part = (f"Mended {counted(len(mended.changed), 'file')} in one step", "green")
            lines = [[done], undo_with(mended.version), *lines]
    return Answer(facts, lines, warnings=warnings, failed=failed)


def _changes(mending: Mending) -> Lines:
    """The whole change, as a diff of every note."""
    lines = Lines()
    for change in mending.changes:
        lines += [[(change.path, "cyan"), ": ", "; ".join(map(one_line, change.what))], *diff_lines(change.diff)]
    return lines


def _findings(findings: Sequence[Finding], only: Sequence[str]) -> Lines:
    """Their sum, then what was found, the worst first. Of one kind a few are shown, unless that check was asked for."""
    if not findings:
        return [[("All is well.", "green")]]
    levels = Counter[str](finding.level for finding in findings)
    verdict = ", ".join(counted(levels[level], level) for level in _STYLES)
    if sure := sum(bool(finding.fix) for finding in findings):
        verdict += f"; `simplemem doctor --fix` can mend {sure if sure < len(findings) else 'all of it'}"
    lines: Lines = [[(f"{verdict}.", next(style for level, style in _STYLES.items() if levels[level]))]]
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: list(_STYLES).index(finding.level)):
        alike.setdefault((finding.level, finding.check), []).append(finding)
    for (level, check), every in alike.items():
        shown = every if only or len(every) <= _MOST + 1 else every[:_MOST]
        for finding in shown:
            place = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
            said: list[Part] = [(f"{level}: ", _STYLES[level]), (place, "cyan"), one_line(finding.message)]
            lines.append([*said, (f"  [{check}]", "dim")])
            lines += [[(f"  {one_line(finding.hint)}", "dim")]] if finding.hint else []
            lines += [[(f"  --fix would {one_line(finding.fix)}", "green")]] if finding.fix else []
        if more := len(every) - len(shown):
            notes = counted(len({finding.path for finding in every}), "note")
            lines.append([(f"  and {more} more like these, in {notes} in all: simplemem doctor --only {check}", "dim")])
    return lines


@command(commands, _PANEL)
def conflicts(
    action: Annotated[str | None, argument("merge", "Bring copies and note together. Without it: list them.")] = None,
    name: Annotated[str | None, argument("NAME", "A copy, or a note: all copies of it.", complete_name)] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be done, and do nothing.")] = False,
    keep: Annotated[str, option("--keep", "note|copy|both", "Keep one text, or both, marked where they differ.")] = "",
    vault: VaultOption = None,
) -> Answer:
    """List the copies that synchronisers and git keep when a note was changed in two places, and merge them.

    A merge writes the note and puts the copy into the trash, as one change that `undo` takes back. Where the
    history knows the text both began as, what either side removed is removed; where it does not, all is kept.
    What both changed differently is never decided for you: see --keep.

    $ simplemem conflicts
    $ simplemem conflicts merge Kite --dry-run
    $ simplemem conflicts merge Kite --keep note"""
    if (name is None or action != "merge" or keep not in _KEEPS) and (action or dry_run or keep):
        raise typer.BadParameter("either alone, or as: conflicts merge NAME [--keep note|copy|both]")
    with opened(vault) as store:
        if name is None:
            copies = store.conflict_copies()
            table: Lines = [[(copy.path, "cyan"), f"of {copy.of}", (copy.maker, "dim")] for copy in copies]
            more: list[Part] = [("  see what differs with: simplemem conflicts merge NAME --dry-run", "dim")]
            facts = {"conflicts": [copy.as_dict() for copy in copies]}
            return Answer(facts, [more if copies else [("No conflict copies.", "green")]], table, gives_way=0)
        merges = store.conflict_merges(name, together=True)
        facts = {"merges": [merge.as_dict() for merge in merges]}
        if dry_run:
            return Answer(facts, _planned(merges))
        done: list[ConflictMerged] = []
        lines = Lines()
        for of_note in _by_note(merges):
            preview(Answer({}, _planned(of_note)))
            with finish():
                merged = store.merge_conflicts(of_note, keep=_KEEPS[keep], who=WHO)
            for each in merged:
                verb = "Merged " if each.changed else "Dropped "
                lines.append([(verb, "green"), (each.copy, "cyan")])
            lines.append(undo_with(merged[0].version))
            done += merged
    warnings = [warning for each in done for warning in each.warnings]
    return Answer({"merged": [each.as_dict() for each in done]}, lines, warnings=warnings)


def _by_note(merges: Sequence[ConflictMerge]) -> list[list[ConflictMerge]]:
    """The merges of each note, those first that cannot be made without a decision."""
    by_note: dict[str, list[ConflictMerge]] = {}
    for merge in merges:
        by_note.setdefault(merge.copy.original, []).append(merge)
    return sorted(by_note.values(), key=lambda of_note: all(merge.clean for merge in of_note))


def _planned(merges: Sequence[ConflictMerge]) -> Lines:
    lines = Lines()
    for merge in merges:
        if merge.conflicts:
            found = f"both say something else in {counted(merge.conflicts, 'place')}"
        elif not merge.diff:
            found = "nothing in it is new to the note"
        elif merge.base:
            found = f"they fit together; both most likely began as {merge.base}"
        else:
            found = "they fit together; their base is not known, so all lines are kept"
        lines.append([(merge.copy.path, "cyan"), " into ", (merge.copy.of, "cyan"), f": {merge.problem or found}"])
        lines += diff_lines(merge.diff)
    return lines
