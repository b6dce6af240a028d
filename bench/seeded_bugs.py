"""Whether the property tests find planted faults: each one, alone, must make its property fail.

    python bench/seeded_bugs.py [--only moves] [--unsound]

Prints a line for each fault: caught, and by which test; MISSED; or STALE if the code it is planted
in has changed (then adapt the fault). Before the faults of a property, its tests run without a
fault, and must pass. The exit code is 1 if anything is not as it should be. A fault is planted
while a module is imported, in a process of its own; no file is changed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PLANTED: Final = "SIMPLEMEM_SEEDED_BUG"
"""The environment variable with the number of the fault to plant, "" for none."""

PROPERTIES: Final = {
    "splicing": "tests/property/test_splicing.py",
    "scanner": "tests/property/test_scanner.py",
    "tags": "tests/property/test_tag_notations.py",
    "index": "tests/property/test_index_equality.py",
    "moves": "tests/property/test_moves.py",
}
"""By the name of each property: its tests."""

_MAX_SECONDS: Final = 900  # of the tests of one property
_PYTEST: Final = (
    "-m",
    "pytest",
    "-x",
    "-q",
    "-p",
    "bench.seeded_bugs",
    "-p",
    "no:cacheprovider",
)


@dataclass(frozen=True)
class Fault:
    """A small mistake that somebody could make in a module.

    Of each pair in `changes`, the first text is in the source once, and the second one replaces it.
    """

    about: str  # the name of its property
    mistake: str
    module: str
    changes: list[tuple[str, str]]

    @property
    def file(self) -> Path:
        """The source of its module."""
        return ROOT / (self.module.replace(".", "/") + ".py")

    def fits(self, source: str) -> bool:
        """Return whether each text to replace is in a source exactly once."""
        return all(source.count(right) == 1 for right, _ in self.changes)

    def in_source(self, source: str) -> str:
        """Return a source with the fault in it.

        Raises:
            SystemExit: A text to replace is not in it exactly once.
        """
        for right, wrong in self.changes:
            if source.count(right) != 1:
                raise SystemExit(f"{self.module} has {source.count(right)} times: {right!r}")
            source = source.replace(right, wrong)
        return source


FAULTS: Final = (
    Fault(
        "splicing",
        "a new line ends with LF in a file of CRLF",
        "simplemem.note.properties",
        [("match.end(), match[0])", r'match.end(), "\n")')],
    ),
    Fault(
        "splicing",
        "the comment behind a value is lost when it becomes a list",
        "simplemem.note.properties",
        [(r'comment.rstrip(" \t")', '""')],
    ),
    Fault(
        "splicing",
        "the blank lines below a removed property go with it",
        "simplemem.note.properties",
        [
            (
                "changed = text[:start] + text[end:]",
                r'changed = text[:start] + text[end:].lstrip("\r\n")',
            )
        ],
    ),
    Fault(
        "splicing",
        "an apostrophe in single quotes is not doubled",
        "simplemem.note.yaml_writer",
        [("""value.replace("'", "''")""", "value")],
    ),
    Fault(
        "scanner",
        "~~~ closes a fence of ```",
        "simplemem.note.blocks",
        [
            ("self.line[self.offset] != character", 'self.line[self.offset] not in "`~"'),
            ("rest.strip(character)", 'rest.strip("`~")'),
        ],
    ),
    Fault(
        "scanner",
        "#tag at the start of a line is a heading",
        "simplemem.note.blocks",
        [(r'_ATX = re.compile(r"(#{1,6})(?:[ \t]|$)")', '_ATX = re.compile(r"(#{1,6})")')],
    ),
    Fault(
        "scanner",
        "two hyphens are a rule",
        "simplemem.note.blocks",
        [(r"(?:-[ \t]*){3,}", r"(?:-[ \t]*){2,}")],
    ),
    Fault(
        "scanner",
        "the path of [[ Note ]] begins before its blank",
        "simplemem.note.body",
        [("path_start += len(written_name) - len(written_name.lstrip())", "pass")],
    ),
    Fault(
        "tags",
        "the entries of a map are read in the order of the alphabet",
        "simplemem.note.note",
        [
            (
                "in entries.items():\n        name = hyphenate",
                "in sorted(entries.items()):\n        name = hyphenate",
            )
        ],
    ),
    Fault(
        "tags",
        "the blanks of a value stay in a nested tag",
        "simplemem.note.note",
        [("part = hyphenate(str(value))", "part = str(value)")],
    ),
    Fault(
        "tags",
        "removing `stat` removes `status` too",
        "simplemem.note.note",
        [
            ('f"{bare_tag(item).casefold()}/"', "bare_tag(item).casefold()"),
            ('f"{name.casefold()}/"', "name.casefold()"),
        ],
    ),
    Fault(
        "index",
        "the links of a note that is gone are left behind",
        "simplemem.index.notes",
        [("for table in OF_NOTE:", 'for table in OF_NOTE.keys() - {"links"}:')],
    ),
    Fault(
        "index",
        "a file that went leaves the links to it as they were",
        "simplemem.index.notes",
        [("_lookup_keys({*added, *removed})", "_lookup_keys(added)")],
    ),
    Fault(
        "index",
        "a text of the same length is taken for the same text",
        "simplemem.index.api",
        [
            ("self.stat != (size, mtime_ns, ctime_ns)", "size != self.size"),
            ("return newest_ns > self.checked_ns - RACY_NS", "return False"),
        ],
    ),
    Fault(
        "index",
        "a bare link is not looked up again when a note of its name comes",
        "simplemem.obsidian.settings",
        [("return (key, key[:-3])", "return (key,)")],
    ),
    Fault(
        "index",
        "vectors are kept by the text alone, though a title was embedded with it",
        "simplemem.note.passages",
        [('data = text.encode("', 'data = text.split("\\n", 1)[-1].encode("')],
    ),
    Fault(
        "index",
        "a note that is moved leaves its old file behind in the table of files",
        "simplemem.index.updater",
        [
            (
                "notes.record_files(db, written_paths, removed_paths)",
                "notes.record_files(db, written_paths, ())",
            )
        ],
    ),
    Fault(
        "index",
        "a note that we write does not draw the links that mean it now",
        "simplemem.index.notes",
        [("_lookup_keys({*added, *removed})", "_lookup_keys(removed)")],
    ),
    Fault(
        "index",
        "a note that Obsidian begins to exclude stays in recall",
        "simplemem.index.text",
        [("if reason_by_settings != self.hidden_reason(row.path):", "if False:")],
    ),
    Fault(
        "index",
        "the tags of a note that is gone are left behind",
        "simplemem.index.notes",
        [("for table in OF_NOTE:", 'for table in OF_NOTE.keys() - {"tags", "tag_pairs"}:')],
    ),
    Fault(
        "moves",
        "embeds are not written again",
        "simplemem.obsidian.link_edits",
        [
            (
                "    path = moves.after(old_path)\n    if",
                "    path = moves.after(old_path)\n    if link.is_embed or",
            )
        ],
    ),
    Fault(
        "moves",
        "the relative links of the moved note itself stay as they were",
        "simplemem.obsidian.link_edits",
        [
            (
                "if resolve_link(link.target, moves.after(source), files_after)",
                "if resolve_link(link.target, source, files_after)",
            )
        ],
    ),
    Fault(
        "moves",
        "nobody asks whether the new name is another note's already",
        "simplemem.store.link_rewrites",
        [("sorted(files | arriving.get(key, set()))", "sorted(files or arriving.get(key, set()))")],
    ),
    Fault(
        "moves",
        "a blank in a Markdown link is not encoded",
        "simplemem.obsidian.link_edits",
        [("_SPECIAL = ' ()\"'", "_SPECIAL = '()\"'")],
    ),
    Fault(
        "moves",
        "links in properties are written without a thought for their quotes",
        "simplemem.obsidian.link_edits",
        [
            (
                "            values.append((link.scalar, value))\n",
                "            edits += _edit_link("
                "note.text, link, target, spelling, is_in_table=False)\n",
            )
        ],
    ),
)


# The process that is tested: pytest loads this file as a plugin


class _PlantingFinder(MetaPathFinder):
    """Finds the module of a fault, and has it loaded with the fault."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of the fault's module, None for any other one."""
        if name != self._fault.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _PlantingLoader(self._fault, name, spec.origin)
        return spec


