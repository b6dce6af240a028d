"""Tokens: who may do what, in which vaults and folders, for how long. What is kept of one is its hash: the token itself is
shown once. The first token is the owner's, who may do everything."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from simplemem.errors import Invalid, NotFound, SimplememError, Unavailable
from simplemem.models import AUTHOR_SEPARATOR, is_called
from simplemem.note.dates import now
from simplemem.note.scopes import check_scope, folder_of
from simplemem.settings.files import read_bounded, user_config_path

log = logging.getLogger("simplemem.web")

Scope = Literal["read", "write", "admin"]
SCOPES: Final[tuple[str, ...]] = get_args(Scope)
_MOST_BYTES = 1_000_000  # of the file of tokens
_OWNER: Final = "owner"


@dataclass(frozen=True, slots=True)
class Grant:
    """What the bearer of a token may do, and the name that the history knows them by."""

    name: str
    scopes: tuple[str, ...] = ("read",)
    vaults: tuple[str, ...] = ()  # none: all of them
    folders: tuple[str, ...] = ()  # none: the whole vault
    user: str = ""  # the one scope of statements and documents it speaks for
    calls: int = 0  # a minute; 0: no limit
    kilobytes: int = 0  # written in an hour
    expires: int | None = None  # seconds since 1970
    created: int = 0
    sha256: str = ""

    @property
    def identity(self) -> str:
        """What no two bearers share, as two names may look alike."""
        return f"{self.name} {self.sha256}"

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    @property
    def is_limited(self) -> bool:
        """Whether it is for a part of what is served: some vaults, some folders, or one user."""
        return bool(self.vaults or self.folders or self.user)

    @property
    def only(self) -> tuple[str, ...]:
        """The places of a vault that this grant sees, as `access.only` has them; none: all."""
        if not self.user:
            return self.folders
        where = folder_of(self.user)
        own = (
            f"atoms/{where}/*",
            f"documents/{where}/*",
            f"documents/{where}/files/*",
            f"profiles/{where}.md",
        )
        return (*self.folders, *own)

    def restrict_arguments(
        self, arguments: Mapping[str, Any] | None, takes: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The arguments of a tool with the scope this grant speaks for; Invalid when another was asked for."""
        named = [each for each in ("user_id", "container_tag") if self.user and each in takes]
        for each in named:
            if (arguments or {}).get(each) not in (None, "", self.user):
                raise Invalid(
                    f"this token is limited to the user {self.user!r}",
                    hint=f"Omit {each}, or pass that user.",
                )
        return {**(arguments or {}), **dict.fromkeys(named, self.user)} if named else arguments


