"""Declare settings, in groups of frozen values.

Pydantic checks the values that a user sets, and is imported only then. Importing it and building
its models was a third of the time of a short command, and most users set nothing. Groups that are
dataclasses would still take a tenth, so `Section` is a plain class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_type_hints,
)

from simplemem.errors import Invalid

if TYPE_CHECKING:
    from pydantic import BaseModel, SecretStr
    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema

    SecretSource: TypeAlias = SecretStr | dict[str, str] | None
    """A secret, or `{ env = NAME }` or `{ path = FILE }`, which say where it is."""
    ModelRoute: TypeAlias = Literal["off", "close", "always"]
    """For which messages a model is asked. Earlier versions had a boolean."""
    Names: TypeAlias = tuple[str, ...]
    """A list of texts. An environment variable separates them with commas."""

VaultPolicy: TypeAlias = Literal["yes", "no", "narrower", "adds"] | tuple[str, ...]
"""How far a vault's own file may set a setting.

"yes": to any value. "no": not at all. "narrower": only the stricter value of the file's and the
user's counts. "adds": the entries of its list are added to those of the other files. A tuple: only
to one of these values, which send no note to another machine.
"""


class ProviderName(NamedTuple):
    """Annotates the type of a setting that names a provider: one of simplemem, or a plug-in."""

    kind: str  # of the plug-ins, such as "embedders"
    built_in: tuple[str, ...]

    def installed(self) -> list[str]:
        """Return the names that other packages add. Reads the metadata of all packages."""
        from simplemem.plugins import plugins_of  # most users name no plug-in

        return [name for name in plugins_of(self.kind) if name not in self.built_in]

    def is_known(self, value: object) -> bool:
        """Return whether a value is the name of a provider. No plug-in is imported.

        Reads the metadata of packages only for a name that is not built in.
        """
        return value in self.built_in or value in self.installed()

    def check(self, value: object) -> str:
        """Return the value if it names a provider. pydantic calls this.

        Raises PydanticCustomError, which lists all names, if it does not.
        """
        if isinstance(value, str) and self.is_known(value):
            return value
        from pydantic_core import PydanticCustomError

        *names, last_name = [repr(name) for name in (*self.built_in, *self.installed())]
        expected = f"{', '.join(names)} or {last_name}"
        raise PydanticCustomError("provider", "Input should be {expected}", {"expected": expected})

    def __get_pydantic_core_schema__(self, _type: object, _handler: object) -> CoreSchema:
        """Return the schema with which pydantic checks the setting."""
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(self.check)


_T = TypeVar("_T")
_SectionType = TypeVar("_SectionType", bound="Section")


class Declaration(NamedTuple):
    """A setting, or a section, as it is declared in a section."""

    default: Any
    meaning: str = ""
    vault: VaultPolicy = "yes"
    example: object = None  # replaces the default in the sample file, unless it is None
    bounds: Mapping[str, Any] = MappingProxyType({})  # as arguments of pydantic's `Field`

    @property
    def is_section(self) -> bool:
        """Whether this is a group of settings, and not one setting."""
        return isinstance(self.default, Section)


def setting(
    default: _T,
    meaning: str,
    vault: VaultPolicy = "yes",
    *,
    eg: object = None,
    **bounds: float | str,
) -> _T:
    """Declare a setting of a section, as the value of an annotated class attribute.

    Returns a `Declaration`, but a type checker sees the type of the default, which the attribute
    has later. `meaning` is for the help. `vault` says how far a vault's own file may set it. `eg`
    replaces the default in the sample file. `bounds` are those of pydantic: `ge`, `pattern`, ….
    """
    declaration: Any = Declaration(default, meaning, vault, eg, bounds)
    result: _T = declaration
    return result


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """A group of settings. Each setting is an attribute, which cannot be set again.

    A subclass declares each setting with its type and `setting(…)`, as a dataclass declares fields.
    An inner section is declared by its default. Sections with the same values are equal. The
    methods `model_…` do what pydantic's methods of these names do.
    """

    declared: ClassVar[Mapping[str, Declaration]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        """Move the declarations to `declared`, and leave the defaults as class attributes."""
        declared: dict[str, Declaration] = {}
        for name in cls.__annotations__:
            value = vars(cls)[name]
            if not isinstance(value, Declaration):
                value = Declaration(value)  # a section within this one
            declared[name] = value

        cls.declared = declared
        for name, declaration in declared.items():
            setattr(cls, name, declaration.default)

    def __init__(self, **values: object) -> None:
        """Create a section with these values, and the defaults of the other settings.

        Raises pydantic's ValidationError for a value that is wrong, or an unknown name.
        """
        checked: dict[str, object] = {}
        if values:
            checked = vars(self.model_validate(values))
        self._fill(checked)

    @classmethod
    def from_checked(cls, values: Mapping[str, object]) -> Self:
        """Return a section with these values, without checking them; the others have defaults.

        Unknown names are ignored.
        """
        section = object.__new__(cls)
        section._fill(values)
        return section

    def _fill(self, values: Mapping[str, object]) -> None:
        """Set each setting to its value or its default. Only for a new object."""
        for name, declaration in self.declared.items():
            value = values.get(name, declaration.default)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        items = [f"{name}={value!r}" for name, value in vars(self).items()]
        values = ", ".join(items)
        return f"{type(self).__name__}({values})"

    @classmethod
    def model_validate(cls, values: Mapping[str, object]) -> Self:
        """Return a section with these values, which pydantic checks and converts.

        The other settings have their defaults. The value of an inner section may be a section or a
        dictionary. Raises pydantic's ValidationError for a value that is wrong, or an unknown name.
        """
        plain = {name: _as_plain(value) for name, value in values.items()}
        checked = _model_of(cls).model_validate(plain)
        return _from_model(cls, checked)

    def model_copy(self, *, update: Mapping[str, object] | None = None) -> Self:
        """Return a copy with the values of `update`, which are not checked."""
        return self.from_checked({**vars(self), **(update or {})})

    def model_dump(self, *, exclude: set[str] | frozenset[str] = frozenset()) -> dict[str, object]:
        """Return the settings by name, sections as dictionaries. Secrets are not masked.

        `exclude` are names of this section that are left out; inner sections are complete.
        """
        plain = {}
        for name, value in vars(self).items():
            if name not in exclude:
                plain[name] = _as_plain(value)
        return plain


def _as_plain(value: object) -> object:
    """Return a section as a dictionary, and any other value as it is."""
    if isinstance(value, Section):
        return value.model_dump()
    return value


def declarations(section: type[Section], prefix: str = "") -> Iterator[tuple[str, Declaration]]:
    """Yield the settings of a section by dotted names, with those of inner sections, in order.

    `prefix` is put before each name. Does not import pydantic.
    """
    for name, declaration in section.declared.items():
        full_name = prefix + name
        if declaration.is_section:
            inner_section = type(declaration.default)
            yield from declarations(inner_section, f"{full_name}.")
        else:
            yield full_name, declaration


def pydantic_fields(section: type[Section]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the settings of a section by dotted names, with pydantic's types and bounds.

    Those of inner sections are among them. Imports pydantic.
    """
    for name, field in _model_of(section).model_fields.items():
        if section.declared[name].is_section:
            for inner_name, inner_field in pydantic_fields(type(field.default)):
                yield f"{name}.{inner_name}", inner_field
        else:
            yield name, field


