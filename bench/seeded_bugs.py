"""Do the property tests find what they are there to find? Each of these faults, planted alone, must make its property
fail.

    python bench/seeded_bugs.py [--only moves] [--unsound]

Prints a line for each fault: caught, and by which test; MISSED; or STALE when the code it is planted in reads otherwise
now (then bring the fault along). Before the faults of a property it is run as it is, and must pass. Exit code 1 when
anything is not as it should be. A fault is planted while a module is imported, in a process of its own; no file is
changed.
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

ROOT = Path(__file__).resolve().parent.parent
PLANTED = "SIMPLEMEM_SEEDED_BUG"

PROPERTIES = {
    "splicing": "tests/property/test_splicing.py",
    "scanner": "tests/property/test_scanner.py",
    "tags": "tests/property/test_tag_notations.py",
    "index": "tests/property/test_index_equality.py",
    "moves": "tests/property/test_moves.py",
}


@dataclass(frozen=True)
class Fault:
    """A small mistake that somebody could make: in `module`, each first text stands where the second should not."""

    about: str
    mistake: str
    module: str
    changes: list[tuple[str, str]]

    def in_source(self, source: str) -> str:
        for right, wrong in self.changes:
            if source.count(right) != 1:
                raise SystemExit(f"{self.module} has {source.count(right)} times: {right!r}")
            source = source.replace(right, wrong)
        return source

    @property
    def file(self) -> Path:
        return ROOT / (self.module.replace(".", "/") + ".py")


FAULTS = (
    Fault(
        "splicing", "a new line ends with LF in a file of CRLF",
        "simplemem.note.properties",
        [("match.end(), match[0])", r'match.end(), "\n")')],
    ),
    Fault(
        "splicing", "the comment behind a value is lost when it becomes a list",
        "simplemem.note.properties",
        [(r'comment.rstrip(" \t")', '""')],
    ),
    Fault(
        "splicing", "the blank lines below a removed property go with it",
        "simplemem.note.properties",
        [("changed = text[:start] + text[end:]", r'changed = text[:start] + text[end:].lstrip("\r\n")')],
    ),
    Fault(
        "splicing", "an apostrophe in single quotes is not doubled",
        "simplemem.note.yaml_writer",
        [("""value.replace("'", "''")""", "value")],
    ),
    Fault(
        "scanner", "~~~ closes a fence of ```",
        "simplemem.note.blocks",
        [
            ("self.line[self.offset] != character", 'self.line[self.offset] not in "`~"'),
            ("rest.strip(character)", 'rest.strip("`~")'),
        ],
    ),
    Fault(
        "scanner", "#tag at the start of a line is a heading",
        "simplemem.note.blocks",
        [(r'_ATX = re.compile(r"(#{1,6})(?:[ \t]|$)")', '_ATX = re.compile(r"(#{1,6})")')],
    ),
    Fault(
        "scanner", "two hyphens are a rule",
        "simplemem.note.blocks",
        [(r"(?:-[ \t]*){3,}", r"(?:-[ \t]*){2,}")],
    ),
    Fault(
        "scanner", "the path of [[ Note ]] begins before its blank",
        "simplemem.note.body",
        [("path_start += len(written_name) - len(written_name.lstrip())", "pass")],
    ),
    Fault(
        "tags", "the entries of a map are read in the order of the alphabet",
        "simplemem.note.note",
        [("in entries.items():\n        name = hyphenate", "in sorted(entries.items()):\n        name = hyphenate")],
    ),
    Fault(
        "tags", "the blanks of a value stay in a nested tag",
        "simplemem.note.note",
        [("part = hyphenate(str(value))", "part = str(value)")],
    ),
    Fault(
        "tags", "removing `stat` removes `status` too",
        "simplemem.note.note",
        [('f"{bare_tag(item).casefold()}/"', "bare_tag(item).casefold()"), ('f"{name.casefold()}/"', "name.casefold()")],
    ),
    Fault(
        "index", "the links of a note that is gone are left behind",
        "simplemem.index.notes",
        [("for table in OF_NOTE:", 'for table in OF_NOTE.keys() - {"links"}:')],
    ),
    Fault(
        "index", "a file that went leaves the links to it as they were",
        "simplemem.index.notes",
        [("_lookup_keys({*added, *removed})", "_lookup_keys(added)")],
    ),
    Fault(
        "index", "a text of the same length is taken for the same text",
        "simplemem.index.api",
        [("self.stat != (size, mtime_ns, ctime_ns)", "size != self.size"),
         ("return newest_ns > self.checked_ns - RACY_NS", "return False")],
    ),
    Fault(
        "index", "a bare link is not looked up again when a note of its name comes",
        "simplemem.obsidian.settings",
        [("return (key, key[:-3])", "return (key,)")],
    ),
    Fault(
        "index", "vectors are kept by the text alone, though a title was embedded with it",
        "simplemem.note.passages",
        [('data = text.encode("', 'data = text.split("\\n", 1)[-1].encode("')],
    ),
    Fault(
        "index", "a note that is moved leaves its old file behind in the table of files",
        "simplemem.index.updater",
        [("notes.record_files(db, written_paths, removed_paths)",
          "notes.record_files(db, written_paths, ())")],
    ),
    Fault(
        "index", "a note that we write does not draw the links that mean it now",
        "simplemem.index.notes",
        [("_lookup_keys({*added, *removed})", "_lookup_keys(removed)")],
    ),
    Fault(
        "index", "a note that Obsidian begins to exclude stays in recall",
        "simplemem.index.text",
        [("if reason_by_settings != self.hidden_reason(row.path):", "if False:")],
    ),
    Fault(
        "index", "the tags of a note that is gone are left behind",
        "simplemem.index.notes",
        [("for table in OF_NOTE:", 'for table in OF_NOTE.keys() - {"tags", "tag_pairs"}:')],
    ),
    Fault(
        "moves", "embeds are not written again",
        "simplemem.obsidian.link_edits",
        [("    path = moves.after(old_path)\n    if", "    path = moves.after(old_path)\n    if link.is_embed or")],
    ),
    Fault(
        "moves", "the relative links of the moved note itself stay as they were",
        "simplemem.obsidian.link_edits",
        [("if resolve_link(link.target, moves.after(source), files_after)",
          "if resolve_link(link.target, source, files_after)")],
    ),
    Fault(
        "moves", "nobody asks whether the new name is another note's already",
        "simplemem.store.link_rewrites",
        [("sorted(files | arriving.get(key, set()))", "sorted(files or arriving.get(key, set()))")],
    ),
    Fault(
        "moves", "a blank in a Markdown link is not encoded",
        "simplemem.obsidian.link_edits",
        [("_SPECIAL = ' ()\"'", "_SPECIAL = '()\"'")],
    ),
    Fault(
        "moves", "links in properties are written without a thought for their quotes",
        "simplemem.obsidian.link_edits",
        [("            values.append((link.scalar, value))\n",
          "            edits += _edit_link(note.text, link, target, spelling, is_in_table=False)\n")],
    ),
)  # fmt: skip


# -- in the process that is tested: pytest loads this file as a plugin


class _Planter(MetaPathFinder):
    """Finds one module, with the fault in it."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._fault.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Faulty(self._fault, name, spec.origin)
        return spec


