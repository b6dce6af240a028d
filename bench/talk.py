"""How turns are routed to blocks: `python bench/talk.py --data locomo_half.json.gz --scripts DIR [--seed 1] [--streams 8]`.

`--scripts` is the folder of talk_quality.py and talk_acceptance.py: the streams of the first (sessions of LoCoMo,
interleaved, no cue), and the chats of the second, without a cue, with their subjects on different days, and cued. The
governor decides in this process, without a server or a note. `--tune` looks for better numbers than those that stand in
`english.toml`, on the streams that are named, and prints them; give it c00,c01,c02, and report the others. `--speed 1000`
says instead what a turn, a question and the first call cost in a vault of so many blocks. `--finding` says what questions
find of the conversations that are named, and what their form, names and days have to do with it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import random
import statistics
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.vaults import vocabulary
from simplemem.features.conversations import router as routing
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.router import TopicRouter
from simplemem.features.conversations.service import conversation_service
from simplemem.features.conversations.topic import (
    Topic,
    Turn,
    insert_turn,
    read_topic,
    render_new_topic,
)
from simplemem.note.tag_changes import change_tags
from simplemem.providers.wordllama import WordLlama
from simplemem.store import EnhancedStore, Read, open_store

Said = tuple[
    str, str, str, int, str
]  # session, message, reply, minute, first | shift | resume | continue
Router = Callable[[str, datetime, Sequence[Topic], Topic | None], str]
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_WORDS = WordLlama()
_ROWS = "right kept split shift resume B3 blocks".split()


@lru_cache(maxsize=200_000)
def _vector(text: str) -> NDArray[np.float32]:
    row: NDArray[np.float32] = _WORDS.unit_vectors([text])[0]
    return row


def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit rows of the bundled word vectors."""
    return np.stack([_vector(text) for text in texts])


def govern() -> Router:
    """The governor as it is."""
    made = TopicRouter(vectors)
    return lambda *told: getattr(made.decide(*told).topic, "id", "")


def always() -> Router:
    """All in one block."""
    return lambda _message, _at, _blocks, current: current.id if current else ""


def eight_hours() -> Router:
    """A new block after eight hours of silence."""
    return lambda _message, at, _blocks, now: (
        now.id if now and at - now.last < timedelta(hours=8) else ""
    )


def play(stream: Sequence[Said], route: Router) -> list[str]:
    """The block that each turn of a stream comes to, each going by what became of those before."""
    blocks: dict[str, Topic] = {}
    current, placed = "", list[str]()
    for number, (_, message, reply, minute, _) in enumerate(stream):
        at = _START + timedelta(minutes=minute)
        turn = Turn(f"turn_{number}", at, message, reply, "")
        decided = route(message, at, list(blocks.values()), blocks.get(current))
        current = decided or f"block_{number}"
        old = blocks.get(current) or Topic(current, "", "active", at, (), path="")
        blocks[current] = replace(old, turns=(*old.turns, turn), sha256=f"{number}")
        placed.append(current)
    return placed


def judge(streams: Sequence[Sequence[Said]], router: Callable[[], Router]) -> dict[str, float]:
    """How turns came right: the counts of talk_quality.py, over all streams."""
    counts: Counter[str] = Counter()
    b3, blocks = [], []
    for stream in streams:
        placed, owner, last = play(stream, router()), dict[str, str](), ""
        by_block, by_session = (
            defaultdict[str, Counter[str]](Counter),
            defaultdict[str, Counter[str]](Counter),
        )
        for (session, _, _, _, kind), block in zip(stream, placed, strict=True):
            is_fresh = block not in owner
            owner.setdefault(block, session)
            counts[kind] += 1
            counts["kept"] += kind == "continue" and block == last
            counts["split"] += kind == "continue" and is_fresh
            counts["shifted"] += kind == "shift" and is_fresh
            counts["resumed"] += kind == "resume" and not is_fresh and owner[block] == session
            by_block[block][session] += 1
            by_session[session][block] += 1
            last = block
        pairs = [(by_block[b][said[0]], b, said[0]) for b, said in zip(placed, stream, strict=True)]
        pure = sum(n / by_block[b].total() for n, b, _ in pairs)
        whole = sum(n / by_session[s].total() for n, _, s in pairs)
        b3.append(2 * pure * whole / (pure + whole) / len(pairs))
        blocks.append(len(owner))
    judged = counts["continue"] + counts["shift"] + counts["resume"]
    right = (counts["kept"] + counts["shifted"] + counts["resumed"]) / judged
    share = [
        counts[a] / max(counts[b], 1)
        for a, b in (
            ("kept", "continue"),
            ("split", "continue"),
            ("shifted", "shift"),
            ("resumed", "resume"),
        )
    ]
    return dict(
        zip(_ROWS, (right, *share, statistics.mean(b3), statistics.mean(blocks)), strict=True)
    )