# Checking values with pydantic


_ROUTES_BY_BOOLEAN: Mapping[str, str] = MappingProxyType({"true": "close", "false": "off"})

_MODELS: dict[str, type[BaseModel]] = {}


def _model_of(section: type[Section]) -> type[BaseModel]:
    """Return the pydantic model that checks a section and its inner sections. Built once."""
    name = section.__name__
    if name not in _MODELS:
        _MODELS[name] = _build_model(section)
    return _MODELS[name]


def _build_model(section: type[Section]) -> type[BaseModel]:
    """Build a pydantic model with the types, defaults and bounds of a section.

    It refuses unknown names.
    """
    from pydantic import ConfigDict, Field, create_model

    types = types_of(section)
    model_fields: dict[str, Any] = {}
    for name, declaration in section.declared.items():
        default = declaration.default
        if declaration.is_section:
            model_fields[name] = (_model_of(type(default)), default)
            continue

        extra: dict[str, Any] = {"vault": declaration.vault, "example": declaration.example}
        field = Field(
            default,
            description=declaration.meaning,
            json_schema_extra=extra,
            **declaration.bounds,
        )
        model_fields[name] = (types[name], field)
    config = ConfigDict(extra="forbid")
    return create_model(section.__name__, __config__=config, **model_fields)


def types_of(section: type[Section]) -> dict[str, Any]:
    """Return the types of the settings of a section, by name. Imports pydantic.

    The types of secrets, routes and lists include a function that pydantic calls before it checks
    a value.
    """
    from pydantic import BeforeValidator, SecretStr

    secret = SecretStr | dict[str, str] | None
    aliases = {
        "SecretSource": Annotated[secret, BeforeValidator(_check_secret_source)],
        "ModelRoute": Annotated[Literal["off", "close", "always"], BeforeValidator(as_route)],
        "Names": Annotated[tuple[str, ...], BeforeValidator(as_names)],
    }
    return get_type_hints(section, localns=aliases, include_extras=True)


def _check_secret_source(value: object) -> object:
    """Return a value as it is, unless it is a table that does not say where a secret is.

    For such a table, raises ValueError: it may contain the secret itself, and tables are shown.
    """
    if isinstance(value, dict) and set(value) not in ({"env"}, {"path"}):
        raise ValueError("neither env nor path")
    return value


def as_route(value: object) -> object:
    """Return the value of `llm.route` for a boolean, as earlier versions had it; else the value.

    True stands for "close" and false for "off", also as the texts of environment variables.
    """
    text = str(value).strip().lower()
    return _ROUTES_BY_BOOLEAN.get(text, value)


def as_names(value: object) -> tuple[object, ...]:
    """Return the value of a setting that is a list as a tuple. The elements are not checked.

    A text is split at commas, or read as TOML if it begins with "[". Any value that is neither a
    list nor a text becomes the only element. Raises Invalid for a text that begins as a TOML list
    and is none: if `["a", "b` were split at commas, it would hide no folder.
    """
    if isinstance(value, (list, tuple)):
        return tuple(value)
    if not isinstance(value, str):
        return (value,)

    text = value.strip()
    if not text.startswith("["):
        return tuple(split_names(text))

    import tomllib

    try:
        return tuple(tomllib.loads(f"names = {text}")["names"])
    except tomllib.TOMLDecodeError:
        raise Invalid(
            f"{text} is not a list of names", hint='Write `a/, b/` or `["a/", "b/"]`.'
        ) from None


def split_names(text: str) -> list[str]:
    """Return the names in a text, which commas separate, stripped and without empty ones."""
    names = [part.strip() for part in text.split(",")]
    return [name for name in names if name]


def _from_model(section: type[_SectionType], model: BaseModel) -> _SectionType:
    """Return a section with the values of its pydantic model."""
    values: dict[str, object] = {}
    for name, declaration in section.declared.items():
        value = getattr(model, name)
        # If no setting of an inner section was set, the value is the default: a section, no model.
        if declaration.is_section and not isinstance(value, Section):
            value = _from_model(type(declaration.default), value)
        values[name] = value
    return section.from_checked(values)