@dataclass(frozen=True, slots=True)
class IssuedGrant(Grant):
    """What the bearer of an authorization server's token may do. It is never kept in the file of tokens."""

    issuer: str = ""
    subject: str = ""

    @property
    def identity(self) -> str:
        """The issuer and the subject, both in full."""
        return json.dumps([self.issuer, self.subject])


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Tokens:
    """The tokens there are: the owner's, and those of the file, which is looked at again whenever it has changed."""

    def __init__(self, folder: Path, owner: str = "") -> None:
        self.path = folder / "tokens.json"
        self._owner = Grant(_OWNER, SCOPES, sha256=digest(owner)) if owner else None
        self._seen: tuple[int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self._problem = ""  # why the file as it was seen cannot be read

    def all(self) -> tuple[Grant, ...]:
        """Return the grants of the file, in the order they were made. Unavailable if it cannot be read."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._seen, self._grants, self._problem = None, (), ""
            return ()
        if self._seen != (stat.st_mtime_ns, stat.st_size):
            self._seen = (stat.st_mtime_ns, stat.st_size)
            self._read_again()
        if self._problem:
            raise Unavailable(
                self._problem, hint="Correct the file, or remove it and create new tokens."
            )
        return self._grants

    def _read_again(self) -> None:
        """Read the file. A broken one is reported once, and lets nobody in until it changes."""
        try:
            self._grants = tuple(_read(self.path))
            self._problem = ""
        except SimplememError as error:
            self._grants = ()
            self._problem = error.message
            log.error("%s", error.message)

    def grant(self, token: str) -> Grant | None:
        """Whose token this is, unless it has expired."""
        return self.by_digest(digest(token))

    def by_digest(self, sent: str) -> Grant | None:
        """The same by the hash of a token. Each is compared, in constant time.

        The owner's token needs no file: a broken file of tokens keeps out all others, with Unavailable.
        """
        if self._owner and hmac.compare_digest(self._owner.sha256, sent):
            return self._owner
        try:
            grants = self.all()
        except SimplememError:
            raise Unavailable(
                "the tokens of this server cannot be read", hint="The server's log names the file."
            ) from None
        found = [grant for grant in grants if hmac.compare_digest(grant.sha256, sent)]
        return next(
            (grant for grant in found if grant.expires is None or grant.expires > time.time()), None
        )

    def is_valid(self, grant: Grant) -> bool:
        """Whether what was granted still is."""
        if not grant.sha256:  # by an authorization server
            return grant.expires is None or grant.expires > time.time()
        with suppress(SimplememError):
            return self.by_digest(grant.sha256) == grant
        return False

    def new(self, grant: Grant) -> str:
        """Keep a grant; the token for it, which is told only now."""
        if grant.name.strip().casefold() == _OWNER:
            hint = "The server creates the owner's token. Choose another name, such as laptop."
            raise Invalid(f"{_OWNER!r} is reserved for the owner's own token", hint=hint)
        if not grant.name.isprintable() or not 0 < len(grant.name) <= 60:
            raise Invalid(
                f"{grant.name[:60]!r} is not a valid token name",
                hint="Use 1 to 60 characters, such as laptop.",
            )
        if AUTHOR_SEPARATOR in grant.name:
            raise Invalid(
                f"{grant.name!r} is not a valid token name: it has a colon before a space",
                hint="The history writes a colon between a token and its client. Leave it out.",
            )
        for name in [each.name for each in self.all()]:
            if name == grant.name:
                raise Invalid(
                    f"a token called {name!r} already exists",
                    hint="Revoke it first, or choose another name.",
                )
            if is_called(name, grant.name) or is_called(grant.name, name):
                raise Invalid(
                    f"the history could not tell {grant.name!r} from the token {name!r}",
                    hint="Choose a name that differs in more than its case or a number at its end.",
                )
        if wrong := [each for each in grant.scopes if each not in SCOPES]:
            raise Invalid(
                f"{wrong[0]!r} is not a scope", hint="The scopes are read, write and admin."
            )
        grant = replace(grant, user=grant.user and check_scope(grant.user))
        token = f"sm_{secrets.token_urlsafe(32)}"
        self._write(
            (*self.all(), replace(grant, created=int(now().timestamp()), sha256=digest(token)))
        )
        return token

    def revoke(self, name: str) -> Grant:
        """Take a grant away. A server knows at its next request."""
        kept = [each for each in self.all() if each.name != name]
        if len(kept) == len(self.all()):
            raise NotFound(
                f"no token called {name[:60]!r}", candidates=[each.name for each in self.all()]
            )
        gone = next(each for each in self.all() if each.name == name)
        self._write(kept)
        return gone

    def _write(self, grants: Any) -> None:
        write_private(self.path, json.dumps([asdict(each) for each in grants], indent=1) + "\n")


def _read(path: Path) -> list[Grant]:
    try:
        rows: list[dict[str, Any]] = json.loads(read_bounded(path, _MOST_BYTES))
        lists = ("scopes", "vaults", "folders")
        return [Grant(**row | {key: tuple(row[key]) for key in lists}) for row in rows]
    except (ValueError, TypeError, AttributeError):
        # Whoever may come in is not guessed at.
        raise Unavailable(
            f"{path} is not a token file: only the owner's token is accepted"
        ) from None


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else may read, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def owners_token(env: Mapping[str, str]) -> tuple[str, Path | None]:
    """The owner's token: what the environment gives, or that of a file made at the first start. And where that is."""
    if given := env.get("SIMPLEMEM_TOKEN", "").strip():
        return _strong(given, "SIMPLEMEM_TOKEN"), None
    named = env.get("SIMPLEMEM_TOKEN_FILE")
    path = Path(named).expanduser() if named else token_folder(env) / "token"
    try:
        return _strong(read_bounded(path, 4096).decode().strip(), str(path)), path
    except FileNotFoundError:
        if named:
            hint = (
                "Create the file, or unset SIMPLEMEM_TOKEN_FILE: the server then creates a token."
            )
            raise Invalid(
                f"the file {path} (SIMPLEMEM_TOKEN_FILE) does not exist", hint=hint
            ) from None
    except (OSError, ValueError) as error:
        raise Unavailable(f"cannot read the token in {path} ({type(error).__name__})") from None
    write_private(path, (token := f"sm_{secrets.token_urlsafe(32)}") + "\n")
    return token, path


def _strong(token: str, where: str) -> str:
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise Invalid(
            f"the token in {where} is too weak", hint="Use 16 or more random letters and digits."
        )
    return token


def token_folder(env: Mapping[str, str]) -> Path:
    """Where tokens lie: beside the user's own settings, never in a vault."""
    return user_config_path(env).parent
