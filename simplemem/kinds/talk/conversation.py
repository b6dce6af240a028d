"""The conversations of one store: a turn told is one step of the history, with its block, its facts and what it says of
the person. All state is in notes; whoever changes them, the next call goes by it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from itertools import chain, count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.kinds.kind import ChangeSet, Keeper, Kind, Shelf
from simplemem.kinds.talk import block as blocks
from simplemem.kinds.talk.block import TOPIC, Block, Turn
from simplemem.kinds.talk.choosing import closed_off, current_of, found, named, scenario_of, with_room, within
from simplemem.kinds.talk.cues import keywords_of, label_of
from simplemem.kinds.talk.facts import FACT, Fact, FactOut, Told, new_fact, with_told
from simplemem.kinds.talk.governor import Decision, Governor
from simplemem.kinds.talk.profile import PROFILE, Profile, with_traits
from simplemem.kinds.talk.saying import Saying
from simplemem.kinds.talk.statements import Statement
from simplemem.memory import By, Value
from simplemem.note.header import read_header
from simplemem.note.names import legal_name
from simplemem.note.properties import remove_property, set_property
from simplemem.services.chat import questions_in
from simplemem.services.embed import embedder_named
from simplemem.store import Read, now

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.services.embed import Embedder
    from simplemem.store import EnhancedStore

T = TypeVar("T")
MOST_SENT: Final = 20_000  # characters in one question to a model
QUESTIONS: Final = questions_in(Path(__file__).with_name("questions.toml"))


class Stored(Value):
    """What became of a turn, as clients know it."""

    block_id: str
    turn_id: str
    routing_scenario: str
    facts_extracted: int
    topic: str
    reason: str
    method: str
    facts: list[FactOut]
    warnings: list[str]


_KINDS: Final = (TOPIC, FACT, PROFILE)


def _read(read: Read) -> Any:
    """A note of one of the three kinds, by its header or its folder."""
    told = str(read_header(read.text).get("type") or "")
    return next((kind for kind in _KINDS if kind.holds(read.path, told)), TOPIC).read(read)


class _Talk(Kind[Any]):
    """Blocks, facts and profiles are one shelf, as a turn may change all three."""

    def holds(self, path: str, told: str | None) -> bool:
        return any(kind.holds(path, told) for kind in _KINDS)


class Conversation(Keeper):
    """What was said in one vault."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.shelf = Shelf[Any](store.bench, _Talk("", "", read=_read, place=attrgetter("path")))
        self.governor = Governor(_vectors)

    def items(self, kind: type[T]) -> list[T]:
        """All notes of a kind, as they are now."""
        with self.shelf.reading():
            return self.held(kind)

    def held(self, kind: type[T]) -> list[T]:
        """The notes of a kind, for whoever holds the shelf."""
        return [each for each in self.shelf.items.values() if isinstance(each, kind)]

    def topics(self, *, closed: bool = False) -> list[Block]:
        """The blocks, closed ones too if that is said: active ones first, then by what was said last."""
        found = [each for each in self.items(Block) if closed or each.status != "closed"]
        return sorted(found, key=lambda each: (each.status == "active", each.last, each.id), reverse=True)

    def profile(self) -> Profile:
        """What is known of the person."""
        return next(iter(self.items(Profile)), Profile(path=""))

    def find(self, ref: str) -> Block:
        """The block of this id, or of this label or note name."""
        return found(self.items(Block), ref)

    def spoken_of(self, saying: Saying) -> Block | None:
        """The block that a message would go to, None for a new one."""
        return self._decide(saying, self.items(Block))[1].block

    def tell(self, saying: Saying, **by: Unpack[By]) -> Stored:
        """Keep a turn, as one step with one undo."""
        if saying.has_secret and self.settings.write.secrets == "refuse":
            hint = "Leave the credential out, or allow it with write.secrets = warn."
            raise Invalid("the message holds a credential, and the settings refuse secrets", hint=hint)
        turn_id = f"turn_{saying.at:%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"
        turn = Turn(turn_id, saying.at, saying.message, saying.answer, saying.context)
        advice = self._advice(saying)
        stored, carried = self.shelf.change(lambda step: self._draft(step, saying, turn, advice), by)
        stored.warnings.extend(carried.warnings)
        return stored

    def _decide(self, saying: Saying, every: Sequence[Block]) -> tuple[Block | None, Decision]:
        """The block that the session is in, and where the rules would put a message."""
        current = current_of(every, saying.session, saying.at)
        return current, self.governor.decide(saying.message, saying.at, within(every, saying.session), current)

    def _advice(self, saying: Saying) -> tuple[str, str] | None:
        """A model and the id of the block it chose, "" for a new one, if one was asked and is of help: a person set it,
        the numbers are close, nothing is private. Never while the vault is held."""
        if saying.topic or saying.has_secret or not self.settings.llm.route or (chat := self.chat) is None:
            return None
        current, decision = self._decide(saying, self.items(Block))
        private = self.bench.private(each.path for each in {*decision.ranked, current} if each)
        shown = {each.id: each for each in decision.ranked if each.path not in private}
        if not (decision.is_close and shown) or (current and current.path in private):
            return None
        topics = [
            {"block_id": each.id, "topic": each.label, "about": each.summary, "keywords": list(each.keywords[:5])}
            for each in shown.values()
        ]
        said = {"topics": topics, "message": saying.message[:MOST_SENT]}
        with suppress(SimplememError):
            found = chat.ask(QUESTIONS["route"], said, self.settings.llm.route_seconds)
            id_ = "" if found["new"] is True else found["block_id"]
            return (chat.method, id_) if id_ in ("", *shown) else None
        return None

    def _draft(self, step: ChangeSet, saying: Saying, turn: Turn, advice: tuple[str, str] | None) -> Stored:
        every = self.held(Block)
        if saying.topic:
            current = current_of(every, saying.session, saying.at)
            target = named(every, saying.topic, saying.session)
            method, reason = "agent", "the agent named the topic"
        else:
            current, decision = self._decide(saying, every)
            method, target, reason = "rules", decision.block, decision.reason
            if advice is not None and decision.is_close:
                method, reason = advice[0], "a model was asked, as the numbers were close"
                target = next((each for each in every if each.id == advice[1]), None)
        scenario = scenario_of(every, current, target)
        meant, target = target, with_room(within(every, saying.session), target)
        label = meant.label if meant is not None else saying.topic or label_of(saying.message)
        is_late = current is not None and saying.at < current.last
        if target is not None:
            step.text(target.path)  # Conflict when a person has just saved it, Unreadable when it has to be mended
            path, id_, text = target.path, target.id, blocks.with_turn(target, turn)
            if not is_late:
                text = blocks.with_status(text, "active")
                session = saying.session
                text = set_property(text, "session", session) if session else remove_property(text, "session")
        else:
            stem, ids = f"block_{turn.at:%Y%m%d_%H%M%S}", {each.id for each in every}
            id_ = next(each for each in chain([stem], (f"{stem}_{number}" for number in count(2))) if each not in ids)
            path = self.free(step, blocks.place_of(label, turn.at), between="-")
            continues = self.link_text(meant.path) if meant is not None else ""
            text = blocks.new_block(label, turn, keywords_of([saying.message]), saying.session, id_, continues)
            text = blocks.with_status(text, "paused") if is_late else text
        step.put(path, set_property(text, "private", True) if saying.has_secret else text)
        for each in within(every, saying.session) if not is_late else ():
            if each.status == "active" and each.path != path:
                step.put(each.path, closed_off(step.text(each.path), each))
        link = self.link_to(path, turn)
        facts = [self.keep(step, said, saying.at, link, id_) for said in saying.facts]
        warnings = self._know(step, saying, link) if saying.traits else []
        return Stored(id_, turn.id, scenario, len(facts), label, reason, method, facts, warnings)

    def link_to(self, path: str, turn: Turn) -> str:
        """A link to a turn, by the note's bare name where that is unique."""
        return f"{self.link_text(path)[2:-2]}#^{turn.mark}"

    def keep(self, step: ChangeSet, said: Statement, at: datetime, link: str, block: str) -> FactOut:
        """Keep a fact in its note, and say what is kept. One that names a noun alone is the one fact of that noun."""
        told, every = Told(said.value, at, link), [each for each in self.held(Fact) if not each.problem]
        known = max((each for each in every if each.key == said.key), key=attrgetter("valid_from"), default=None)
        alike = [each for each in every if said.secret and each.key.endswith(f"_{said.key}")]
        if known := known or (alike[0] if len(alike) == 1 else None):
            said = said._replace(key=known.key)
            step.put(known.path, with_told(step.text(known.path), known, said, told, block))
        else:
            path = self.free(step, f"{FACT.folder}/{legal_name(said.key.replace('_', ' '))}", between="-")
            step.put(path, new_fact(said, told, block, now()))
        return {"key": said.key, "value": said.value, "block_id": block, "confidence": said.confidence}

    def _know(self, step: ChangeSet, saying: Saying, link: str) -> list[str]:
        """Keep what a turn says of the person; what is to be said of that."""
        known = next(iter(self.held(Profile)), None)
        if known and known.problem:
            return [f"nothing was kept in {known.path[:-3]}: {known.problem}"]
        path = known.path if known else self.free(step, f"{PROFILE.folder}/default", between="-")
        text = step.text(path) if known else PROFILE.render({"title": "Profile"}, "", now())
        step.put(path, with_traits(text, saying.traits, saying.at, link))
        return []


conversation_of: Final = Conversation.of


@cache
def _word_vectors() -> Embedder | None:
    with suppress(SimplememError):
        return embedder_named("wordllama")
    return None


def _vectors(texts: Sequence[str]) -> NDArray[np.float32] | None:
    """Unit vectors by the word vectors that come with the program, whatever embeds the notes; None without them."""
    import numpy as np

    if (embedder := _word_vectors()) is None:
        return None
    rows = np.frombuffer(b"".join(embedder.documents(texts)), np.int8).reshape(len(texts), -1).astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows
