"""The review of one store: the inbox, and what a person does with its items."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.features.review.agent_log import AgentLog
from simplemem.features.review.change_texts import ChangeTexts
from simplemem.features.review.details import compare_note, find_contradictions, find_similar
from simplemem.features.review.folding import (
    Group,
    Item,
    filter_items,
    fingerprints_of,
    items_of,
    note_change_of,
    reason_of_merge,
)
from simplemem.features.review.inbox import (
    LAST_LOOK,
    ActionResult,
    Inbox,
    InboxFilter,
    InboxGroup,
    ItemDetails,
    NoteChange,
    NoteTexts,
    OpenChange,
    OpenNeighbours,
    ReviewItem,
)
from simplemem.features.review.item_state import ItemState
from simplemem.features.review.listing import ItemConditions, Listing, list_groups
from simplemem.features.review.paging import Entry, list_entries, page_of
from simplemem.features.review.state import ReviewLog
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import path_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore, Version

_MAX_LISTINGS: Final = 50  # one per person, that are remembered
_MAX_COMMENT: Final = 4000  # characters
_MAX_OF_SAME_NOTE: Final = 5  # other changes that are named for an item
_MAX_COUNTED: Final = 300  # open items in which warnings are counted


def review_of(store: EnhancedStore) -> ReviewService:
    """Return the review of a store, made on the first call."""
    return ReviewService.of(store)


class ReviewService(FeatureService):
    """The inbox of changes by agents, and its actions.

    Guards the last listing of each person.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. Callers use `review_of`, so that there is only one."""
        super().__init__(store)
        self._agent_log = AgentLog(store.extension)
        self._log = ReviewLog(store.extension, store.root)
        self._texts = ChangeTexts(store.extension)
        self._state = ItemState(store.extension, self._texts)
        self._listings: dict[str, Listing] = {}

    # Reading

    def inbox(self, conditions: InboxFilter) -> Inbox:
        """Return a page of the changes by agents in the latest 2,000 operations.

        Raises NotFound if `since` is an unknown version, and Invalid if it is no date.
        """
        listing = self._listing(conditions.person, conditions.since)
        last_look = listing.last_look()
        groups = _matching_groups(listing, conditions)
        open_groups = _open_groups(groups)
        with_warnings = self._with_warnings(open_groups, listing)

        listed = groups
        if conditions.only_unreviewed:
            listed = open_groups
        if conditions.only_with_warnings:
            open_groups = _only_items(open_groups, with_warnings)
            listed = open_groups

        open_items = list(items_of(open_groups))
        entries = list_entries(listed)
        page = page_of(
            entries,
            conditions.position,
            conditions.limit,
            whole_sessions=conditions.whole_sessions,
        )
        return Inbox(
            groups=tuple(self._groups_of(page.entries, listing, last_look)),
            left=len(open_items),
            new=sum(item.last.when > last_look for item in open_items),
            total=len(entries),
            reviewed=sum(_is_reviewed_since(item, last_look) for item in items_of(groups)),
            warnings=len(with_warnings),
            newer=page.newer,
            older=page.older,
            agents=listing.agents,
            folders=listing.folders,
            last_look=last_look,
            is_complete=listing.is_complete,
        )

    def item(self, version: str, person: str) -> ReviewItem:
        """Return the item that contains an operation, as a person has reviewed it.

        `version` is that of any change of the operation. Raises NotFound if there is no such
        version among the latest 2,000 operations, or if no agent made it.
        """
        group = self.extension.operation(version)[0].group
        items = self.items([group], person)
        if not items:
            raise NotFound(
                f"{version} is not in the review",
                hint="The review has the latest changes by agents. The history has all changes.",
            )
        return items[0]

    def items(self, versions: Collection[str], person: str) -> tuple[ReviewItem, ...]:
        """Return the items that contain operations, as a person has reviewed them.

        `versions` are those of `ReviewItem.versions`. Unknown ones are ignored.
        """
        wanted = set(versions)
        listing = self._listing(person)
        last_look = listing.last_look()
        return tuple(
            self._review_item(item, listing, last_look)
            for item in items_of(listing.groups)
            if not wanted.isdisjoint(item.versions)
        )

    def neighbours(self, version: str, conditions: InboxFilter) -> OpenNeighbours:
        """Return the open items that an inbox lists directly before and after one item.

        `version` is one of `ReviewItem.versions`; the item may be decided already. The page of the
        filter does not matter. Texts are compared only if the filter asks for warnings. Raises what
        `inbox` raises.
        """
        listing = self._listing(conditions.person, conditions.since)
        open_groups = _open_groups(_matching_groups(listing, conditions))
        if conditions.only_with_warnings:
            open_groups = _only_items(open_groups, self._with_warnings(open_groups, listing))

        entries = list_entries(open_groups)
        place = _place_of(version, listing)
        if place is None:
            return OpenNeighbours(position=0, total=len(entries), previous="", next="")

        # Places fall from the top of the inbox to its end, because later changes come first.
        before = [entry.item.first.version for entry in entries if entry.place > place]
        after = [entry.item.first.version for entry in entries if entry.place < place]
        is_listed = any(entry.place == place for entry in entries)
        return OpenNeighbours(
            position=len(before) + 1 if is_listed else 0,
            total=len(entries),
            previous=before[-1] if before else "",
            next=after[0] if after else "",
        )

    def latest_open_change(self, name: str, person: str) -> OpenChange | None:
        """Return the latest change of a note by an agent that a person has to review.

        `name` is the whole name of the note. Returns None if there is none among the latest 50
        changes of the note and the latest 2,000 of the vault. No texts are compared, so this is
        quick.
        """
        reading = self._agent_log.read_note(path_of(name))
        review = self._log.review_of(person)
        for operation in reversed(reading.operations):
            is_undone = operation.version in reading.undone
            if not is_undone and not review.has_kept(operation.fingerprints):
                return OpenChange(operation.version, operation.who, operation.when)
        return None

    def details(self, version: str, person: str) -> ItemDetails:
        """Return an item with its texts, similar notes, possible contradictions and other changes.

        All of these but the texts are those of its first note. This takes a search, so it is
        not for a list. Raises NotFound as `item` does.
        """
        item = self.item(version, person)
        texts = self.texts_of(item)
        changed_note = compare_note(texts[0])
        similar = find_similar(self.store, changed_note)
        return ItemDetails(
            item=item,
            texts=texts,
            similar=tuple(similar_note for similar_note, _ in similar),
            contradictions=tuple(find_contradictions(self.store, changed_note, similar)),
            same_note=tuple(_others_of_same_note(item, self._listing(person))),
        )

    def texts_of(self, item: ReviewItem) -> tuple[NoteTexts, ...]:
        """Return the notes of an item with their texts before and after it.

        If a person changed the note since, the text after has only what is left of the change.
        """
        return self._state.texts_of(item)

    def _listing(self, person: str, since: str = "") -> Listing:
        """Return all changes by agents, or those since a date or version, by session.

        The date is ignored for `LAST_LOOK`, because it depends on the changes themselves.
        """
        if since in ("", LAST_LOOK):
            return self._whole_listing(person)
        reading = self._agent_log.read_since(since)
        review = self._log.review_of(person)
        return list_groups(reading, review, person, is_complete=reading.is_complete)

    def _whole_listing(self, person: str) -> Listing:
        """Return all changes by agents, by session. It is kept until something changes."""
        reading = self._agent_log.read()
        review = self._log.review_of(person)
        listing = self._listings.get(person)
        if (
            listing is not None
            and listing.reading is reading
            and listing.review.revision == review.revision
        ):
            return listing

        listing = list_groups(reading, review, person, is_complete=reading.is_complete)
        if len(self._listings) >= _MAX_LISTINGS:
            self._listings.clear()
        self._listings[person] = listing
        return listing

    def _with_warnings(self, groups: Sequence[Group], listing: Listing) -> list[Item]:
        """Return those of the latest 300 items of some groups that have a warning."""
        newest_first = sorted(items_of(groups), key=lambda item: item.last.number, reverse=True)
        latest = newest_first[:_MAX_COUNTED]
        return [item for item in latest if self._state.glance_at(item, listing).text.warnings]

    def _groups_of(
        self, page: Sequence[Entry], listing: Listing, last_look: str
    ) -> Iterator[InboxGroup]:
        """Yield the sessions of a page, with the items of the page."""
        for _, entries in groupby(page, lambda entry: entry.group.last_number):
            on_page = list(entries)
            group = on_page[0].group
            yield InboxGroup(
                who=group.who,
                session=group.session,
                started=group.started,
                ended=group.ended,
                items=tuple(self._review_item(entry.item, listing, last_look) for entry in on_page),
                versions=tuple(
                    version for item in group.items if item.is_open for version in item.versions
                ),
            )

    def _review_item(self, item: Item, listing: Listing, last_look: str) -> ReviewItem:
        """Return an item with what its texts show."""
        glance = self._state.glance_at(item, listing)
        return ReviewItem(
            version=item.first.version,
            versions=item.versions,
            op=item.op,
            notes=item.notes,
            when=item.last.when,
            who=item.first.who,
            tool=item.tool,
            reason=item.reason,
            sources=item.sources,
            text=glance.text,
            is_kept=item.is_kept,
            is_undone=item.is_undone,
            can_redo=all(standing.undo for standing in item.standings),
            is_new=item.last.when > last_look,
            comments=listing.review.comments_on(item.fingerprints),
            steps=tuple(self._state.steps_of(item)),
            later_edit=glance.later_edit,
        )

    # Actions

    def keep(self, versions: Sequence[str], who: str) -> tuple[ActionResult, ...]:
        """Record that a person has reviewed operations, and wants their changes to stay.

        `versions` are those of `ReviewItem.versions`. Each has a result. Raises ReadOnly if the
        vault may not be changed, and Unavailable if another process keeps the log locked.
        """
        kept, results = self._look_up(versions, "kept")
        if kept:
            self._log.record("kept", who, list(kept), _flatten(kept.values()))
        return results

    def reopen(self, versions: Sequence[str], who: str) -> tuple[ActionResult, ...]:
        """Record that a person wants to review operations again that they had kept.

        Raises what `keep` raises.
        """
        found, results = self._look_up(versions, "reopened")
        if found:
            self._log.record("reopened", who, list(found), _flatten(found.values()))
        return results

    def comment(self, version: str, who: str, text: str) -> ActionResult:
        """Record what a person says about an operation. It does not count as reviewed by that.

        Raises Invalid for an empty or a very long text, and what `keep` raises.
        """
        text = text.strip()
        if not text or len(text) > _MAX_COMMENT:
            raise Invalid(
                "a comment has from 1 to 4,000 characters", hint="Shorten it, or write a note."
            )
        found, results = self._look_up([version], "commented on")
        if found:
            self._log.record("comment", who, list(found), _flatten(found.values()), text)
        return results[0]

    def undo(
        self, versions: Sequence[str], **author: Unpack[AuthorArgs]
    ) -> tuple[ActionResult, ...]:
        """Undo operations, the newest first. Each is undone or not by itself, and has a result.

        If a note has changed since, an undo by a person (`kind` "human") keeps its later changes,
        unless they overlap with what is undone. `versions` are those of `ReviewItem.versions`; the
        results have their order. Raises ReadOnly if the vault may not be changed.
        """
        self.extension.must_be_writable()
        results = {}
        for version in sorted(set(versions), key=_number_of, reverse=True):
            results[version] = self._undo_or_merge(version, author)
        return tuple(results[version] for version in dict.fromkeys(versions))

    def _undo_or_merge(self, version: str, author: AuthorArgs) -> ActionResult:
        """Undo an operation as a whole, or else so that later changes stay."""
        result = self._undo_one(version, version, author)
        if result.is_done:
            return result
        merged = self._undo_by_merge(version, author)
        if merged is None:
            return result
        return merged

    def redo(self, version: str, **author: Unpack[AuthorArgs]) -> ActionResult:
        """Undo the undo of an operation. For an item of several, redo its oldest version first.

        Raises ReadOnly if the vault may not be changed.
        """
        self.extension.must_be_writable()
        try:
            group = self.extension.operation(version)[0].group
        except SimplememError as error:
            return _failure(version, error)

        undone = self._agent_log.read().undone
        if group not in undone:
            return ActionResult(version, is_done=True, what=f"{version} is in effect")
        undo = undone[group]
        if not undo:
            return ActionResult(
                version,
                is_done=False,
                error=f"{version} is not undone by an undo of its own",
                hint="Undo the undo in the history instead.",
            )
        return self._undo_one(version, undo, author)

    def _undo_one(self, version: str, undone_version: str, author: AuthorArgs) -> ActionResult:
        """Undo `undone_version`, and return the result of the action on `version`."""
        try:
            undone = self.store.undo(undone_version, **author)
        except SimplememError as error:
            return _failure(version, error)
        return ActionResult(version, is_done=True, what=undone.what)

    def _undo_by_merge(self, version: str, author: AuthorArgs) -> ActionResult | None:
        """Remove the change of one note from its current text, and keep what was changed since.

        Returns None if that is not possible: the operation created, moved or deleted the note, or
        later changes overlap, or the note or its former texts are gone. Returns None for an agent,
        too, because the result would be one more change to review.
        """
        change = self._only_change_of(version)
        if change is None or author.get("kind") != "human":
            return None

        note = note_change_of(change)
        current = self.extension.bytes_of(change.path)
        if current is None:
            return None
        text = self._state.merge_without(note, current)
        if text is None:
            return None

        sha256 = hashlib.sha256(current).hexdigest()
        name = note.name
        undoing: AuthorArgs = {**author, "reason": reason_of_merge(change.group)}
        try:
            self.store.write_text(name, text, if_sha256=sha256, **undoing)
        except SimplememError as error:
            return _failure(version, error)
        return ActionResult(
            version, is_done=True, what=f"undid the change of {name} and kept later changes"
        )

    def _only_change_of(self, version: str) -> Version | None:
        """Return the change of an operation that changed one note; None for any other version."""
        try:
            changes = self.extension.operation(version)
        except SimplememError:
            return None
        return changes[0] if len(changes) == 1 else None

    def _look_up(
        self, versions: Sequence[str], participle: str
    ) -> tuple[dict[str, tuple[str, ...]], tuple[ActionResult, ...]]:
        """Return the fingerprints of the operations that exist, and a result for each version.

        `participle`, such as "kept", says in a result what was done.
        """
        found = {}
        results = []
        for version in dict.fromkeys(versions):
            try:
                changes = self.extension.operation(version)
            except SimplememError as error:
                results.append(_failure(version, error))
                continue
            found[version] = fingerprints_of(changes)
            results.append(ActionResult(version, is_done=True, what=f"{participle} {version}"))
        return found, tuple(results)


def _matching_groups(listing: Listing, conditions: InboxFilter) -> list[Group]:
    """Return the sessions with the items that pass a filter, whether they are decided or not."""
    item_conditions = ItemConditions.of(conditions, listing.last_look())
    return list(filter_items(listing.groups, item_conditions.are_met_by))


def _open_groups(groups: Iterable[Group]) -> list[Group]:
    """Return the sessions with their items that are still to be reviewed."""
    return list(filter_items(groups, lambda item: item.is_open))


def _only_items(groups: Iterable[Group], items: Iterable[Item]) -> list[Group]:
    """Return the groups with those of their items that are among `items`."""
    numbers = {item.last.number for item in items}
    return list(filter_items(groups, lambda item: item.last.number in numbers))


def _others_of_same_note(item: ReviewItem, listing: Listing) -> Iterator[OpenChange]:
    """Yield the latest open items, other than an item itself, of a note with the name of its first.

    That is the name before or after the change, so that both sides of a move are found.
    """
    names = _names_of(item.notes[0])
    others = [
        other
        for other in items_of(listing.groups)
        if other.is_open
        and other.first.version != item.version
        and any(not names.isdisjoint(_names_of(note)) for note in other.notes)
    ]
    others.sort(key=lambda other: other.last.number, reverse=True)
    for other in others[:_MAX_OF_SAME_NOTE]:
        yield OpenChange(other.first.version, other.first.who, other.last.when)


def _names_of(note: NoteChange) -> set[str]:
    """Return the names of a note before and after a change."""
    return {note.name, note.current_name}


def _place_of(version: str, listing: Listing) -> tuple[int, int] | None:
    """Return the place in the inbox of the item that contains an operation; None if none does."""
    for entry in list_entries(listing.groups):
        if version in entry.item.versions:
            return entry.place
    return None


def _is_reviewed_since(item: Item, last_look: str) -> bool:
    """Return whether the person has kept or undone an item after a time."""
    return not item.is_open and item.decided_at > last_look


def _number_of(version: str) -> int:
    """Return the number of a version such as "v12"; 0 for another text."""
    digits = version.removeprefix("v")
    return int(digits) if digits.isdecimal() else 0


def _flatten(fingerprints: Iterable[Sequence[str]]) -> list[str]:
    """Return the fingerprints of several operations as one list."""
    return [fingerprint for several in fingerprints for fingerprint in several]


def _failure(version: str, error: SimplememError) -> ActionResult:
    """Return the result of an action that was refused."""
    return ActionResult(version, is_done=False, error=error.message, hint=str(error.hint or ""))
