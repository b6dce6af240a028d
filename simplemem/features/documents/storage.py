"""Put documents and their original files into the vault, as new ones or new versions.

The same content again is the same document. Other content from the same address, or with the same
title and user, is a new version.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import NamedTuple

from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.documents.document import DOCUMENT, Document, OriginalFile
from simplemem.features.facts.fact import link_target
from simplemem.features.service import FeatureService
from simplemem.note.dates import now
from simplemem.note.header import read_header
from simplemem.note.names import are_similar, compare_key, name_of
from simplemem.note.scopes import folder_of


class DocumentVersion(NamedTuple):
    """A document as it was saved, and whether it is a duplicate or a new version of another.

    The document of a duplicate is the one that the vault has already.
    """

    document: Document
    is_duplicate: bool
    is_new_version: bool

    @property
    def warnings(self) -> list[str]:
        """The warning that the document is a new version of another one, or none."""
        if not self.is_new_version:
            return []
        name = name_of(self.document.path)
        return [f"This is a new version of {name}. The history has its earlier text."]


class DocumentStorage:
    """Puts documents into change sets of their collection. Guards no state of its own."""

    def __init__(self, service: FeatureService, collection: NoteCollection[Document]) -> None:
        """Prepare to save into a collection. `service` is that of the documents."""
        self._service = service
        self._extension = service.extension
        self._collection = collection

    def save(self, change_set: ChangeSet, new: Document) -> DocumentVersion:
        """Put the note and original file of a document, or of its new version, into a change set.

        A duplicate changes nothing. A new version keeps the path, id and title of the earlier one,
        and has the status "extracting": the caller has its facts extracted. Return the document
        with these. Raise Conflict, Unreadable, TooLong or Unavailable as the methods of `ChangeSet`
        do.
        """
        earlier = self._find_earlier(new)
        if earlier is not None and earlier.content_hash == new.content_hash:
            return DocumentVersion(earlier, is_duplicate=True, is_new_version=False)

        if earlier is None:
            path = self._service.free_path(change_set, new.stem_for_note(), between=" ")
            new = replace(new, path=path, id=_new_id())
        else:
            new = replace(
                new,
                path=earlier.path,
                id=earlier.id,
                title=earlier.title,
                status="extracting",
            )

        if new.original_file is not None:
            link = self._store_original(change_set, new.original_file, new.path, earlier)
            new = replace(new, original=link)
        current_text = change_set.text(earlier.path) if earlier is not None else ""
        change_set.put(new.path, new.render(current_text))
        return DocumentVersion(new, is_duplicate=False, is_new_version=earlier is not None)

    def _store_original(
        self,
        change_set: ChangeSet,
        file: OriginalFile,
        path: str,
        earlier: Document | None,
    ) -> str:
        """Put the original of a document into a change set. Return a link to it, with brackets.

        `path` is that of the document's note. The original of the `earlier` version is replaced if
        it has the same ending and is where simplemem would have put it. Otherwise the file gets a
        free path.
        """
        folder, _, name = name_of(path).rpartition("/")
        stem = f"{folder}/files/{name}"
        original = f"{stem}{file.ending}"
        is_replaced = False
        if earlier is not None:
            [current] = self._extension.resolve_links([(link_target(earlier.original), path)])
            is_replaced = current == original
        if not is_replaced:
            original = self._service.free_path(change_set, stem, between=" ", ending=file.ending)

        change_set.put(original, file.data)
        file_name = original.rpartition("/")[2]
        same_name = set(self._extension.files_called(file_name))
        if same_name <= {original}:
            return f"[[{file_name}]]"
        return f"[[{original}]]"

    def _find_earlier(self, new: Document) -> Document | None:
        """Return the document that a new one equals, or is a new version of; None without one.

        That is the user's document from the same address, else the one with the same text, else the
        one with the same title. Documents whose notes cannot be changed are not considered.
        """

        def is_from_same_address(document: Document) -> bool:
            return new.source_url != "" and document.source_url == new.source_url

        def has_same_text(document: Document) -> bool:
            return document.content_hash == new.content_hash

        def has_same_title(document: Document) -> bool:
            return self._is_version_of(new, document)

        documents = [
            document
            for document in self._collection.in_order()
            if document.scope == new.scope and not document.problem
        ]
        for is_earlier in (is_from_same_address, has_same_text, has_same_title):
            for document in documents:
                if is_earlier(document):
                    return document
        return None

    def _is_version_of(self, new: Document, old: Document) -> bool:
        """Return whether a new document is a version of an ingested one with the same title.

        That is not so for texts of conversations, which have no titles. If others may have the same
        title, the texts must be similar too, since two letters to one person begin in the same way;
        a page of the web is then no version.
        """
        was_ingested = old.content_hash != ""
        is_conversation = "conversation" in (new.content_type, old.content_type)
        if not was_ingested or is_conversation:
            return False
        if compare_key(new.title) != compare_key(old.title):
            return False
        if new.has_distinct_title:
            return True
        if new.source_url:
            return False
        return are_similar(new.text, text_of_document(self._collection, old.path))

    def path_of_original(self, document: Document) -> str:
        """Return the path of the original file that belongs to a document alone, "" without one.

        A file that another document of the user names too, or that is in another folder than the
        one in which simplemem stores originals, does not belong to the document. The caller holds
        the lock of the collection.
        """
        if not document.original:
            return ""
        for other in self._collection.items.values():
            if other.path == document.path or other.scope != document.scope:
                continue
            if other.original == document.original:
                return ""

        link = (link_target(document.original), document.path)
        [path] = self._extension.resolve_links([link])
        folder = f"{DOCUMENT.folder}/{folder_of(document.scope)}/files/"
        if path is None or not path.startswith(folder):
            return ""
        return path


def text_of_document(collection: NoteCollection[Document], path: str) -> str:
    """Return the text of the document at a path, without its frontmatter, "" if there is none."""
    read = next(iter(collection.extension.read([path])), None)
    if read is None:
        return ""
    return read.text[read_header(read.text).body_start :].strip()


def _new_id() -> str:
    """Return a new id of a document: today's date and a random number."""
    return f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}"
