"""LoCoMo-shaped JSON as a vault and questions to it: a session becomes a note, a turn a list item.

`docs` have `id`, `date` and `turns` of who and what; `queries` have `query`, `gold` ids and, if they like, a `category`. The
file may be gzipped.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid, NotFound
from simplemem.evaluate.pairs import Pair, Questions

_FOLDER = "chats"
_NO_NAME = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')


def write_locomo(file: Path, vault: Path) -> Questions:
    """Write the sessions of a file as notes into an empty folder, and give the questions."""
    data = _read(file)
    try:
        names = {str(doc["id"]): f"{_FOLDER}/{_NO_NAME.sub('-', str(doc['id']))}" for doc in data["docs"]}
        (vault / _FOLDER).mkdir(parents=True)
        for doc in data["docs"]:
            (vault / f"{names[str(doc['id'])]}.md").write_text(_note(doc), encoding="utf-8", newline="\n")
        pairs = tuple(
            Pair(
                f"category {query['category']}" if "category" in query else "questions",
                query["query"],
                tuple(names.get(str(id_), str(id_)) for id_ in query["gold"]),
            )
            for query in data["queries"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(
            f"{file} is not shaped as LoCoMo: {type(error).__name__}: {error}",
            hint="It wants `docs` of id, date and turns, and `queries` of query and gold.",
        ) from error
    if not pairs:
        raise Invalid(f"{file} has no queries")
    return Questions(pairs, len(names))


def _read(file: Path) -> Any:
    try:
        raw = file.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}") from error
    try:
        return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (ValueError, EOFError, OSError, zlib.error, RecursionError) as error:
        raise Invalid(f"{file} is not JSON, nor gzipped JSON: {error}") from error


def _note(doc: Any) -> str:
    turns = [f"- **{who}:** {text}".replace("\n", " ") for who, text in doc["turns"]]
    title = json.dumps(f"{doc['id']} ({doc['date']})", ensure_ascii=False)
    lines = ["---", f"title: {title}", "---", "", f"# Chat session at {doc['date']}", "", *turns]
    return "\n".join(lines) + "\n"
