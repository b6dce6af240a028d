"""How well turns are routed to topics.

    python bench/talk.py --data locomo_half.json.gz --scripts DIR [--seed 1] [--streams 8]

`--scripts` is the folder of talk_quality.py and talk_acceptance.py. The first makes streams of
sessions of LoCoMo, interleaved and without cues. The second makes chats: without cues, with their
subjects on different days, and with cues. The router decides in this process, without a server and
without notes.

`--tune` looks for better weights than those in `english.toml` on the conversations that are named,
and prints them. Tune on c00,c01,c02 and report the others. `--speed 1000` prints what a turn, a
question and the first call cost in a vault of so many topics (`talk_costs.py`). `--finding` prints
what questions find of the conversations that are named (`talk_finding.py`).
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.talk_costs import print_costs
from bench.talk_finding import print_findings
from simplemem.features.conversations import router as routing
from simplemem.features.conversations.router import TopicRouter
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.providers.word_vectors import shared_multilingual

Vectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""Returns the unit vectors of texts, a row per text."""


class Message(NamedTuple):
    """A message of a stream, its reply, and whether it continues a session."""

    session: str
    text: str
    reply: str
    minute: float  # since the start of the stream
    kind: str  # "first", "shift", "resume" or "continue"


Stream = list[Message]
Route = Callable[[Message, datetime, Sequence[Topic], Topic | None], str]
"""From a message, its time, all topics and the current one: the id of its topic, "" if new."""

RouteFactory = Callable[[], Route]
"""Makes the route of one stream, which may remember what it has compared."""

Gap = Callable[[random.Random], int]
"""Returns a random number of minutes between two parts of a stream."""

_START: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
_ROWS: Final = ("right", "kept", "split", "shift", "resume", "B3", "blocks")
_MINUTES_PER_DAY: Final = 1440
_KINDS: Final = {
    "topic_shift": "shift",
    "topic_resumption": "resume",
    "topic_continuation": "continue",
}
"""The kind of a message by its name in the acceptance script."""

_STEPS: Final = (0.1, -0.1, 0.05, -0.05)
_MIN_GAIN: Final = 0.004  # of a step; less may be chance
_MAX_SPLIT: Final = 0.012  # share of turns that may wrongly start a topic, before it costs

_WORD_VECTORS: Final = shared_multilingual()


def main() -> None:
    """Print the costs, the findings, or the table of routers, as the options say."""
    parser = _make_parser()
    options = parser.parse_args()
    if options.speed:
        print_costs(options.speed)
        return
    if not (options.data and options.scripts):
        parser.error("give --data and --scripts, or --speed")

    sys.path.insert(0, str(options.scripts))
    if options.finding:
        quality = importlib.import_module("talk_quality")
        print_findings(options.data, options.conversations.split(","), quality)
        return

    streams = make_streams(options)
    routers: dict[str, RouteFactory] = {"governor": route_by_rules}
    if options.tune:
        tune(streams)
    else:
        routers["one block"] = route_to_one_topic
        routers["8 hours"] = route_by_silence
    print_table(streams, routers)


def _make_parser() -> argparse.ArgumentParser:
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
    return parser


# The routers


@lru_cache(maxsize=200_000)
def _unit_vector(text: str) -> NDArray[np.float32]:
    vector: NDArray[np.float32] = _WORD_VECTORS.unit_vectors([text])[0]
    return vector


def unit_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of texts by the bundled word vectors, a row per text."""
    return np.stack([_unit_vector(text) for text in texts])


def route_by_rules(vectors: Vectors | None = None) -> Route:
    """Return the route of a new router of the program, with the bundled vectors or others."""
    router = TopicRouter(vectors or unit_vectors)

    def route(
        message: Message, at: datetime, topics: Sequence[Topic], current: Topic | None
    ) -> str:
        topic = router.decide(message.text, at, topics, current, answer=message.reply).topic
        return topic.id if topic else ""

    return route


def route_to_one_topic() -> Route:
    """Return a route by which all messages are in one topic."""

    def route(
        _message: Message, _at: datetime, _topics: Sequence[Topic], current: Topic | None
    ) -> str:
        return current.id if current else ""

    return route


def route_by_silence() -> Route:
    """Return a route that starts a topic after eight hours of silence."""

    def route(
        _message: Message, at: datetime, _topics: Sequence[Topic], current: Topic | None
    ) -> str:
        if current is None or at - current.last >= timedelta(hours=8):
            return ""
        return current.id

    return route


# The streams


def make_streams(options: argparse.Namespace) -> dict[str, list[Stream]]:
    """Return the streams to play by their title in the table.

    `--chats` replaces the chats of the acceptance script, which is a module of this process.
    """
    quality = importlib.import_module("talk_quality")
    script = importlib.import_module("talk_acceptance")
    if options.chats:
        chats = tomllib.loads(options.chats.read_text(encoding="utf-8"))
        vars(script).update(
            CHATS=chats["chats"],
            SHIFT=chats["shift"],
            BACK=chats["back"],
        )

    streams = _session_streams(quality, options)
    streams["chats"] = _chat_streams(script, options, mixed_gap)
    streams["chats, days"] = _chat_streams(script, options, gap_of_days)
    streams["chats, cued"] = _chat_streams(script, options, mixed_gap, has_cues=True)
    streams["half days, cued"] = _chat_streams(script, options, half_a_day, has_cues=True)
    return streams


def _session_streams(quality: ModuleType, options: argparse.Namespace) -> dict[str, list[Stream]]:
    """Return streams of LoCoMo's sessions: of several pairs of speakers, and of one pair."""
    sessions = quality.sessions(options.data)
    names = options.conversations.split(",")
    streams: dict[str, list[Stream]] = {}
    for title, has_several_pairs in (("several pairs", True), ("one pair", False)):
        rng = random.Random(options.seed)
        streams[title] = []
        for _ in range(options.streams):
            rows = quality.stream(sessions, names, rng, has_several_pairs)
            streams[title].append([Message(*row) for row in rows])
    return streams


