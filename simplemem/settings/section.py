"""Declare settings, in groups of frozen values.

Pydantic checks the values that somebody sets. It is imported only then: importing it and building
its models was a third of the time of a short command, and most people set nothing. Dataclasses of
all groups would still cost a tenth.
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

    SecretSource: TypeAlias = SecretStr | dict[str, str] | None
    """A secret, or `{ env = NAME }` or `{ path = FILE }`, which say where it is."""
    Names: TypeAlias = tuple[str, ...]
    """A list of texts. An environment variable separates them with commas."""

VaultPolicy: TypeAlias = Literal["yes", "no", "narrower", "adds"] | tuple[str, ...]
"""What a vault's own file may say of a setting.

"yes": anything. "no": nothing. "narrower": only what is stricter than the user's own value.
"adds": more entries of a list, to which all files add. A tuple: only these values, which send no
note to another machine.
"""

_T = TypeVar("_T")
_SectionType = TypeVar("_SectionType", bound="Section")


class Declaration(NamedTuple):
    """A setting, or a section, as it is declared in a section."""

    default: Any
    meaning: str = ""
    vault: VaultPolicy = "yes"
    example: object = None  # for the sample file, where the default says too little
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

    A type checker sees the type of its default. `meaning` is for the help, `vault` says what a
    vault's own file may set. `eg` replaces the default in the sample file. `bounds` are those of
    pydantic: `ge`, `pattern`, ….
    """
    declaration: Any = Declaration(default, meaning, vault, eg, bounds)
    result: _T = declaration
    return result


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """A group of settings with values, which are frozen; attributes have them.

    A subclass declares each setting with its type, as a dataclass would. Sections with the same
    values are equal.
    """

    declared: ClassVar[Mapping[str, Declaration]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
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
        """Create settings with these values, and the defaults of the others.

        Raises pydantic's ValidationError for a value that is wrong, or an unknown name.
        """
        checked: dict[str, object] = {}
        if values:
            checked = vars(self.model_validate(values))
        self._fill(checked)

    @classmethod
    def from_checked(cls, values: Mapping[str, object]) -> Self:
        """Return settings with these values, which are not checked, and the defaults of the others.

        Unknown names are ignored.
        """
        section = object.__new__(cls)
        section._fill(values)
        return section

    def _fill(self, values: Mapping[str, object]) -> None:
        """Set all settings, to these values or their defaults. Only for a new object."""
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
        """Return settings with these values, after checking and converting them as pydantic does.

        The others have their defaults. Values may be sections or dictionaries. Raises pydantic's
        ValidationError for a value that is wrong, or an unknown name.
        """
        plain = {name: _as_plain(value) for name, value in values.items()}
        checked = _model_of(cls).model_validate(plain)
        return _from_model(cls, checked)

    def model_copy(self, *, update: Mapping[str, object] | None = None) -> Self:
        """Return a copy with the settings of `update` replaced. Their values are not checked."""
        return self.from_checked({**vars(self), **(update or {})})

    def model_dump(self, *, exclude: set[str] | frozenset[str] = frozenset()) -> dict[str, object]:
        """Return the settings by name, sections as dictionaries. Secrets are not masked.

        `exclude` are names that are left out.
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

    Those of secrets and lists have what pydantic does before it checks a value.
    """
    from pydantic import BeforeValidator, SecretStr

    secret = SecretStr | dict[str, str] | None
    aliases = {
        "SecretSource": Annotated[secret, BeforeValidator(_check_secret_source)],
        "Names": Annotated[tuple[str, ...], BeforeValidator(as_names)],
    }
    return get_type_hints(section, localns=aliases, include_extras=True)


def _check_secret_source(value: object) -> object:
    """Return the value if it is no table, or a table that says where a secret is.

    Raises ValueError for another table: it may contain the secret itself, and tables are shown.
    """
    if isinstance(value, dict) and set(value) not in ({"env"}, {"path"}):
        raise ValueError("neither env nor path")
    return value


def as_names(value: object) -> tuple[object, ...]:
    """Return a list as a tuple.

    A text is split at commas, or read as TOML if it begins with "[". Any other value becomes a
    tuple of one. Raises Invalid for a text that begins as a TOML list and is none: read as names
    separated by commas, `["a", "b` would hide nothing.
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
    """Return a section with the values of its model, which are checked."""
    values: dict[str, object] = {}
    for name, declaration in section.declared.items():
        value = getattr(model, name)
        # A section that nobody set is the default, which is no model.
        if declaration.is_section and not isinstance(value, Section):
            value = _from_model(type(declaration.default), value)
        values[name] = value
    return section.from_checked(values)
