"""How many contradictions among lessons are offered, and how many of the offered ones are none.

    python bench/lessons.py [--final] [--cases]

The lessons are those of `tests/data/natural/lessons.json`, the half for development. `--final`
takes the other half, which is not blind: it was run several times. Printed are the pairs that
rules offer, and those that are left when a language model that answers perfectly has judged them:
a server on 127.0.0.1 that speaks OpenAI's protocol, with answers from the annotations. `--cases`
prints each wrong pair and each missed one. The groups of similar lessons at the default setting
come last.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.features.lessons.analysis import analysis_of
from simplemem.features.lessons.lesson import slug_of
from simplemem.features.lessons.reviewing import review_with_model
from simplemem.features.lessons.service import lesson_service
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

MATERIAL: Final = Path(__file__).parents[1] / "tests" / "data" / "natural" / "lessons.json"

_MAX_PAIRS: Final = 300  # that the model is asked about

Pair = frozenset[str]


class Material(NamedTuple):
    """One half of the lessons, and which of their pairs contradict each other."""

    lessons: list[dict[str, Any]]
    contradictory: set[Pair]


class Offered(NamedTuple):
    """The pairs that are offered to a reader, and how many the model was asked about."""

    pairs: set[Pair]
    asked_count: int


def main() -> None:
    """Print the figures of one half."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--final", action="store_true", help="the half not used for development")
    parser.add_argument("--cases", action="store_true", help="print wrong and missed pairs")
    options = parser.parse_args()

    half = "final" if options.final else "development"
    material = read_material(half)
    print(f"{half}: {len(material.lessons)} lessons,"
          f" {len(material.contradictory)} contradictory pairs")  # fmt: skip
    print_offered("by rules", material, offered_by_rules(material), with_cases=options.cases)
    with serve_model(material) as url:
        offered = offered_with_model(material, url)
    print_offered("with a perfect model", material, offered, with_cases=options.cases)
    print_clusters(material)


def read_material(half: str) -> Material:
    """Return the lessons of a half, "development" or "final"."""
    data = json.loads(MATERIAL.read_text(encoding="utf-8"))
    lessons = [lesson for lesson in data["lessons"] if lesson["half"] == half]
    ids = {lesson["id"] for lesson in lessons}
    pairs = {frozenset(row["pair"]) for row in data["contradictory"]}
    return Material(lessons, {pair for pair in pairs if pair <= ids})


def print_offered(name: str, material: Material, offered: Offered, *, with_cases: bool) -> None:
    """Print how many of the contradictory pairs are offered, and how many others."""
    right = offered.pairs & material.contradictory
    wrong = offered.pairs - material.contradictory
    share = len(right) / len(material.contradictory)
    wrong_share = len(wrong) / max(1, len(offered.pairs))
    print(f"{name}: offered {len(right)} of {len(material.contradictory)} ({share:.2f}),"
          f" wrong {len(wrong)} of {len(offered.pairs)} ({wrong_share:.2f})")  # fmt: skip
    if offered.asked_count:
        print(f"  the model was asked about {offered.asked_count} pairs")
    if with_cases:
        _print_cases("wrong", material, wrong)
        _print_cases("missed", material, material.contradictory - offered.pairs)


def _print_cases(name: str, material: Material, pairs: set[Pair]) -> None:
    """Print the lessons of some pairs."""
    contents = {lesson["id"]: lesson["content"] for lesson in material.lessons}
    for pair in sorted(map(sorted, pairs)):
        print(f"  {name}: {pair[0]} {contents[pair[0]]}\n    {pair[1]} {contents[pair[1]]}")


# What is offered


@contextmanager
def _open_lessons(material: Material, **settings: Any) -> Iterator[EnhancedStore]:
    """Yield a store with the lessons of a half as notes."""
    with tempfile.TemporaryDirectory() as folder:
        for lesson in material.lessons:
            _write_note(Path(folder), lesson)
        with EnhancedStore(Path(folder), Settings.model_validate(settings)) as store:
            store.sync()
            yield store


def _write_note(vault: Path, lesson: dict[str, Any]) -> None:
    """Write a lesson as its note."""
    header = {
        "type": "knowledge",
        "tags": lesson["tags"],
        "id": lesson["id"],
        "knowledge_type": lesson["type"],
        "confidence": lesson["confidence"],
        "verified": lesson["verified"],
        "created": f"{lesson['created']}T09:00:00",
    }
    # JSON is YAML.
    properties = "".join(f"{key}: {json.dumps(value)}\n" for key, value in header.items())
    body = f"{lesson['content']}\n"
    if lesson["context"]:
        body += f"\n## Context\n\n{lesson['context']}\n"
    path = vault / "knowledge" / lesson["type"] / f"{slug_of(lesson['content'])}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{properties}---\n\n{body}", encoding="utf-8")


def offered_by_rules(material: Material) -> Offered:
    """Return the pairs that rules offer."""
    with _open_lessons(material) as store:
        return Offered(_pairs_shown(store), 0)


def offered_with_model(material: Material, url: str) -> Offered:
    """Return the pairs that are left when the model at an address has judged the near pairs."""
    llm = {"provider": "openai", "model": "perfect", "url": url, "api_key": "none"}
    with _open_lessons(material, llm=llm) as store:
        review = review_with_model(lesson_service(store), analysis_of(store), _MAX_PAIRS)
        return Offered(_pairs_shown(store), review.asked_count)


def _pairs_shown(store: EnhancedStore) -> set[Pair]:
    """Return the ids of the pairs that `detect_contradictions` shows."""
    analysis = analysis_of(store)
    contradictions = analysis.contradictions()
    shown = [contradiction.data for contradiction in contradictions]
    shown += analysis.offers(contradictions)
    return {frozenset((data["one"]["id"], data["other"]["id"])) for data in shown}


def print_clusters(material: Material) -> None:
    """Print the groups of similar lessons at the default setting."""
    with _open_lessons(material) as store:
        themes = analysis_of(store).themes()
    members = sum(len(theme.members) for theme in themes)
    print(f"groups at the default setting: {len(themes)}, with {members} lessons")
    for theme in themes:
        ids = ", ".join(lesson.id for lesson in theme.members)
        print(f"  {ids}: {', '.join(theme.words)}")


# The model


@contextmanager
def serve_model(material: Material) -> Iterator[str]:
    """Yield the address of a model that knows which pairs contradict each other."""
    ids = {lesson["content"]: lesson["id"] for lesson in material.lessons}

    def judge(pair: dict[str, Any]) -> dict[str, str]:
        """Return the verdict about one pair of a question, as the annotations have it."""
        contents = [pair[side]["text"].split("\n\n")[0] for side in ("one", "other")]
        is_contradiction = frozenset(ids[text] for text in contents) in material.contradictory
        return {
            "id": pair["id"],
            "verdict": "contradict" if is_contradiction else "compatible",
            "one_quote": contents[0] if is_contradiction else "",
            "other_quote": contents[1] if is_contradiction else "",
        }

    class Handler(BaseHTTPRequestHandler):
        """Answers in OpenAI's protocol."""

        def do_POST(self) -> None:
            """Answer one question."""
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            question = json.loads(request["messages"][-1]["content"])
            answer = {"pairs": [judge(pair) for pair in question["pairs"]]}
            message = {"role": "assistant", "content": json.dumps(answer)}
            body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