def _chat_streams(
    script: ModuleType, options: argparse.Namespace, gap: Gap, *, has_cues: bool = False
) -> list[Stream]:
    """Return streams of the acceptance script's chats, all from one random generator."""
    rng = random.Random(options.seed)
    return [make_chat(script, rng, gap, has_cues=has_cues) for _ in range(options.streams)]


def make_chat(script: ModuleType, rng: random.Random, gap: Gap, *, has_cues: bool) -> Stream:
    """Return the chats of the acceptance script as it interleaves them.

    Without cues, a message is the text that the script put its cue in front of.
    """
    texts = {}
    for chat in script.CHATS.values():
        for text in chat:
            texts[text.lower()] = text

    stream = []
    minute = 0
    for subject, text, scenario, starts_part in script.script(rng):
        minute += gap(rng) if starts_part else 3
        message = text if has_cues else _without_cue(text, texts)
        kind = _KINDS.get(scenario, "first")
        stream.append(Message(subject, message, "", minute, kind))
    return stream


def _without_cue(text: str, texts: dict[str, str]) -> str:
    """Return the text of a chat that a message ends with. `texts` are all by their lower case.

    Raises:
        LookupError: The message ends with none of them.
    """
    for lower_case, original in texts.items():
        if text.lower().endswith(lower_case):
            return original
    raise LookupError(f"no chat has the text {text!r}")


def gap_of_days(rng: random.Random) -> int:
    """Return the minutes of one to three days."""
    return _MINUTES_PER_DAY * rng.randint(1, 3)


def mixed_gap(rng: random.Random) -> int:
    """Return the minutes of several days, or, two times of three, a few minutes."""
    if rng.random() < 0.35:
        return 6 * gap_of_days(rng)
    return rng.randint(1, 8)


def half_a_day(_rng: random.Random) -> int:
    """Return the minutes of half a day."""
    return _MINUTES_PER_DAY // 2


# The figures


def play(stream: Stream, route: Route) -> list[str]:
    """Return the id of the topic of each message. Each decision sees the topics made before."""
    topics: dict[str, Topic] = {}
    current_id = ""
    topic_ids = []
    for number, message in enumerate(stream):
        at = _START + timedelta(minutes=message.minute)
        current = topics.get(current_id)
        current_id = route(message, at, list(topics.values()), current) or f"block_{number}"

        topic = topics.get(current_id)
        if topic is None:
            topic = Topic(
                id=current_id,
                label="",
                status="active",
                created=at,
                turns=(),
                path="",
            )
        turn = Turn(f"turn_{number}", at, message.text, message.reply, "")
        topics[current_id] = replace(topic, turns=(*topic.turns, turn), sha256=f"{number}")
        topic_ids.append(current_id)
    return topic_ids


def judge(streams: Sequence[Stream], make_route: RouteFactory) -> dict[str, float]:
    """Return the figures of a router over all streams by the titles of `_ROWS`.

    They are those of talk_quality.py: the share of turns that were routed right, and of those that
    were kept in their topic, split from it, shifted and resumed; B-cubed F1; topics per stream.
    """
    counts: Counter[str] = Counter()
    b3_scores = []
    topic_counts = []
    for stream in streams:
        topic_ids = play(stream, make_route())
        counts.update(count_decisions(stream, topic_ids))
        b3_scores.append(b3_score(stream, topic_ids))
        topic_counts.append(len(set(topic_ids)))

    right_count = counts["kept"] + counts["shifted"] + counts["resumed"]
    judged_count = counts["continue"] + counts["shift"] + counts["resume"]
    return {
        "right": right_count / judged_count,
        "kept": counts["kept"] / max(counts["continue"], 1),
        "split": counts["split"] / max(counts["continue"], 1),
        "shift": counts["shifted"] / max(counts["shift"], 1),
        "resume": counts["resumed"] / max(counts["resume"], 1),
        "B3": statistics.mean(b3_scores),
        "blocks": statistics.mean(topic_counts),
    }