class _Faulty(SourceFileLoader):
    """Compiles the source with the fault in it. What Python keeps of compiled sources is neither read nor written."""

    def __init__(self, fault: Fault, name: str, path: str) -> None:
        super().__init__(name, path)
        self._fault = fault

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(
            self._fault.in_source(self.get_data(path).decode()), path, "exec", dont_inherit=True
        )


def _plant(number: str) -> None:
    """Look for a counterexample in the same places each time, and be content with the first."""
    from hypothesis import Phase, settings

    settings.register_profile(
        "seeded",
        max_examples=300,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        print_blob=False,
    )
    settings.load_profile("seeded")
    if number:
        fault = FAULTS[int(number)]
        assert fault.module not in sys.modules
        sys.meta_path.insert(0, _Planter(fault))


# -- in the process that asks


def run(about: str, number: str) -> tuple[int, str]:
    """The exit code of the property's tests, and the first of them that failed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "bench.seeded_bugs",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, PROPERTIES[about]],
        cwd=ROOT,
        env={**os.environ, PLANTED: number},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    failed = re.search(r"^FAILED \S+?::(\w+)", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else done.stdout[-300:].strip()


def verdict(fault: Fault, number: int) -> str:
    source = fault.file.read_text(encoding="utf-8")
    if any(source.count(right) != 1 for right, _ in fault.changes):
        return "STALE"
    code, by = run(fault.about, str(number))
    # Tests that ran and did not pass are what is wanted; a test that could not be run at all proves nothing.
    return f"caught by {by}" if code == 1 else "MISSED" if code == 0 else f"BROKEN: {by}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--only", choices=PROPERTIES, action="append", help="the faults of this property"
    )
    parser.add_argument(
        "--unsound", action="store_true", help="do not run the properties without a fault first"
    )
    given = parser.parse_args()
    wrong = 0
    for about in given.only or PROPERTIES:
        if not given.unsound:
            code, by = run(about, "")
            wrong += code != 0
            print(
                f"{about}: {'passes as it is' if code == 0 else f'FAILS AS IT IS: {by}'}",
                flush=True,
            )
        for number, fault in enumerate(FAULTS):
            if fault.about == about:
                said = verdict(fault, number)
                wrong += not said.startswith("caught")
                print(f"{about}: {fault.mistake}: {said}", flush=True)
    return 1 if wrong else 0


if PLANTED in os.environ and __name__ != "__main__":
    _plant(os.environ[PLANTED])
if __name__ == "__main__":
    sys.exit(main())
