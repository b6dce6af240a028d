"""A tool: a function whose type hints make its schemas and whose docstring is its description."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NotRequired,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    get_args,
    get_type_hints,
)

from pydantic import BaseModel, ValidationError, create_model

from simplemem.errors import HintSentence, Invalid, SimplememError
from simplemem.features.services import ServiceOf
from simplemem.models import Value
from simplemem.tools import render
from simplemem.tools.arguments import Arguments, FilterArgs, is_user_argument
from simplemem.tools.normalize import (
    SYNONYMS,
    Gather,
    Synonyms,
    describe_errors,
    normalize_arguments,
)
from simplemem.tools.schema import (
    Schema,
    names_of,
    omit_obvious,
    schema_of_fields,
    schema_of_record,
)
from simplemem.tools.session import Session

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from simplemem.store import EnhancedStore

T = TypeVar("T")
Data = dict[str, Any]


class Caller(TypedDict):
    """Who makes a change (the client's name and version) with which tool, for the history.

    `kind` is "human" if a person makes it; without it, the store decides. `session` and `sources`
    are there if the client has a session (`simplemem.models.AuthorArgs`).
    """

    who: str
    tool: str
    kind: NotRequired[Literal["human", "agent"]]
    session: NotRequired[str]
    sources: NotRequired[Sequence[str]]


_ERROR_SCHEMA: Final = schema_of_fields(
    {"code": (str, ...), "message": (str, ...), "hint": (str, None)}, answer=True
)


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """An answer as text, and the same answer as a value, which is None for text only.

    `notices` are warnings for an answer over HTTP whose format has no field for them.
    """

    text: str
    value: T | None = None
    notices: Sequence[str] = ()

    def data(self) -> Data | None:
        """Return the value as JSON; None for text only.

        It has a field which says that notes are data if the text says so.
        """
        data: Data | None = _to_json(self.value)
        if data and f" {render.DATA}." in self.text:
            return data | {"notes_are": render.DATA}
        return data


def as_json(data: object) -> Reply[Any]:
    """Return a reply whose text is the JSON of its value."""
    return Reply(render.pretty(data), data)


class Result(Value):
    """The base of values that tools answer with. A field is left out if it has its default."""

    @classmethod
    def of(cls, value: DataclassInstance, **replaced: Any) -> Self:
        """Return a result with the fields of another value of the same names.

        `replaced` has values by the names of fields, and counts more. Raises TypeError if a
        required field is missing.
        """
        own_names = {own_field.name for own_field in dataclasses.fields(cls)}
        names = [field.name for field in dataclasses.fields(value) if field.name in own_names]
        values = {name: getattr(value, name) for name in names}
        return cls(**(values | replaced))

    def as_dict(self) -> Data:
        """Return the fields that do not have their default, as JSON."""
        data = {}
        for own_field in dataclasses.fields(self):
            value = getattr(self, own_field.name)
            if value != own_field.default:
                data[own_field.name] = _to_json(value)
        return data


def _to_json(value: object) -> Any:
    """Return a value as dictionaries, lists and plain values.

    An empty `reason` is left out.
    """
    if isinstance(value, Value):
        fields = value.as_dict()
        if not fields.get("reason", "is there"):
            del fields["reason"]  # the state of an index has none while the index is ready
        return fields
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    return value


_CONTEXT_TYPES: Final = {"store": "EnhancedStore", "caller": "Caller", "session": "Session"}
"""Parameters that each call has a value for, with the names of their types."""


class ToolAdapter:
    """How a tool is listed, validates its arguments and reports an error.

    This one is lenient about the form of arguments, and an error has a code. A profile that
    emulates another server overrides it.
    """

    base: type[BaseModel] = Arguments
    """The base of the models that validate arguments."""
    synonyms: Synonyms = SYNONYMS
    """What models write in place of the names of arguments."""
    failure = ""
    """What the text of an error begins with, in place of its code."""

    def listing(self, tool: Tool) -> Data:
        """Return the tool as `tools/list` shows it.

        All four hints are there, because their defaults assume the worst.
        """
        listing: Data = {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": omit_obvious(tool.input),
            "annotations": {
                "readOnlyHint": not tool.writes,
                "destructiveHint": tool.destructive,
                "idempotentHint": tool.idempotent,
                "openWorldHint": False,
            },
        }
        if tool.output:
            listing["outputSchema"] = _answer_or_error(tool.output)
        return listing

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> BaseModel:
        """Return the validated arguments of a call, of the tool's model.

        `sent` are the arguments as the client passed them, or None. Raises Invalid, which names
        each wrong argument and lists those that there are.
        """
        normalized = normalize_arguments(tool.arguments, sent or {}, tool.gather, self.synonyms)
        try:
            return tool.model.model_validate(normalized, extra="forbid")
        except ValidationError as error:
            errors = [f"{place!r} {message}" for place, message in describe_errors(error)]
            names = ", ".join(tool.input["properties"])
            raise Invalid("; ".join(errors), hint=f"The arguments are {names}.") from None

    def record_duration(self, tool: Tool, store: EnhancedStore, seconds: float) -> None:
        """Record how long a call took, whether it failed or not. Nothing is recorded by default."""

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Return an error as text, which a model reads, and as fields.

        The fields are under the key `error`; None for text only.
        """
        data = render.error_data(error)
        text = render.error_text(data)
        if self.failure:
            text = self.failure + text.removeprefix(f"{error.code}: ")
        return text, {"error": data}


def _answer_or_error(answer: Schema) -> Schema:
    """Return the schema of an answer or an error. Most clients validate errors too."""
    return {
        "type": "object",
        "properties": {**answer["properties"], "error": _ERROR_SCHEMA},
        "anyOf": [{"required": answer.get("required", [])}, {"required": ["error"]}],
    }


DEFAULT_ADAPTER: Final = ToolAdapter()


CallForm: TypeAlias = Callable[["Tool", str], str]
"""Returns how a reader calls a tool with arguments, which are text: `name="a", limit=5`."""


def call_by_name(tool: Tool, arguments: str) -> str:
    """Return the call of a tool for a model: `undo_change(version="v3")`, or only its name."""
    return f"{tool.name}({arguments})" if arguments else tool.name


@dataclass(frozen=True, slots=True)
class _Call:
    """The call of a tool in a sentence. The format is its arguments: `{call:version="v3"}`."""

    tool: Tool
    form: CallForm

    def __format__(self, arguments: str) -> str:
        """Return the call with these arguments, in the form that the reader uses."""
        return self.form(self.tool, arguments)


@dataclass(frozen=True)
class Tool:
    """A function, and how it is listed and called.

    Attributes:
        run: The function. Its parameters are the arguments, a filter (a `FilterArgs`), the store,
            the caller, the session and services of features.
        writes: Whether it changes notes. It then runs alone, and is finished once begun.
        creates: Whether it creates a note. Over HTTP, the answer has the status 201 and the
            address.
        deletes: Whether it deletes notes. It is not offered where deleting is forbidden.
        shows_changes: Whether it answers with changes, which a client may show with buttons.
        question: Returns what the user should be asked before a call with these arguments, by
            name, if the setting `write.confirm` asks for it; "" for nothing. Without it, the user
            is asked only before a tool that deletes.
        routes: The routes that call it over HTTP, such as `GET /memories/{name}`.
        phrases: What hints of errors say about it, by the key of a `HintSentence`. `{call}` becomes
            its name or its route, and `{call:version="{version}"}` its call with this argument.
        gather: Puts parts of one argument together that were passed as arguments of their own.
        adapter: How it is listed, validates its arguments and reports errors.
        type_hints: Type hints in place of those of the function.
        fixed_values: Values of parameters that are not arguments.
    """

    run: Callable[..., Reply[Any]]
    name: str
    title: str
    description: str
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    creates: bool = False
    deletes: bool = False
    shows_changes: bool = False
    question: Callable[[EnhancedStore, Mapping[str, Any]], str] | None = None
    routes: tuple[str, ...] = ()
    phrases: Mapping[str, str] = field(default_factory=dict)
    gather: Gather | None = None
    adapter: ToolAdapter = DEFAULT_ADAPTER
    type_hints: Mapping[str, Any] = field(default_factory=dict)
    fixed_values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self,
        store: EnhancedStore,
        caller: Caller,
        arguments: BaseModel,
        session: Session | None = None,
    ) -> Reply[Any]:
        """Call the function with validated arguments, and return its reply.

        Without a `session`, the client has read nothing. The adapter records how long the call
        took, even if it failed. Raises any SimplememError of the function.
        """
        values = {name: getattr(arguments, name) for name in self.arguments}
        for parameter, group in self._groups.items():
            names = [member.name for member in dataclasses.fields(group)]
            members = {name: values.pop(name) for name in names}
            values[parameter] = group(**members)

        context: Data = {"store": store, "caller": caller, "session": session or Session()}
        for parameter in self._hints.keys() & _CONTEXT_TYPES:
            values[parameter] = context[parameter]
        for parameter, service in self._services.items():
            values[parameter] = service.of(store)

        began = time.perf_counter()
        try:
            return self.run(**values, **self.fixed_values)
        finally:
            self.adapter.record_duration(self, store, time.perf_counter() - began)

    def listing(self) -> Data:
        """Return the tool as `tools/list` shows it."""
        return self.adapter.listing(self)

    def say(self, key: str, values: Mapping[str, str], form: CallForm = call_by_name) -> str:
        """Return the sentence of `phrases` with this key, with values in it.

        `values` are by the names in its braces. `form` returns how the reader calls the tool.
        Raises KeyError if there is no such sentence, or a value is missing.
        """
        return self.phrases[key].format(call=_Call(self, form), **values)

    def sentence(self, key: str, **values: str) -> HintSentence:
        """Return the sentence of `phrases` with this key for a hint that this package writes."""
        return HintSentence(key, self.say(key, values), values)

    @cached_property
    def input(self) -> Schema:
        """The schema of the arguments."""
        return schema_of_fields(self.arguments, answer=False)

    @cached_property
    def output(self) -> Schema | None:
        """The schema of the answer; None if the answer is text only."""
        answer_type = get_args(self._hints["return"])[0]
        if answer_type in (Any, type(None)):
            return None
        return schema_of_record(answer_type, answer=True)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model that validates the arguments. It is built for the first call."""
        fields: dict[str, Any] = dict(self.arguments)
        return create_model(self.name, __base__=self.adapter.base, **fields)

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """The arguments with types and defaults (`...` for none), those of a filter last."""
        excluded = {*_CONTEXT_TYPES, *self._services, *self.fixed_values, *self._groups}
        arguments = {}
        for name, parameter in inspect.signature(self.run).parameters.items():
            if name not in excluded:
                is_required = parameter.default is parameter.empty
                default = ... if is_required else parameter.default
                arguments[name] = (self._hints[name], default)

        for group in self._groups.values():
            hints = get_type_hints(group, include_extras=True)
            for member in dataclasses.fields(group):
                arguments[member.name] = (hints[member.name], member.default)
        return arguments

    @cached_property
    def user_arguments(self) -> tuple[str, ...]:
        """The names of the arguments that name a user, as they are listed; () for most tools.

        They are the arguments whose types are marked by `names_user`.
        """
        return tuple(
            names_of(name, hint)[0]
            for name, (hint, _) in self.arguments.items()
            if is_user_argument(hint)
        )

    @cached_property
    def _services(self) -> dict[str, ServiceOf]:
        """The parameters that get the service of a feature, with what gets it from a store."""
        return {
            name: annotation
            for name, hint in self._hints.items()
            for annotation in getattr(hint, "__metadata__", ())
            if isinstance(annotation, ServiceOf)
        }

    @cached_property
    def _groups(self) -> dict[str, type[FilterArgs]]:
        """The parameters that are several arguments in one, with their types."""
        return {
            name: hint
            for name, hint in self._hints.items()
            if isinstance(hint, type) and issubclass(hint, FilterArgs)
        }

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The type hints of the function, with those that replace them."""
        not_imported = dict.fromkeys(_CONTEXT_TYPES.values(), Any)
        hints = get_type_hints(self.run, localns=not_imported, include_extras=True)
        return hints | dict(self.type_hints)


def tool(title: str, **options: Any) -> Callable[[Callable[..., Reply[Any]]], Tool]:
    """Return a decorator that makes a tool of a function.

    The name and the docstring of the function become the name and the description. `title` is shown
    to people, and `options` are other fields of `Tool`.
    """

    def decorate(run: Callable[..., Reply[Any]]) -> Tool:
        """Return the tool with the name and the docstring of the function."""
        description = " ".join((run.__doc__ or "").split())
        return Tool(run, run.__name__, title, description, **options)

    return decorate
