"""The conversations of one store: a turn told is one step of the history, with its block, its facts and what it says of
the person. All state is in notes; whoever changes them, the next call goes by it."""

from __future__ import annotations

import secrets
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.features.answers import Closed, FactOut, Stored
from simplemem.features.changes import StatedSubject, find_doubtful
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.conversations import topic as topics
from simplemem.features.conversations.facts import (
    CONVERSATION_FACT,
    ConversationFact,
    FactVersion,
    StatedFact,
    add_version,
    fact_out,
    fact_stated_by,
    new_fact,
    read_conversation_fact,
    read_stated_facts,
    stated_changes,
)
from simplemem.features.conversations.patterns import keywords_of, label_of
from simplemem.features.conversations.profile import (
    PROFILE,
    Profile,
    Trait,
    traits,
    with_disputes,
    with_traits,
)
from simplemem.features.conversations.router import (
    Decision,
    TopicRouter,
    current_topic,
    found,
    named,
    within,
)
from simplemem.features.conversations.topic import EPOCH, TOPIC, Topic, Turn
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note import dates
from simplemem.note.dates import format_moment
from simplemem.note.header import read_header
from simplemem.note.names import legal_name
from simplemem.note.secrets import find_secrets
from simplemem.note.tag_changes import change_tags
from simplemem.note.words import unique_words
from simplemem.store import Read, now

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

T = TypeVar("T")
_Facts = tuple[
    str, str, list[tuple[Turn, StatedFact]]
]  # a block's path, the turn it is read up to, what that gave
_MOST_SENT: Final = 20_000  # characters in one question to a model
_QUESTIONS: Final = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)
_MOST: Final = defaultdict(lambda: 100_000, topic=120, session_id=120)  # characters
_clean: Final = partial(clean_text, hint="Nothing was stored, in full or in part.")


class Exchange(NamedTuple):
    """One exchange as it is told, checked."""

    turn: Turn
    topic: str
    session: str
    facts: Sequence[StatedFact]
    traits: Sequence[Trait]

    @property
    def has_secret(self) -> bool:
        """Whether a credential is stated in it, or stands there and looks like one."""
        return any(each.category == "secret" for each in self.facts) or bool(
            find_secrets("\n".join(self.turn[2:5]))
        )


def new_exchange(
    message: str,
    context: str = "",
    response: str | None = None,
    topic: str = "",
    facts: Sequence[tuple[str, str]] = (),
    timestamp: str = "",
    session: str = "",
) -> Exchange:
    """An exchange, checked: Invalid or TooLong says what is wrong with it. `context` alone is the reply."""
    texts = {
        "message": message,
        "context": context,
        "response": response or "",
        "topic": topic,
        "session_id": session,
    }
    message, context, answer, *names = (
        _clean(text, name, _MOST[name]) for name, text in texts.items()
    )
    topic, session = (" ".join(name.split()) for name in names)
    if not message.strip():
        raise Invalid("the message is empty")
    at = dates.parse_moment(timestamp) if timestamp.strip() else dates.now()
    if at is None or not EPOCH <= at <= dates.now() + timedelta(days=1):
        why = f"{timestamp[:40]!r} is not a time between 1970 and tomorrow"
        raise Invalid(why, hint="Give a time such as 2026-11-20T14:05:10Z.")
    known = {each.key: each for each in read_stated_facts(message)}
    for pair in facts:
        key, value = (" ".join(_clean(text, "fact", _MOST["fact"]).split()) for text in pair)
        said = fact_stated_by("agent", key, value, message, 0.9)
        if not said.key or not value:
            hint = 'Give, for example, {"key": "harbour phone", "value": "0431 778"}.'
            raise Invalid("a fact needs a key and a value, both with words", hint=hint)
        known[said.key] = said
    answer, context = (context, "") if response is None else (answer, context)
    turn_id = f"turn_{at:%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"
    turn = Turn(turn_id, at.replace(microsecond=0), message, answer, context)
    return Exchange(turn, topic, session, [*known.values()], traits(message))


def _read(read: Read) -> Any:
    """A note of one of the three kinds, by its header or its folder."""
    told = str(read_header(read.text).get("type") or "")
    return next(
        (kind for kind in (CONVERSATION_FACT, PROFILE) if kind.includes(read.path, told)), TOPIC
    ).read(read)