def chat(
    script: Any, chance: random.Random, cued: bool, gap: Callable[[random.Random], int]
) -> list[Said]:
    """The chats of the acceptance script as it interleaves them, with or without its cues."""
    kinds = {"topic_shift": "shift", "topic_resumption": "resume", "topic_continuation": "continue"}
    plain = {text.lower(): text for texts in script.CHATS.values() for text in texts}
    stream, minute = list[Said](), 0
    for subject, text, kind, begins in script.script(chance):
        minute += gap(chance) if begins else 3
        bare = next(whole for low, whole in plain.items() if text.lower().endswith(low))
        stream.append((subject, text if cued else bare, "", minute, kinds.get(kind, "first")))
    return stream


def streams_of(given: argparse.Namespace) -> dict[str, list[list[Said]]]:
    """What is played, by its name in the table."""
    quality, script = (
        importlib.import_module(name) for name in ("talk_quality", "talk_acceptance")
    )
    if given.chats:
        told = tomllib.loads(given.chats.read_text(encoding="utf-8"))
        script.CHATS, script.SHIFT, script.BACK = told["chats"], told["shift"], told["back"]
    talk, names = quality.sessions(given.data), given.conversations.split(",")
    found = {}
    for title, several in (("several pairs", True), ("one pair", False)):
        chance = random.Random(given.seed)
        found[title] = [quality.stream(talk, names, chance, several) for _ in range(given.streams)]
    a_day: Callable[[random.Random], int] = lambda chance: 1440 * chance.randint(1, 3)  # noqa: E731

    def mixed(c: random.Random) -> int:
        return a_day(c) * 6 if c.random() < 0.35 else c.randint(1, 8)

    half: Callable[[random.Random], int] = lambda _: 720  # noqa: E731
    kinds = (
        ("chats", False, mixed),
        ("chats, days", False, a_day),
        ("chats, cued", True, mixed),
        ("half days, cued", True, half),
    )
    for title, cued, gap in kinds:
        chance = random.Random(given.seed)
        found[title] = [chat(script, chance, cued, gap) for _ in range(given.streams)]
    return found


def table(streams: dict[str, list[list[Said]]], routers: dict[str, Callable[[], Router]]) -> None:
    print(f"{'':32}" + "".join(f"{title:>8}" for title in _ROWS))
    for title, played in streams.items():
        for name, router in routers.items():
            figures = judge(played, router)
            print(
                f"{f'{title}: {name}':32}" + "".join(f"{figures[row]:8.3f}" for row in _ROWS),
                flush=True,
            )


def worth(streams: dict[str, list[list[Said]]]) -> float:
    """What tuning looks for: B3 and turns right of all, few false splits, and of cued chats every turn kept."""
    total = 0.0
    for title, played in streams.items():
        figures = judge(played, govern)
        total += figures["B3"] + 0.7 * figures["right"] - 4 * max(0.0, figures["split"] - 0.012)
        total += 0.6 * figures["kept"] * ("cued" in title)
    return total


def tune(streams: dict[str, list[list[Said]]]) -> None:
    """Move one number after the other, by large steps and by small ones, while it is worth more."""
    best, tables = (
        worth(streams),
        {name: getattr(routing, name) for name in ("NEAR", "STAY", "BACK", "NEW")},
    )
    for step in (0.1, -0.1, 0.05, -0.05):
        for numbers in tables.values():
            for key in sorted(numbers.keys() - {"follows"}):
                while True:
                    numbers[key] = round(numbers[key] + step, 3)
                    if (now := worth(streams)) <= best + 0.004:
                        numbers[key] = round(numbers[key] - step, 3)
                        break
                    best = now
    for name, numbers in tables.items():
        print(f"{name.lower()} = {numbers}")


def speed(count: int) -> None:
    """CPU of calls in a vault of so many blocks of eight turns, as medians beside a plain write and a plain search."""
    chance, words = random.Random(5), vocabulary(5)
    with tempfile.TemporaryDirectory() as room:
        for number in range(count):
            at, text = _START - timedelta(hours=9 * (count - number)), ""
            for k in range(8):
                said = [" ".join(chance.choices(words, k=size)) for size in (20, 30)]
                turn = Turn(
                    f"turn_{at:%Y%m%d_%H%M%S}_{number:04x}{k:02x}",
                    at + timedelta(minutes=k),
                    *said,
                    "",
                )
                known = read_topic(Read("topics/x.md", text, "", ""))
                text = (
                    insert_turn(known, turn)
                    if text
                    else render_new_topic(said[0][:30], turn, [], "", f"block_{turn.id[5:20]}")
                )
            note = Path(room, "topics", f"{number}.md")
            note.parent.mkdir(exist_ok=True)
            note.write_text(
                change_tags(text, {"status": "active" if number == count - 1 else "paused"}),
                encoding="utf-8",
            )
        with open_store(room) as store:
            store.sync()
        with open_store(room) as store:
            talk = conversation_service(store)
            sentence = lambda: " ".join(chance.choices(words, k=8))  # noqa: E731
            began = time.process_time()
            talk.record(new_exchange(sentence()))
            print(
                f"first turn in a vault of {count} blocks: {time.process_time() - began:.2f} s of CPU"
            )
            calls: dict[str, Callable[[], object]] = {
                "a write": lambda: store.create(sentence(), sentence()),
                "a turn that goes on": lambda: talk.record(new_exchange("And why?")),
                "a turn that is routed": lambda: talk.record(new_exchange(sentence())),
                "a search": lambda: store.search(sentence()),
                "retrieve_memory": lambda: recall(talk, sentence()),
            }
            took: dict[str, list[float]] = defaultdict(list)
            for _ in range(30):
                for name, call in calls.items():
                    began = time.process_time()
                    call()
                    took[name].append(1000 * (time.process_time() - began))
            for name, beside in zip(calls, ("a write",) * 3 + ("a search",) * 2, strict=True):
                mine, its = statistics.median(took[name]), statistics.median(took[beside])
                print(
                    f"{name:24}{mine:6.1f} ms, {mine / its:.2f} of {beside}, {mine - its:+.1f} ms"
                )


