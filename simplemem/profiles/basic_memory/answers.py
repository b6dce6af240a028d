"""The JSON answers of basic-memory's tools: one model per answer.

The fields are those of release 0.24.1. A model takes the fields that it has from a row (see
`Project`), and ignores the rest. A field that may be null and is not in the row is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from simplemem.tools.tool import Data


class Answer(BaseModel):
    """The base of all answers and of the rows in them."""

    model_config = {"frozen": True, "defer_build": True}

    @classmethod
    def of(cls, fields: Mapping[str, Any], **more: Any) -> Self:
        """Return the answer with these fields; those in `more` replace those of the same name.

        Other names are ignored. Raises pydantic's ValidationError if a field is missing that has
        no default.
        """
        return cls.model_validate({**fields, **more})

    def as_data(self) -> Data:
        """Return the answer as JSON data, under the names that clients know."""
        return self.model_dump(by_alias=True)


class NoteAnswer(Answer):
    """The base of answers about one note."""

    title: str | None = None
    permalink: str | None = None
    file_path: str | None = None


FileCreated = Annotated[bool | None, Field(serialization_alias="fileCreated")]
CurrentChecksum = Annotated[str | None, Field(serialization_alias="currentChecksum")]


# --- write_note


class WrittenNote(NoteAnswer):
    """`write_note` created or replaced a note."""

    checksum: str | None = None
    action: str | None = None
    similar_notes: list[str] | None = None


class ExistingNote(NoteAnswer):
    """`write_note` changed nothing, because the note exists."""

    external_id: str | None = None
    checksum: str | None = None
    action: str | None = None
    error: str | None = None


class StaleWrite(NoteAnswer):
    """`write_note` changed nothing, because the note has another checksum than expected."""

    checksum: str | None = None
    action: str | None = None
    error: str | None = None
    current_checksum: CurrentChecksum = None


class FailedWrite(NoteAnswer):
    """`write_note` refused the directory."""

    checksum: str | None = None
    action: str | None = None
    error: str | None = None


# --- edit_note


class EditedNote(NoteAnswer):
    """`edit_note` changed a note, or created a missing one."""

    checksum: str | None = None
    operation: str | None = None
    file_created: FileCreated = None


class FailedEdit(EditedNote):
    """`edit_note` changed nothing."""

    error: str | None = None


class StaleEdit(FailedEdit):
    """`edit_note` changed nothing, because the note has another checksum than expected."""

    current_checksum: CurrentChecksum = None


# --- read_note


class ReadNote(NoteAnswer):
    """`read_note` with the whole text."""

    content: str | None = None
    frontmatter: dict[Any, Any] | None = None
    checksum: str | None = None


class NoteLines(ReadNote):
    """`read_note` with a range of lines."""

    section: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    total_lines: int | None = None
    has_more: bool | None = None
    next_start_line: int | None = None
    next_end_line: int | None = None


class NoteMetadata(NoteAnswer):
    """`read_note` without the text."""

    checksum: str | None = None
    updated_at: str | None = None


class RefusedIdentifier(NoteAnswer):
    """An identifier that leads out of the project."""

    content: str | None = None
    frontmatter: dict[Any, Any] | None = None
    error: str | None = None


class MissingNote(RefusedIdentifier):
    """`read_note` found no note."""

    message: str | None = None


class MissingNoteWithRelated(MissingNote):
    """`read_note` found no note, but a search found related ones."""

    related_results: list[NoteAnswer] = []


# --- search_notes


class CompactFoundNote(Answer):
    """A note that a search found, in the compact form."""

    title: str
    type: Literal["entity"]
    score: float
    entity: str
    external_id: str
    permalink: str
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    project_id: int
    project_external_id: str


class CompactFoundObservation(Answer):
    """An observation that a search found, in the compact form."""

    title: str
    type: Literal["observation"]
    score: float
    entity: str
    external_id: str
    permalink: str
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    observation_id: int
    category: str
    project_id: int
    project_external_id: str


class CompactFoundRelation(Answer):
    """A relation that a search found, in the compact form."""

    title: str
    type: Literal["relation"]
    score: float
    entity: str
    external_id: str
    permalink: str
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    relation_id: int
    from_entity: str | None
    to_entity: str | None
    relation_type: str
    project_id: int
    project_external_id: str


class FoundNote(Answer):
    """A note that a search found."""

    title: str
    type: Literal["entity"]
    score: float
    entity: str
    external_id: str
    permalink: str
    content: str
    content_length: int
    content_truncated: bool
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    project_id: int
    project_external_id: str


class FoundObservation(Answer):
    """An observation that a search found."""

    title: str
    type: Literal["observation"]
    score: float
    entity: str
    external_id: str
    permalink: str
    content: str
    content_length: int
    content_truncated: bool
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    observation_id: int
    category: str
    project_id: int
    project_external_id: str


class FoundRelation(Answer):
    """A relation that a search found."""

    title: str
    type: Literal["relation"]
    score: float
    entity: str
    external_id: str
    permalink: str
    content_truncated: bool
    file_path: str
    updated_at: str | None
    metadata: dict[str, Any]
    entity_id: int
    relation_id: int
    from_entity: str | None
    to_entity: str | None
    relation_type: str
    project_id: int
    project_external_id: str


FoundRow = Annotated[FoundNote | FoundObservation | FoundRelation, Field(discriminator="type")]
CompactFoundRow = Annotated[
    CompactFoundNote | CompactFoundObservation | CompactFoundRelation,
    Field(discriminator="type"),
]


class SearchPage(Answer):
    """A page of hits of `search_notes`."""

    results: list[FoundRow]
    current_page: int
    page_size: int
    total: int
    total_is_exact: bool
    has_more: bool


class CompactSearchPage(Answer):
    """A page of hits of `search_notes`, in the compact form."""

    results: list[CompactFoundRow]
    current_page: int
    page_size: int
    total: int
    total_is_exact: bool
    has_more: bool


# --- build_context


class ContextNote(Answer):
    """A note in an answer of `build_context`."""

    type: Literal["entity"]
    external_id: str
    entity_id: int
    permalink: str
    title: str
    content: str | None
    file_path: str
    created_at: str | None
    updated_at: str | None


class CompactContextNote(Answer):
    """A note in an answer of `build_context`, without its text."""

    type: Literal["entity"]
    external_id: str
    entity_id: int
    permalink: str
    title: str
    file_path: str
    created_at: str | None
    updated_at: str | None


class ContextObservation(Answer):
    """An observation in an answer of `build_context`."""

    type: Literal["observation"]
    observation_id: int
    entity_id: int
    entity_external_id: str
    title: str
    file_path: str
    permalink: str
    category: str
    content: str
    created_at: str | None


class ContextRelation(Answer):
    """A relation in an answer of `build_context`."""

    type: Literal["relation"]
    relation_id: int
    entity_id: int | None
    title: str
    file_path: str
    permalink: str
    relation_type: str
    from_entity: str
    from_entity_id: int
    from_entity_external_id: str
    to_entity: str | None
    to_name: str
    to_entity_id: int | None
    to_entity_external_id: str | None
    created_at: str | None


RelatedRow = Annotated[ContextNote | ContextRelation, Field(discriminator="type")]
CompactRelatedRow = Annotated[CompactContextNote | ContextRelation, Field(discriminator="type")]


class ContextResult(Answer):
    """One note of a context, with its observations and what it is related to."""

    primary_result: ContextNote
    observations: list[ContextObservation]
    related_results: list[RelatedRow]


class CompactContextResult(Answer):
    """One note of a context, with what it is related to."""

    primary_result: CompactContextNote
    related_results: list[CompactRelatedRow]


class ContextMetadata(Answer):
    """What `build_context` was asked for, and how much it found."""

    uri: str
    types: list[str] | None = None
    depth: int
    timeframe: str
    primary_count: int
    related_count: int
    total_results: int
    total_relations: int
    total_observations: int
    generated_at: str


class Context(Answer):
    """A page of an answer of `build_context`."""

    results: list[ContextResult]
    metadata: ContextMetadata
    page: int
    page_size: int
    has_more: bool


class CompactContext(Answer):
    """A page of an answer of `build_context`, in the compact form."""

    results: list[CompactContextResult]
    metadata: ContextMetadata
    page: int
    page_size: int
    has_more: bool


# --- recent_activity and list_directory


class RecentRow(Answer):
    """A note, observation or relation that changed recently."""

    type: str
    title: str
    permalink: str
    file_path: str
    created_at: str | None


class DirectoryNode(Answer):
    """A folder or a note in a directory."""

    name: str
    file_path: str | None = None
    directory_path: str
    type: Literal["directory", "file"]
    children: list[str]
    title: str | None = None
    permalink: str | None = None
    external_id: str | None = None
    entity_id: int | None = None
    note_type: str | None = None
    content_type: str | None = None
    format: str | None = None
    updated_at: str | None = None


class DirectoryPage(Answer):
    """A page of an answer of `list_directory`."""

    nodes: list[DirectoryNode]
    page: int
    page_size: int
    total: int
    has_more: bool


# --- delete_note and move_note


class DeletedNote(Answer):
    """Whether `delete_note` deleted a note."""

    deleted: bool
    title: str | None = None
    permalink: str | None = None
    file_path: str | None = None


class DeletedDirectory(Answer):
    """`delete_note` deleted all notes of a directory."""

    deleted: bool
    is_directory: bool = True
    identifier: str
    total_files: int
    successful_deletes: int
    failed_deletes: int = 0
    deleted_files: list[str]
    errors: list[str] = []


class FailedDirectoryDelete(DeletedDirectory):
    """`delete_note` found no notes in a directory."""

    error: str


class MovedNote(Answer):
    """`move_note` moved a note."""

    moved: bool
    title: str | None = None
    permalink: str | None = None
    file_path: str | None = None
    source: str | None = None
    destination: str | None = None


class MovedDirectory(MovedNote):
    """`move_note` moved all notes of a directory."""

    is_directory: bool = True
    total_files: int
    successful_moves: int
    failed_moves: int = 0


class FailedMove(MovedNote):
    """`move_note` moved nothing."""

    error: str