class _PlantingLoader(SourceFileLoader):
    """Compiles the source of a module with a fault. Compiled files are neither read nor written."""

    def __init__(self, fault: Fault, name: str, path: str) -> None:
        super().__init__(name, path)
        self._fault = fault

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the module with the fault."""
        path = self.get_filename(fullname)
        source = self._fault.in_source(self.get_data(path).decode())
        return compile(source, path, "exec", dont_inherit=True)


def _plant(number: str) -> None:
    """Plant a fault by its number, none if that is "".

    Hypothesis then tries the same examples in each run, and does not shrink what it finds.
    """
    from hypothesis import Phase, settings

    settings.register_profile(
        "seeded",
        max_examples=300,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        print_blob=False,
    )
    settings.load_profile("seeded")
    if not number:
        return

    fault = FAULTS[int(number)]
    assert fault.module not in sys.modules
    sys.meta_path.insert(0, _PlantingFinder(fault))


# The process that runs the tests


class PropertyRun(NamedTuple):
    """How a run of a property's tests ended."""

    exit_code: int
    message: str  # the first test that failed, else the end of the output


def main() -> int:
    """Plant all faults, one after the other. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--only", choices=PROPERTIES, action="append", help="the faults of this property"
    )
    parser.add_argument(
        "--unsound", action="store_true", help="do not run the properties without a fault first"
    )
    options = parser.parse_args()

    failures = 0
    for about in options.only or PROPERTIES:
        if not options.unsound and not _passes_without_fault(about):
            failures += 1
        for number, fault in enumerate(FAULTS):
            if fault.about == about and not _is_caught(fault, number):
                failures += 1
    return 1 if failures else 0


def _passes_without_fault(about: str) -> bool:
    """Run the tests of a property without a fault, print the result, and tell if they passed."""
    run = run_tests(about, "")
    passes = run.exit_code == 0
    result = "passes as it is" if passes else f"FAILS AS IT IS: {run.message}"
    print(f"{about}: {result}", flush=True)
    return passes


def _is_caught(fault: Fault, number: int) -> bool:
    """Plant a fault, print what became of it, and tell if a test caught it."""
    result = verdict(fault, number)
    print(f"{fault.about}: {fault.mistake}: {result}", flush=True)
    return result.startswith("caught")


def verdict(fault: Fault, number: int) -> str:
    """Return what the tests of its property say about a fault.

    Only tests that ran and failed prove something. If they could not run, the fault is BROKEN.
    """
    source = fault.file.read_text(encoding="utf-8")
    if not fault.fits(source):
        return "STALE"

    run = run_tests(fault.about, str(number))
    if run.exit_code == 0:
        return "MISSED"
    if run.exit_code == 1:
        return f"caught by {run.message}"
    return f"BROKEN: {run.message}"


def run_tests(about: str, number: str) -> PropertyRun:
    """Run the tests of a property until one fails, with the fault of a number planted.

    Raises:
        subprocess.TimeoutExpired: They ran for 15 minutes.
    """
    process = subprocess.run(
        [sys.executable, *_PYTEST, PROPERTIES[about]],
        cwd=ROOT,
        env={**os.environ, PLANTED: number},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_MAX_SECONDS,
        check=False,
    )
    failed_test = re.search(r"^FAILED \S+?::(\w+)", process.stdout, re.MULTILINE)
    message = failed_test[1] if failed_test else process.stdout[-300:].strip()
    return PropertyRun(process.returncode, message)


if PLANTED in os.environ and __name__ != "__main__":
    _plant(os.environ[PLANTED])
if __name__ == "__main__":
    sys.exit(main())