def finding(file: Path, conversations: Sequence[str], quality: Any) -> None:
    """What a question finds of one conversation after the other, as plain notes and as it is told, with and without the
    names of speakers and the days on which it was: recall@5 and MRR of the first hundred questions and of all."""
    data = json.loads(gzip.decompress(file.read_bytes()))
    docs, pairs = {doc["id"]: doc for doc in data["docs"]}, quality.sessions(file)
    asked = [each for each in data["queries"] if each["gold"]]

    def plain(
        store: EnhancedStore, some: Sequence[str], named: bool, dated: bool
    ) -> dict[str, str]:
        for id_ in some:
            lines = [
                f"- **{who}:** {text}" if named else f"- {text}" for who, text in docs[id_]["turns"]
            ]
            day = f" ({docs[id_]['date']})" if dated else ""
            store.create(
                f"chats/{id_}",
                "\n".join([f"# Chat session{day}", "", *lines]),
                {"title": id_ + day},
            )
        return {f"chats/{id_}": id_ for id_ in some}

    def told(store: EnhancedStore, some: Sequence[str], named: bool, dated: bool) -> dict[str, str]:
        blocks = dict[str, str]()
        for number, id_ in enumerate(some):
            who = (
                [f"{name}: " for name in dict.fromkeys(name for name, _ in docs[id_]["turns"])]
                if named
                else ["", ""]
            )
            real = datetime.strptime(docs[id_]["date"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            at, topic = real if dated else _START - timedelta(days=700 - 5 * number), id_
            for k, texts in enumerate(pairs[id_.split("-")[1]][id_]):
                message, reply = (
                    text and name + text for name, text in zip(who, texts, strict=False)
                )
                time = f"{at + timedelta(minutes=2 * k):%Y-%m-%dT%H:%M:%SZ}"
                said = new_exchange(message, response=reply, timestamp=time, topic=topic)
                turn = said.turn._replace(
                    id=f"{said.turn.id[:21]}{number:03x}{k:03x}"
                )  # else chance is in its words
                topic = conversation_service(store).record(said._replace(turn=turn))["block_id"]
            blocks[topic] = id_
        return blocks

    def ask(
        title: str, some: Sequence[str], rows: Sequence[Any], tell: Any = plain, *said: bool
    ) -> None:
        with tempfile.TemporaryDirectory() as room, open_store(room) as store:
            known, scores = tell(store, some, *said), list[tuple[float, float]]()
            store.sync()
            for row in rows:
                if tell is plain:
                    found = [known[hit.name] for hit in store.search(row["query"], limit=10).hits]
                else:
                    memories = recall(conversation_service(store), row["query"], 10)["memories"]
                    found = [known[each["block_id"]] for each in memories]
                gold = set(row["gold"])
                rank = next((number for number, id_ in enumerate(found, 1) if id_ in gold), 0)
                scores.append((len(gold & set(found[:5])) / len(gold), 1 / rank if rank else 0.0))
        parts = (scores[:100], scores) if len(some) < len(docs) else (scores,)
        figures = "".join(
            f"{statistics.mean(each):8.3f}" for part in parts for each in zip(*part, strict=True)
        )
        print(f"{title:54}{figures:>32}", flush=True)

    print(f"{'':54}" + "".join(f"{each:>8}" for each in ("@5, 100", "MRR", "@5, all", "MRR")))
    for name in conversations:
        some = [id_ for id_ in sorted(docs) if name in id_]
        rows = [row for row in asked if name in row["gold"][0]]
        best = [min(5, len(set(row["gold"]))) / len(set(row["gold"])) for row in rows]
        print(
            f"{f'{name}: the best there could be':54}{statistics.mean(best[:100]):8.3f}{statistics.mean(best):16.3f}"
        )
        for tell, form in ((plain, "plain notes"), (told, "told")):
            for said in product((True, False), repeat=2):
                with_ = " and ".join(
                    what for what, is_there in zip(("names", "days"), said, strict=True) if is_there
                )
                ask(
                    f"{name}: {form}, {f'with {with_}' if with_ else 'no names or days'}",
                    some,
                    rows,
                    tell,
                    *said,
                )
    for tell, form in ((plain, "plain notes"), (told, "told")):
        ask(
            f"every second question of all: {form}, names, days",
            sorted(docs),
            asked[::2],
            tell,
            True,
            True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scripts", type=Path)
    parser.add_argument(
        "--chats", type=Path, help="play these chats instead of the acceptance script's"
    )
    parser.add_argument(
        "--conversations", default="c03,c04", help="tune on c00,c01,c02; report these"
    )
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--finding", action="store_true")
    parser.add_argument("--speed", type=int, metavar="BLOCKS")
    given = parser.parse_args()
    if given.speed:
        return speed(given.speed)
    if not (given.data and given.scripts):
        parser.error("give --data and --scripts, or --speed")
    sys.path.insert(0, str(given.scripts))
    if given.finding:
        return finding(
            given.data, given.conversations.split(","), importlib.import_module("talk_quality")
        )
    streams = streams_of(given)
    if given.tune:
        tune(streams)
    return table(
        streams,
        {"governor": govern}
        | ({} if given.tune else {"one block": always, "8 hours": eight_hours}),
    )


if __name__ == "__main__":
    main()
