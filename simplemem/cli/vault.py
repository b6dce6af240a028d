"""Commands about the vault as a whole: init, index, stats, inspect, doctor."""

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
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import (
    WHO,
    Answer,
    agree,
    command,
    finish,
    opened,
    preview,
    progress_bar,
    warn,
    warn_doubted,
)
from simplemem.cli.options import VaultOption, YesOption, argument, default_group, flag, option
from simplemem.cli.output import (
    OPTIONAL,
    SHRINKS,
    WHOLE,
    Lines,
    Part,
    amount,
    diff_lines,
    megabytes,
    one_line,
    tags_shown,
)
from simplemem.cli.write import undo_with
from simplemem.errors import Invalid, NotFound
from simplemem.note.words import format_count
from simplemem.settings.find_vault import vault_directly_below
from simplemem.settings.location import marked_vault

if TYPE_CHECKING:
    from simplemem.models import Finding, FixPlan, FixResult, OwnFile
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Vault"
_LABELS = {"error": "error", "warning": "warning", "note": "remark"}
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_MOST = 3  # findings of one kind that are shown


@command(commands, _PANEL)
def init(
    folder: Annotated[
        Path | None, argument("FOLDER", "The folder of notes; by default the current folder.")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make a folder a vault. No note is changed.

    simplemem writes its own files to `.simplemem/` in the folder, which git and Obsidian ignore. Only the index,
    `index.db`, can be rebuilt (`simplemem index --rebuild`); the folder also contains the history and the trash. If the
    folder is a vault already, the command shows what it contains.

    $ simplemem init
    $ simplemem init ~/Documents/notes
    $ simplemem init . --json"""
    if folder is not None and vault is not None:
        raise typer.BadParameter("FOLDER and --vault cannot be combined")
    root = (folder or vault or Path()).expanduser()
    if root.exists() and not root.is_dir():
        raise Invalid(
            f"{root} is a file", hint="A vault is a folder. Name the folder that contains the file."
        )
    is_new = not (root / ".simplemem").exists()
    if is_new:
        _refuse_home(root)
    outer = marked_vault(os.path.dirname(os.path.abspath(root))) if is_new else None
    inner = vault_directly_below(os.path.abspath(root)) if is_new else None
    is_created = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    with opened(root, embed=True) as store:
        (store.root / ".simplemem").mkdir(exist_ok=True)
        root, state, facts = store.root, store.state(), store.stats()
        own_files = store.own_files()
    notes = state.notes
    done: Part = ("Vault ready" if is_new else "Already a vault", "green")
    ready: list[Part] = [done, f": {root}, {format_count(notes, 'note')}"]
    if is_created:
        ready = [("Created", "green"), f" {root}. ", done, f": {format_count(notes, 'note')}"]
    found: Lines = [
        [f"  {_links(facts)}, {format_count(facts['tags'], 'tag')}" if notes else "  No note yet"]
    ]
    if (root / ".obsidian").is_dir():
        found.append(["  Obsidian's settings are used"])
    for reason, count in facts["hidden"].items():
        are = "is" if count == 1 else "are"
        found.append([f"  {format_count(count, 'note')} {are} not searched: {reason}"])
    where = "" if _is_found_from_here(root) else f" --vault {shlex.quote(str(root))}"
    first = (
        ("search 'what do you want to know'", "finds notes")
        if notes
        else ("new 'First note' --edit", "writes one")
    )
    client = ("connect", "connects an agent")
    steps = [first, client, ("doctor", "checks the notes and the index")]
    lines: Lines = [ready, *found]
    answer: dict[str, Any] = {"vault": str(root), "new": is_new, "notes": notes}
    if state.pending:
        answer["pending_vectors"] = state.pending
        missing = format_count(state.pending, "note")
        lines.append(
            [f"  No vectors yet for {missing}: until they are made, search uses words only"]
        )
        steps.insert(0, ("index", "makes the vectors now"))
    then: Lines = [[(f"  simplemem {step}{where}", "bold"), f"  {what}"] for step, what in steps]
    answer["folder"] = [each.as_dict() for each in own_files]
    warnings = []
    if outer is not None:
        warnings.append(f"{root} is inside the vault {outer}, which contains the same notes")
    if inner is not None:
        warnings.append(f"{inner} is a vault of its own, whose notes this vault also contains")
    return Answer(answer, [*lines, *_contents(own_files), ["Next:"], *then], warnings=warnings)


def _refuse_home(root: Path) -> None:
    """Raise Invalid for the home folder and the folders above it: a vault there contains everything on the disk."""
    from simplemem.settings.location import contains_home

    home = str(Path.home())
    if contains_home(str(root.absolute()), home):
        hint = "Name the folder of notes, as in `simplemem init ~/notes`."
        raise Invalid(
            f"{root.absolute()} contains more than notes: it is or contains your home folder",
            hint=hint,
        )


def _is_found_from_here(root: Path) -> bool:
    """Whether a command finds this vault from the current folder without `--vault`."""
    from simplemem.settings.find_vault import find_vault

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
        lines.append([(f"  {files} can be rebuilt with `simplemem index --rebuild`", "dim")])
    if kept:
        files = ", ".join(f"{each.path} ({each.holds})" for each in kept)
        lines.append([(f"  These cannot be rebuilt, so keep them: {files}", "dim")])
    else:
        lines.append(
            [
                (
                    "  Keep .simplemem/history and .simplemem/trash: they will contain earlier and deleted notes",
                    "dim",
                )
            ]
        )
    return lines


def _links(facts: Mapping[str, Any]) -> str:
    broken = facts["unresolved_links"]
    return format_count(facts["links"], "link") + (
        f" ({amount(broken)} unresolved)" if broken else ""
    )


def _left_out(facts: Mapping[str, Any]) -> list[str]:
    return [f"{why}: {amount(count)}" for why, count in facts["hidden"].items()]


_index = default_group(
    commands,
    _PANEL,
    "index",
    "Update the index, rebuild it, or move it to another database.\n\nOther commands update the index by themselves.",
    "$ simplemem index\n$ simplemem index --rebuild\n$ simplemem index move postgresql://memory@db/memory",
)


@command(_index)
def update(
    rebuild: Annotated[bool, flag("--rebuild", "Delete the index and build it again.")] = False,
    watch: Annotated[
        bool, flag("--watch", "Keep running, and index every change. Ctrl-C stops it.")
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", hidden=True)
    ] = "",  # the earlier form of `index move`
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Update the index, and make the vectors that are missing.

    If the command is stopped, the next run continues where it stopped.

    $ simplemem index
    $ simplemem index --rebuild
    $ simplemem index update --watch"""
    if engine and (rebuild or watch):
        raise typer.BadParameter("--engine cannot be combined with --rebuild and --watch")
    began = time.monotonic()
    with opened(vault, sync=False) as store:
        if engine:
            yield _moved(store, engine)
            return
        try:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=True, rebuild=rebuild)
        except KeyboardInterrupt:
            warn(
                f"stopped. {store.state().reason} `simplemem index` continues from there.".replace(
                    "  ", " "
                )
            )
            raise
        warn_doubted(report)
        now, seconds, facts = store.state(), time.monotonic() - began, report.as_dict()
        counts = [
            f"{facts[key]} {key}"
            for key in ("added", "modified", "moved", "removed", "embedded")
            if facts[key]
        ]
        done = f"Rebuilt: {format_count(now.notes, 'note')}" if rebuild else ", ".join(counts)
        done = done or ("Not done" if report.trouble else "The index is up to date")
        warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
        if report.trouble:
            warnings.append(now.reason if report.trouble in now.reason else report.trouble)
        line: list[Part] = [
            (done, "yellow" if report.trouble else "green"),
            (f" in {seconds:.1f} s", "dim"),
        ]
        facts["seconds"] = round(seconds, 3)
        yield Answer(facts, [line], warnings=warnings, failed=bool(report.trouble))
        if not watch:
            return
        changed: SimpleQueue[frozenset[str]] = SimpleQueue()
        store.on_change(changed.put)
        store.start(embed=True)
        warn(f"watching {store.root}; Ctrl-C stops it")
        while True:
            with suppress(Empty):  # waiting without end would keep Windows from hearing a Ctrl-C
                names = sorted(changed.get(timeout=1.0))
                yield Answer(
                    {"changed": names}, [[("indexed ", "dim"), (name, "cyan")] for name in names]
                )


@command(_index, name="move")
def move_index(
    address: Annotated[
        str, argument("DATABASE", "An address, a file with an address, `settings` or `sqlite`.")
    ],
    vault: VaultOption = None,
) -> Answer:
    """Build the index in another database. The vectors are copied.

    DATABASE is the address of a PostgreSQL database (without a password), a file that contains an address, `settings`
    for the value of `index.engine`, or `sqlite` for the index in the vault. The index in use stays as it is until a
    setting names the other one.

    $ simplemem index move postgresql://memory@db.example.org/memory
    $ simplemem index move sqlite"""
    with opened(vault, sync=False) as store:
        return _moved(store, address)


def _moved(store: EnhancedStore, engine: str) -> Answer:
    """Build the index in another database. `sidecar` is the earlier name of `sqlite`."""
    from simplemem.settings.loading import settings_with_sources

    if re.search(r"//[^/@]*:[^/@]*@|password=", engine):
        hint = "Put the password into ~/.pgpass, or put the address into a file and pass the path of the file."
        raise Invalid(
            "a password on a command line can be read by everybody on this machine", hint=hint
        )
    source = {key: source for key, _, source in settings_with_sources(vault=store.root)}[
        "index.engine"
    ]
    if engine == "settings" and source == "default":
        hint = "Use `simplemem index move postgresql://USER@HOST/DATABASE`."
        raise Invalid("index.engine is not set", hint=hint)
    named = store.settings.index.engine if engine == "settings" else engine
    is_sqlite = engine in ("sqlite", "sidecar")
    try:
        with progress_bar() as progress:
            moved = store.move_index(None if is_sqlite else named, progress)
    except KeyboardInterrupt:
        warn("stopped. The index in use is unchanged; the same command continues from here.")
        raise
    use = f"To use it, set SIMPLEMEM_INDEX_ENGINE={shlex.quote(engine)}, or run"
    use += f" `simplemem config set index.engine {shlex.quote(engine)}`"
    if is_sqlite:
        use = f"To use it, remove index.engine from {source}"
    done = f"Built in {moved.engine}: {format_count(moved.notes, 'note')}, vectors of {format_count(moved.taken, 'note')} copied"
    use = "Your settings already name this index." if moved.in_use else use
    lines: Lines = [
        [(done, "yellow" if moved.trouble else "green")],
        [("  " + moved.place, "dim")],
        [f"  {use}"],
    ]
    warnings = [moved.trouble] if moved.trouble else []
    return Answer(
        {**moved.as_dict(), "use": use}, lines, warnings=warnings, failed=bool(moved.trouble)
    )


@command(commands, _PANEL)
def stats(vault: VaultOption = None) -> Answer:
    """Show the size of the vault and the state of its index.

    The output also says what limits search, such as missing vectors.

    $ simplemem stats
    $ simplemem stats --json | jq .notes"""
    with opened(vault) as store:
        facts = store.stats()
    problems = [f"{each['path']}: {each['problem']}" for each in facts["problems"]]
    problems += [f"{each['path']}: {each['why']}" for each in facts["skipped"]]
    by_meaning = f"{amount(facts['embedding']['notes_with_vectors'])} notes by {facts['embedding']['wanted']}"
    in_use = _index_in_server(facts)
    shown = {
        "vault": facts["vault"] + (", read-only" if facts["read_only"] else ""),
        **(
            {"notes of": f"{facts['branch']}, commit {facts['commit'][:12]}"}
            if "branch" in facts
            else {}
        ),
        "links": f"{_links(facts)}, {format_count(facts['tags'], 'tag')}, {amount(facts['files'])} files in all",
        "not searched": "; ".join(_left_out(facts)),
        "problems": "; ".join(problems[:3])
        + (f"; `simplemem doctor` shows {len(problems) - 3} more" if problems[3:] else ""),
        "index": f"{in_use}{megabytes(facts['index_bytes'])}, {amount(facts['passages'])} passages, {facts['index_path']}",
        "vectors": by_meaning
        + f", {amount(facts['pending_vectors'])} missing" * bool(facts["pending_vectors"]),
        "reranker": facts["reranker"].removeprefix("none"),
        "state": one_line(f"{facts['state']['state']}. {facts['state']['reason']}"),
    }
    summary: list[Part] = [
        (f"{amount(facts['notes'])} notes, {amount(facts['words'])} words", "bold")
    ]
    about = {label: said for label, said in shown.items() if said}
    return Answer(
        facts, [summary], labelled=about, warnings=list(map(str, facts.get("warnings", ())))
    )


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
        tags = (tags_shown(tag.lstrip("#") for tag in facts["tags"]), "green")
        broken = (
            f"unresolved: {', '.join(facts['unresolved'])}" if facts["unresolved"] else "",
            "yellow",
        )
        rows.append(
            [
                (path, "cyan"),
                f"{len(facts['links'])} out",
                f"{len(facts['backlinks'])} in",
                tags,
                broken,
            ]
        )
    return Answer(notes, table=rows, columns=(WHOLE, OPTIONAL, OPTIONAL, SHRINKS, SHRINKS))


@command(commands, _PANEL)
def doctor(
    fix: Annotated[
        bool, flag("--fix", "Fix broken links in one step, after showing the changes.")
    ] = False,
    only: Annotated[
        list[str] | None, option("--only", "CHECK", "Only these checks: `links`, `links,headers`.")
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "With --fix: show the changes, and change nothing.")
    ] = False,
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault for problems, and fix broken links.

    The command compares the index with the notes, and looks for broken links, frontmatter that cannot be read, secrets,
    conflict copies and problems with the disk. It also lists what `.simplemem/` contains. Without --fix, nothing is
    changed. The exit code is 1 if there is an error or a warning, and 0 otherwise.

    The checks: index, headers, notes, links, conflicts, secrets, place, git.

    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix"""
    checks = [name.strip() for names in only or () for name in names.split(",")]
    fixed: FixResult | None = None
    with opened(vault) as store:
        with progress_bar() as progress:
            plan = store.plan_fixes(progress, only=checks) if fix else None
            findings = plan.left if plan is not None else store.doctor(progress, only=checks)
        own_files = store.own_files()
        if plan is not None and dry_run:
            findings = plan.findings
        elif plan is not None and plan.changes:
            preview(Answer({}, _changes(plan)))
            what = f"change {format_count(len(plan.changes), 'file')} in one step"
            refused = f"this would {what}, but there is no terminal to confirm it"
            hint = "Add --yes, or preview with --dry-run."
            agree(f"{what.capitalize()}?", refused=refused, hint=hint, yes=yes)
            finish()
            fixed = store.fix(plan, who=WHO)
    failed = any(finding.level != "note" for finding in findings)
    facts: dict[str, Any] = {"ok": not failed, "findings": [each.as_dict() for each in findings]}
    facts["folder"] = [each.as_dict() for each in own_files]
    lines, warnings = _findings(findings, only or ()), tuple[str, ...]()
    if not only:
        lines += _contents(own_files)
    if plan is not None:
        changes = [
            {"path": each.path, "what": [*each.what], "diff": each.diff} for each in plan.changes
        ]
        facts["fix"] = {
            "done": fixed is not None,
            "changes": changes,
            "unmended": [*plan.problems],
        }
        if fixed is None:
            warnings = plan.problems
            lines = (_changes(plan) or [[("Nothing can be fixed automatically.", "green")]]) + lines
        else:
            warnings = fixed.warnings
            facts["fix"] |= fixed.as_dict()
            done: Part = (f"Fixed {format_count(len(fixed.changed), 'file')} in one step", "green")
            lines = [[done], undo_with(fixed.version), *lines]
    return Answer(facts, lines, warnings=warnings, failed=failed)


def _changes(plan: FixPlan) -> Lines:
    """The whole change, as a diff of every note."""
    lines = Lines()
    for change in plan.changes:
        lines += [
            [(change.path, "cyan"), ": ", "; ".join(map(one_line, change.what))],
            *diff_lines(change.diff),
        ]
    return lines


def _findings(findings: Sequence[Finding], only: Sequence[str]) -> Lines:
    """Their sum, then what was found, the worst first. Of one kind a few are shown, unless that check was asked for."""
    if not findings:
        return [[("No problems found.", "green")]]
    levels = Counter[str](finding.level for finding in findings)
    verdict = ", ".join(format_count(levels[level], _LABELS[level]) for level in _STYLES)
    if sure := sum(bool(finding.fix) for finding in findings):
        verdict += (
            f"; `simplemem doctor --fix` can fix {sure if sure < len(findings) else 'all of it'}"
        )
    lines: Lines = [
        [(f"{verdict}.", next(style for level, style in _STYLES.items() if levels[level]))]
    ]
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: list(_STYLES).index(finding.level)):
        alike.setdefault((finding.level, finding.check), []).append(finding)
    for (level, check), every in alike.items():
        shown = every if only or len(every) <= _MOST + 1 else every[:_MOST]
        for finding in shown:
            place = (
                f"{finding.path}:{finding.line}: "
                if finding.line
                else f"{finding.path}: "
                if finding.path
                else ""
            )
            said: list[Part] = [
                (f"{_LABELS[level]}: ", _STYLES[level]),
                (place, "cyan"),
                one_line(finding.message),
            ]
            lines.append([*said, (f"  [{check}]", "dim")])
            lines += [[(f"  {one_line(finding.hint)}", "dim")]] if finding.hint else []
            lines += [[(f"  --fix would {one_line(finding.fix)}", "green")]] if finding.fix else []
        if more := len(every) - len(shown):
            notes = format_count(len({finding.path for finding in every}), "note")
            lines.append(
                [
                    (
                        f"  and {more} more like these, in {notes} in all: simplemem doctor --only {check}",
                        "dim",
                    )
                ]
            )
    return lines