def count_decisions(stream: Stream, topic_ids: Sequence[str]) -> Counter[str]:
    """Count the messages of each kind, and those of each kind that were routed right.

    "kept", "shifted" and "resumed" are right. "split" counts those that continue a session and
    were put into a new topic.
    """
    counts: Counter[str] = Counter()
    session_of: dict[str, str] = {}
    last_id = ""
    for message, topic_id in zip(stream, topic_ids, strict=True):
        is_new = topic_id not in session_of
        session_of.setdefault(topic_id, message.session)
        counts[message.kind] += 1
        if message.kind == "continue":
            counts["kept"] += topic_id == last_id
            counts["split"] += is_new
        elif message.kind == "shift":
            counts["shifted"] += is_new
        elif message.kind == "resume":
            counts["resumed"] += not is_new and session_of[topic_id] == message.session
        last_id = topic_id
    return counts


def b3_score(stream: Stream, topic_ids: Sequence[str]) -> float:
    """Return the B-cubed F1 of topics and sessions.

    It is the harmonic mean of two shares, as means over all messages: the messages of its topic
    that are of its session, and the messages of its session that are in its topic.
    """
    by_topic: dict[str, Counter[str]] = defaultdict(Counter)
    by_session: dict[str, Counter[str]] = defaultdict(Counter)
    for message, topic_id in zip(stream, topic_ids, strict=True):
        by_topic[topic_id][message.session] += 1
        by_session[message.session][topic_id] += 1

    precision = 0.0
    recall = 0.0
    for message, topic_id in zip(stream, topic_ids, strict=True):
        shared = by_topic[topic_id][message.session]
        precision += shared / by_topic[topic_id].total()
        recall += shared / by_session[message.session].total()
    return 2 * precision * recall / (precision + recall) / len(stream)


def print_table(streams: dict[str, list[Stream]], routers: dict[str, RouteFactory]) -> None:
    """Print a row for each kind of stream and each router, and a column for each figure."""
    print(f"{'':32}" + "".join(f"{title:>8}" for title in _ROWS))
    for title, streams_of_kind in streams.items():
        for name, make_route in routers.items():
            figures = judge(streams_of_kind, make_route)
            cells = "".join(f"{figures[row]:8.3f}" for row in _ROWS)
            label = f"{title}: {name}"
            print(f"{label:32}{cells}", flush=True)


# Tuning


def tune(streams: dict[str, list[Stream]]) -> None:
    """Change the router's weights in this process as long as that is worth it, and print them.

    One weight after the other is moved, by large steps first. `follows` stays: it is the unit.
    """
    tables = {name: getattr(routing, name) for name in ("NEAR", "STAY", "BACK", "NEW")}
    best_worth = rate_routing(streams)
    for step in _STEPS:
        for weights in tables.values():
            for key in sorted(weights.keys() - {"follows"}):
                best_worth = _move_weight(weights, key, step, streams, best_worth)
    for name, weights in tables.items():
        print(f"{name.lower()} = {weights}")


def _move_weight(
    weights: dict[str, float],
    key: str,
    step: float,
    streams: dict[str, list[Stream]],
    best_worth: float,
) -> float:
    """Add a step to a weight until that is not worth it any more. Return the best worth."""
    while True:
        weights[key] = round(weights[key] + step, 3)
        worth = rate_routing(streams)
        if worth <= best_worth + _MIN_GAIN:
            weights[key] = round(weights[key] - step, 3)
            return best_worth
        best_worth = worth


def rate_routing(streams: dict[str, list[Stream]]) -> float:
    """Return how good the router is on all streams; more is better.

    B-cubed F1 and turns that were routed right add to it, false splits subtract. Of chats with
    cues, each turn that was kept adds to it.
    """
    total = 0.0
    for title, streams_of_kind in streams.items():
        figures = judge(streams_of_kind, route_by_rules)
        penalty = 4 * max(0.0, figures["split"] - _MAX_SPLIT)
        total += figures["B3"] + 0.7 * figures["right"] - penalty
        if "cued" in title:
            total += 0.6 * figures["kept"]
    return total


if __name__ == "__main__":
    main()