# Blocks, facts and profiles are on one collection, as a turn may change all three.
_TALK: Final[NoteType[Any]] = replace(
    TOPIC, read=_read, sort_key=attrgetter("path"), related=(CONVERSATION_FACT, PROFILE)
)


class ConversationService(FeatureService):
    """What was said in one vault."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection(store.extension, _TALK)
        self.governor = TopicRouter()

    def items(self, kind: type[T]) -> list[T]:
        """All notes of a kind, as they are now."""
        with self.collection.reading():
            return self.held(kind)

    def held(self, kind: type[T]) -> list[T]:
        """The notes of a kind, for whoever holds the collection."""
        return [each for each in self.collection.items.values() if isinstance(each, kind)]

    def topics(self, *, closed: bool = False) -> list[Topic]:
        """The blocks, closed ones too if that is said: active ones first, then by what was said last."""
        found = [each for each in self.items(Topic) if closed or each.status != "closed"]
        return sorted(
            found, key=lambda each: (each.status == "active", each.last, each.id), reverse=True
        )

    def profile(self) -> Profile:
        """What is known of the person."""
        return next(iter(self.items(Profile)), Profile(path=""))

    def find(self, ref: str) -> Topic:
        """The block of this id, or of this label or note name."""
        return found(self.items(Topic), ref)

    def decide(self, saying: Exchange, every: Sequence[Topic]) -> tuple[Topic | None, Decision]:
        """The block that the session is in, and where a message belongs: the agent's word, else by the rules."""
        (_, at, message, *_), topic, session, *_ = saying
        current = current_topic(every, session, at)
        if topic:
            return current, Decision(named(every, topic, session), "the agent named the topic")
        return current, self.governor.decide(message, at, within(every, session), current)

    def record(self, saying: Exchange, **by: Unpack[AuthorArgs]) -> Stored:
        """Keep a turn, as one step with one undo."""
        if saying.has_secret and self.settings.write.secrets == "refuse":
            hint = "Leave the credential out, or set write.secrets = warn."
            raise Invalid(
                "the message contains a credential, and the settings refuse secrets", hint=hint
            )
        advice = self._advice(saying)
        stored, carried = self.collection.change(lambda step: self._draft(step, saying, advice), by)
        stored["warnings"].extend(carried.warnings)
        return stored

    def _advice(self, saying: Exchange) -> tuple[str, str, str] | None:
        """A model, the id of the block it chose, "" for a new one, and a label for that, if one was asked and is of help:
        a person set it, the numbers are close, nothing is private. Never while the vault is held."""
        if (
            saying.topic
            or saying.has_secret
            or not self.settings.llm.route
            or (chat := self.chat) is None
        ):
            return None
        current, decision = self.decide(saying, self.items(Topic))
        private = self.extension.private_among(
            each.path for each in {*decision.ranked, current} if each
        )
        shown = {each.id: each for each in decision.ranked if each.path not in private}
        if not (decision.is_close and shown) or (current and current.path in private):
            return None
        topics = [
            {
                "block_id": each.id,
                "topic": each.label,
                "about": each.summary,
                "keywords": list(each.keywords[:5]),
            }
            for each in shown.values()
        ]
        said = {"topics": topics, "message": saying.turn.message[:_MOST_SENT]}
        with suppress(SimplememError):
            found = chat.ask(_QUESTIONS["route"], said, self.settings.llm.route_seconds)
            id_ = "" if found["new"] is True else found["block_id"]
            label = " ".join(found["label"].split()) if isinstance(found["label"], str) else ""
            words, used = unique_words(label.lower()), unique_words(saying.turn.message.lower())
            is_said = bool(words) and len(label) <= _MOST["topic"] and set(words) <= set(used)
            return (chat.method, id_, label if is_said else "") if id_ in ("", *shown) else None
        return None

    def _draft(
        self, step: ChangeSet, saying: Exchange, advice: tuple[str, str, str] | None
    ) -> Stored:
        turn, topic, session, facts, _ = saying
        every = self.held(Topic)
        current, decision = self.decide(saying, every)
        meant, reason, method = (
            decision.block,
            decision.reason,
            "agent" if topic else decision.method,
        )
        chosen = {each.id: each for each in decision.ranked} | {"": None}
        if (
            advice is not None and decision.is_close and advice[1] in chosen
        ):  # else it was closed or deleted meanwhile
            reason, (method, id_, topic) = "a model decided, because the scores were close", advice
            meant = chosen[id_]
        scenario = (
            "shift" if meant is None else "continuation" if meant is current else "resumption"
        )
        scenario = f"topic_{scenario}" if every else "new_topic_first"
        label = meant.label if meant is not None else topic or label_of(turn.message)
        target, reachable = meant, within(every, session)
        is_late = any(turn.at < each.last for each in reachable if each.status == "active")
        if meant is not None and meant.is_full:
            later = (
                e
                for e in reachable
                if e.label == label and e.created >= meant.created and not e.is_full
            )
            target = max(later, key=attrgetter("created", "id"), default=None)
        if target is not None:
            step.text(
                target.path
            )  # Conflict when a person has just saved it, Unreadable when its frontmatter cannot be parsed
            path, id_, text = target.path, target.id, topics.insert_turn(target, turn)
        else:
            id_ = f"block_{turn.at:%Y%m%d_%H%M%S}"
            id_ += f"_{turn.id[-6:]}" if any(each.id == id_ for each in every) else ""
            path = self.free_path(step, topics.topic_name(label, turn.at), between="-")
            continues = self.link_text(meant.path) if meant is not None else ""
            text = topics.render_new_topic(
                label, turn, keywords_of([turn.message]), session, id_, continues
            )
        step.put(path, text if is_late else change_tags(text, {"status": "active"}))
        step.set(
            path,
            **({} if is_late else {"session": session}),
            **({"private": True} if saying.has_secret else {}),
        )
        for each in reachable if not is_late else ():
            if each.status == "active" and each.path != path:
                step.put(each.path, topics.pause_or_close(step.text(each.path), each))
        kept = [self.keep(step, said, turn, path, id_) for said in facts]
        link = self.link_text(path, turn.mark)
        self._dispute(step, turn, link, {fact["key"] for fact in kept})
        warnings = self._know(step, saying, link)
        return {
            "block_id": id_, "turn_id": turn.id, "routing_scenario": scenario, "facts_extracted": len(kept),
            "topic": label, "reason": reason, "method": method, "facts": kept, "warnings": warnings,
        }  # fmt: skip

    def keep(self, step: ChangeSet, said: StatedFact, turn: Turn, path: str, block: str) -> FactOut:
        """Keep a fact in its note, and say what is kept. One that names a noun alone is the one fact of that noun."""
        told = FactVersion(turn.at, said.value, self.link_text(path, turn.mark)[2:-2])
        every = [each for each in self._facts_of(step) if not each.problem]
        known = max(
            (each for each in every if each.key == said.key),
            key=attrgetter("valid_from"),
            default=None,
        )
        alike = [
            each
            for each in every
            if said.category == "secret" and each.key.endswith(f"_{said.key}")
        ]
        if known := known or (alike[0] if len(alike) == 1 else None):
            said = said._replace(key=known.key)
            step.put(known.path, add_version(step.text(known.path), known, said, told, block))
        else:
            place = self.free_path(
                step,
                f"{CONVERSATION_FACT.folder}/{legal_name(said.key.replace('_', ' '))}",
                between="-",
            )
            step.put(place, new_fact(said, told, block, now()))
        return fact_out(said, block)

    def _dispute(self, step: ChangeSet, turn: Turn, link: str, told: Collection[str]) -> None:
        """Mark the facts of which a turn says that they changed, where no rule reads what they are now.

        `told` are the keys of what the turn itself states, which is current.
        """
        changes = stated_changes(turn.message)
        if not changes:
            return

        facts = [each for each in self._facts_of(step) if not each.problem and each.key not in told]
        older = [fact for fact in facts if fact.valid_from < turn.at]
        subjects = [StatedSubject(fact.subject, fact.valid_from.year) for fact in older]
        for change in changes.values():
            for index in find_doubtful(subjects, change):
                fact = older[index]
                step.set(
                    fact.path, disputed=format_moment(fact.disputed or turn.at), disputed_by=link
                )

    def _facts_of(self, step: ChangeSet) -> list[ConversationFact]:
        """Return all facts as `step` leaves them so far, those that it has just made included."""
        facts = {fact.path: fact for fact in self.held(ConversationFact)}
        for path, text in step.texts().items():
            if path in facts or path.startswith(f"{CONVERSATION_FACT.folder}/"):
                facts[path] = read_conversation_fact(Read(path, text, "", ""))
        return list(facts.values())

    def _know(self, step: ChangeSet, saying: Exchange, link: str) -> list[str]:
        """Keep what a turn says of the person; what is to be said of that."""
        known = next(iter(self.held(Profile)), None)
        changes = stated_changes(saying.turn.message) if known else {}
        if not saying.traits and not changes:
            return []
        if known and known.problem:
            return [f"nothing was stored in {known.path[:-3]}: {known.problem}"]
        path = (
            known.path if known else self.free_path(step, f"{PROFILE.folder}/default", between="-")
        )
        text = step.text(path) if known else PROFILE.render({"title": "Profile"}, "", now())
        text = with_disputes(text, changes, saying.turn.at, link[2:-2], is_read=bool(saying.traits))
        step.put(path, with_traits(text, saying.traits, saying.turn.at, link[2:-2]))
        return []

    def archive_stale(
        self,
        ref: str = "all",
        after_days: int = 60,
        *,
        dry_run: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> Closed:
        """Close what has been paused for so long, or one block whatever it is; a model, if there is one, reads the facts
        of closed blocks, never of private ones. `continued` are those another goes on for. One step with one undo."""
        every = self.items(Topic) if ref == "all" else [self.find(ref)]
        chat, before, read = self.chat, dates.now() - timedelta(days=after_days), list[_Facts]()
        old = [
            each
            for each in every
            if each.status == "paused" and each.last <= before and not each.problem
        ]
        ripe = old if ref == "all" else [each for each in every if each.status != "closed"]
        method, closed = chat.method if chat else "rules", [each.id for each in ripe]
        done = Closed(closed=closed, continued=[], facts=[], method=method, warnings=[])

        def draft(step: ChangeSet) -> None:
            there = {each.path: each for each in self.held(Topic)}
            left = [there[each.path] for each in ripe if each.path in there]
            done["closed"], done["facts"] = [each.id for each in left], []
            for block in left:
                step.put(block.path, topics.pause_or_close(step.text(block.path), block, "closed"))
            for path, mark, facts in read:
                if path in there:
                    secret = (
                        {"private": True}
                        if any(said.category == "secret" for _, said in facts)
                        else {}
                    )
                    step.set(path, facts_read=mark, **secret)
                    done["facts"] += [
                        self.keep(step, said, turn, path, there[path].id) for turn, said in facts
                    ]

        if chat and not dry_run:
            unread = [
                each
                for each in every
                if each in ripe or (each.status == "closed" and not each.problem)
            ]
            private = self.extension.private_among(each.path for each in unread)
            try:
                for block in unread:
                    read.extend(_facts_read(chat, block) if block.path not in private else ())
            except SimplememError as error:
                done["warnings"].append(error.message)
        if (ripe or read) and not dry_run:
            _, carried = self.collection.change(
                draft, AuthorArgs(reason="archived topics that were paused for a long time") | by
            )
            done["warnings"] += carried.warnings
        done["continued"] = [each.id for each in ripe if each.is_full and each.id in done["closed"]]
        return done


def _facts_read(chat: ChatModel, block: Topic) -> Iterator[_Facts]:
    """What a model reads in the turns of a block that none has read, as far as it quotes them literally, in portions of
    what one question may hold. Unavailable when it cannot be asked."""
    turns = [turn for turn in block.turns if turn.mark > block.facts_read]
    while turns:
        number = max(
            1, sum(size <= _MOST_SENT for size in accumulate(len(turn.message) for turn in turns))
        )
        by_id = {turn.id: turn for turn in turns[:number]}
        said = [
            {"turn_id": turn.id, "message": turn.message[:_MOST_SENT]} for turn in by_id.values()
        ]
        answer, found = (
            chat.ask(_QUESTIONS["facts"], {"turns": said})["facts"],
            list[tuple[Turn, StatedFact]](),
        )
        for row in answer if isinstance(answer, list) else ():
            told = defaultdict(str, row if isinstance(row, dict) else {})
            id_, name, value, evidence = (
                str(told[k] or "").strip() for k in ("turn_id", "key", "value", "evidence")
            )
            turn, stated_sentences = (
                by_id.get(id_),
                fact_stated_by(chat.method, name, value, evidence, 0.7),
            )
            if (
                turn
                and stated_sentences.key
                and value
                and evidence in turn.message
                and value in evidence
                and "\n" not in value
            ):
                found.append((turn, stated_sentences))
        yield block.path, turns[number - 1].mark, found
        turns = turns[number:]


conversation_service: Final = ConversationService.of
