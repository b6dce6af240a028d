"""A tool: a function whose type hints make its schemas and whose docstring is its description."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Self,
    TypedDict,
    TypeVar,
    get_args,
    get_type_hints,
)

from pydantic import BaseModel, ValidationError, create_model

from simplemem.errors import Invalid, SimplememError
from simplemem.models import Value
from simplemem.tools import render
from simplemem.tools.arguments import (
    Arguments,
    Narrowing,
)
from simplemem.tools.normalize import Gather, describe_errors, normalize_arguments
from simplemem.tools.schema import Schema, omit_obvious, schema_of_fields, schema_of_record
from simplemem.tools.session import Session

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

T = TypeVar("T")
Data = dict[str, Any]

_ERROR = schema_of_fields(
    {"code": (str, ...), "message": (str, ...), "hint": (str, None)}, answer=True
)


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """An answer twice over: text for whoever is shown text, the same facts as a value for whoever is shown those."""

    text: str
    value: T | None = None
    notices: Sequence[str] = ()  # for answers over HTTP whose shape has no place for them

    def data(self) -> Data | None:
        """The value as JSON, with the word that notes are data where the text has it."""
        data: Data | None = _plain(self.value)
        return (
            data | {"notes_are": render.DATA} if data and f" {render.DATA}." in self.text else data
        )


def as_json(data: Any) -> Reply[Any]:
    """An answer whose text is the JSON of its data."""
    return Reply(render.pretty(data), data)


class Result(Value):
    """The base of the values that tools answer with. A field that has a default is left out while it holds that."""

    @classmethod
    def of(cls, value: Any, **more: Any) -> Self:
        """Such an answer with the fields of another value, but for what is given."""
        own = {each.name for each in dataclasses.fields(cls)}
        given = {
            each.name: getattr(value, each.name)
            for each in dataclasses.fields(value)
            if each.name in own
        }
        return cls(**(given | more))

    def as_dict(self) -> Data:
        values = ((each, getattr(self, each.name)) for each in dataclasses.fields(self))
        return {each.name: _plain(value) for each, value in values if value != each.default}


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return {
            key: each for key, each in value.as_dict().items() if key != "reason" or each
        }  # of an index
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


Caller = TypedDict("Caller", {"who": str, "tool": str})
"""Who makes a change (the client's name and version) with which tool, for the history."""

_KEPT = {
    "graph": ("KnowledgeGraph", "graph.graph", "graph_of"),
    "knowledge": ("Knowledge", "lessons.knowledge", "knowledge_of"),
    "talk": ("ConversationService", "conversations.service", "conversation_service"),
    "memories": ("FactService", "facts.service", "fact_service"),
    "documents": ("Documents", "documents.ingest", "documents_of"),
    "base": ("KnowledgeBase", "documents.base", "base_of"),
}
"""Parameters that are no arguments: their types, which are not imported to make a list of tools, and what makes them."""
_GIVEN = {"store": "EnhancedStore", "caller": "Caller", "session": "Session"}
_GIVEN |= {name: each[0] for name, each in _KEPT.items()}


def _given(name: str, store: EnhancedStore, caller: Caller, session: Session) -> Any:
    """What one of these parameters stands for in a call."""
    if name in _KEPT:
        _, module, maker = _KEPT[name]
        return getattr(importlib.import_module(f"simplemem.features.{module}"), maker)(store)
    return {"store": store, "caller": caller, "session": session}[name]


class Manner:
    """How a tool lists itself, takes its arguments and tells a failure: ours is forgiving, and failures have codes."""

    base: type[BaseModel] = Arguments
    failure = ""  # how the text of a failure begins, in place of its code, where another server's words are expected

    def listing(self, tool: Tool) -> Data:
        """The tool as `tools/list` shows it, with all four hints: their defaults assume the worst."""
        hints = {"readOnlyHint": not tool.writes, "destructiveHint": tool.destructive}
        hints |= {"idempotentHint": tool.idempotent, "openWorldHint": False}
        shown: Data = {"name": tool.name, "title": tool.title, "description": tool.description}
        shown |= {"inputSchema": omit_obvious(tool.input), "annotations": hints}
        if (
            answer := tool.output
        ):  # it may be a failure instead: most clients check what a tool says even then
            either = [{"required": answer.get("required", [])}, {"required": ["error"]}]
            properties = {**answer["properties"], "error": _ERROR}
            shown["outputSchema"] = {"type": "object", "properties": properties, "anyOf": either}
        return shown

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> BaseModel:
        """The arguments. Invalid names all that is wrong."""
        try:
            return tool.model.model_validate(
                normalize_arguments(tool.arguments, sent or {}, tool.gather), extra="forbid"
            )
        except ValidationError as error:
            faults = "; ".join(f"{place!r} {said}" for place, said in describe_errors(error))
            hint = "The arguments are " + ", ".join(tool.input["properties"]) + "."
            raise Invalid(faults, hint=hint) from None

    def perform(
        self,
        tool: Tool,
        store: EnhancedStore,
        caller: Caller,
        arguments: BaseModel,
        session: Session,
    ) -> Reply[Any]:
        return tool(store, caller, arguments, session)

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        shown = render.error_data(error)
        text = render.error_text(shown)
        return (self.failure + text.removeprefix(f"{error.code}: ") if self.failure else text), {
            "error": shown
        }


OURS = Manner()


@dataclass(frozen=True)
class Tool:
    """One tool: a function, and how it is listed and called."""

    run: Callable[..., Reply[Any]]
    name: str
    title: str
    description: str
    writes: bool = False  # it runs alone, and is finished once begun
    destructive: bool = False
    idempotent: bool = True
    deletes: bool = False  # not offered where nothing may be deleted
    routes: tuple[str, ...] = ()  # by which programs call it over HTTP: "GET /memories/{name}"
    gather: Gather | None = None  # puts parts of one argument together that were passed apart
    manner: Manner = OURS
    hints: Mapping[str, Any] = field(default_factory=dict)  # in the place of the function's own
    given: Mapping[str, Any] = field(
        default_factory=dict
    )  # the values of parameters that are no arguments

    def __call__(
        self,
        store: EnhancedStore,
        caller: Caller,
        arguments: BaseModel,
        session: Session | None = None,
    ) -> Reply[Any]:
        """Call the tool. Without a `session`, the client has read nothing before."""
        session = session or Session()
        values = {name: getattr(arguments, name) for name in self.arguments}
        for name, group in self._groups.items():
            values[name] = group(
                **{each.name: values.pop(each.name) for each in dataclasses.fields(group)}
            )
        given = self._hints.keys() & _GIVEN
        values |= {name: _given(name, store, caller, session) for name in given}
        return self.run(**values, **self.given)

    def listing(self) -> Data:
        return self.manner.listing(self)

    @cached_property
    def input(self) -> Schema:
        """The schema of its arguments."""
        return schema_of_fields(self.arguments, answer=False)

    @cached_property
    def output(self) -> Schema | None:
        """The schema of its answer, if it promises one."""
        answer = get_args(self._hints["return"])[0]
        return None if answer in (Any, type(None)) else schema_of_record(answer, answer=True)

    @cached_property
    def model(self) -> type[BaseModel]:
        """What checks its arguments: made when it is called first."""
        fields: dict[str, Any] = dict(self.arguments)
        return create_model(self.name, __base__=self.manner.base, **fields)

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """Its arguments with their types and defaults (... for none), those of a group last."""
        own = {
            name: (self._hints[name], ... if each.default is each.empty else each.default)
            for name, each in inspect.signature(self.run).parameters.items()
            if name not in _GIVEN.keys() | self.given.keys() | self._groups.keys()
        }
        for group in self._groups.values():
            hints = get_type_hints(group, include_extras=True)
            own |= {
                each.name: (hints[each.name], each.default) for each in dataclasses.fields(group)
            }
        return own

    @cached_property
    def _groups(self) -> dict[str, type[Narrowing]]:
        hints = self._hints.items()
        return {
            name: hint
            for name, hint in hints
            if isinstance(hint, type) and issubclass(hint, Narrowing)
        }

    @cached_property
    def _hints(self) -> dict[str, Any]:
        unread = dict.fromkeys(_GIVEN.values(), Any)
        return get_type_hints(self.run, localns=unread, include_extras=True) | dict(self.hints)


def tool(title: str, **more: Any) -> Callable[[Callable[..., Reply[Any]]], Tool]:
    """Makes a tool of a function: its name, its docstring as the description, its hints as the schemas."""
    return lambda run: Tool(run, run.__name__, title, " ".join((run.__doc__ or "").split()), **more)
