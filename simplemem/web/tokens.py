"""Access tokens: who may do what, in which vaults and folders, and for how long.

`docs/network.md` describes them. Of a token, only the hash is stored: the token itself is shown
once. The owner's token is not in the file of tokens, and allows everything.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from simplemem.errors import Invalid, NotFound, SimplememError, Unavailable
from simplemem.models import AUTHOR_SEPARATOR, OWNER, is_called
from simplemem.note.dates import now
from simplemem.note.scopes import check_scope, folder_of
from simplemem.settings.files import read_bounded, user_config_path

log = logging.getLogger("simplemem.web")

Scope = Literal["read", "write", "propose", "admin"]
SCOPES: Final[tuple[str, ...]] = get_args(Scope)
_MAX_FILE_BYTES: Final = 1_000_000
_MAX_NAME: Final = 60
_MIN_OWNER_TOKEN: Final = 16
_TUPLE_FIELDS: Final = ("scopes", "vaults", "folders")


@dataclass(frozen=True, slots=True)
class Grant:
    """What the bearer of a token may do, and how the history names the bearer.

    Attributes:
        name: How the history names the bearer.
        scopes: The rights, of `read`, `write`, `propose` and `admin`. With `propose` and without
            `write`, each change becomes a proposal.
        vaults: The names of the vaults that it may use; () for all.
        folders: The folders of a vault that it sees; () for all.
        user: The only user whose facts and documents it sees; "" for all.
        calls: The most calls per minute; 0 for no limit.
        kilobytes: The most kilobytes per hour that it may send; 0 for no limit.
        expires: When it ends, in seconds since 1970; None for never.
        created: When it was created, in seconds since 1970; 0 if that is not known.
        sha256: The hash of the token; "" for a token that an authorization server issued.
    """

    name: str
    scopes: tuple[str, ...] = ("read",)
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    user: str = ""
    calls: int = 0
    kilobytes: int = 0
    expires: int | None = None
    created: int = 0
    sha256: str = ""

    @property
    def identity(self) -> str:
        """A text that no two bearers share. Their names may be equal."""
        return f"{self.name} {self.sha256}"

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope such as `write`."""
        return scope in self.scopes

    @property
    def only_proposes(self) -> bool:
        """Whether each change that the bearer makes becomes a proposal."""
        return self.may("propose") and not self.may("write")

    @property
    def is_limited(self) -> bool:
        """Whether it allows only a part of the server: some vaults, some folders, or one user.

        Limits on rights, calls and kilobytes do not count.
        """
        return bool(self.vaults or self.folders or self.user)

    @property
    def limits(self) -> tuple[str, ...]:
        """What it is limited to, and its quotas, each in a few words; () without any."""
        limits = []
        if self.vaults:
            limits.append(f"vaults {', '.join(self.vaults)}")
        if self.folders:
            limits.append(f"folders {', '.join(self.folders)}")
        if self.user:
            limits.append(f"user {self.user}")
        if self.calls:
            limits.append(f"{self.calls} calls per minute")
        if self.kilobytes:
            limits.append(f"{self.kilobytes} KB per hour")
        return tuple(limits)

    @property
    def has_expired(self) -> bool:
        """Whether its time has ended."""
        return self.expires is not None and self.expires <= time.time()

    @property
    def only(self) -> tuple[str, ...]:
        """The places of a vault that it sees, in the form of `access.only`; () for all.

        A grant for one user sees its folders and, in addition, the folders of that user.
        """
        if not self.user:
            return self.folders

        folder = folder_of(self.user)
        return (
            *self.folders,
            f"atoms/{folder}/*",
            f"documents/{folder}/*",
            f"documents/{folder}/files/*",
            f"profiles/{folder}.md",
        )

    def restrict_arguments(
        self, arguments: Mapping[str, Any] | None, user_arguments: Collection[str]
    ) -> Mapping[str, Any] | None:
        """Return the arguments of a tool, each of its `user_arguments` with the user of the token.

        `user_arguments` are the names of the arguments that name a user. A token for all users
        returns the arguments as they are. Raises Invalid if one of them names another user than
        that of the token.
        """
        if not self.user or not user_arguments:
            return arguments

        restricted = dict(arguments or {})
        for name in user_arguments:
            if restricted.get(name) not in (None, "", self.user):
                raise Invalid(
                    f"this token is limited to the user {self.user!r}",
                    hint=f"Omit {name}, or pass that user.",
                )
            restricted[name] = self.user
        return restricted


@dataclass(frozen=True, slots=True)
class IssuedGrant(Grant):
    """What the bearer of an authorization server's token may do.

    The file of tokens contains none of these. `subject` identifies the bearer at the `issuer`.
    """

    issuer: str = ""
    subject: str = ""

    @property
    def identity(self) -> str:
        """The issuer and the subject, both in full."""
        return json.dumps([self.issuer, self.subject])


def scopes_of(*, write: bool, propose: bool, admin: bool) -> tuple[str, ...]:
    """Return the scopes of a new token. Each token can read.

    Raises Invalid if it would change notes and only propose changes.
    """
    if write and propose:
        raise Invalid(
            "write and propose exclude each other",
            hint="With write, changes are made at once; with propose, a person accepts each.",
        )
    scopes = ["read"]
    if write:
        scopes.append("write")
    if propose:
        scopes.append("propose")
    if admin:
        scopes.append("admin")
    return tuple(scopes)


def limiting_folder(path: str) -> str:
    """Return a folder of a vault as the limit of a token, with a slash at its end.

    The folder need not exist. Raises Invalid if the path is empty, absolute, or leads out of the
    vault.
    """
    is_absolute = os.path.isabs(path) or path.startswith("/")
    parts = path.replace("\\", "/").split("/")
    if not path.strip("/") or is_absolute or ".." in parts:
        hint = "Pass the path of the folder inside the vault, such as projects/apollo."
        raise Invalid(f"{path[:60]!r} is not a folder in the vault", hint=hint)
    return f"{path.strip('/')}/"


def digest(token: str) -> str:
    """Return the SHA-256 hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Tokens:
    """The valid tokens: the owner's, and those of the file.

    Guards the grants of the file as it was last read. Each call reads it again if it has changed.
    """

    def __init__(self, folder: Path, owner_token: str = "") -> None:
        self.path = folder / "tokens.json"
        self._owner: Grant | None = None
        if owner_token:
            self._owner = Grant(OWNER, SCOPES, sha256=digest(owner_token))
        # The time and the size of the file when it was read; None if it must be read again.
        self._read_state: tuple[int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self._problem = ""  # why the file cannot be used; "" if it can, or does not exist

    def all(self) -> tuple[Grant, ...]:
        """Return the grants of the file in the order of their creation; () if there is no file.

        Raises Unavailable if the file cannot be read.
        """
        self._read_if_changed()
        if self._problem:
            hint = "Correct the file, or remove it and create new tokens."
            raise Unavailable(self._problem, hint=hint)
        return self._grants

    def _read_if_changed(self) -> None:
        """Read the file again if it has changed since it was read.

        If it cannot be read or is not valid, `_problem` says why from then on, and none of its
        tokens is accepted. Each new problem is logged once.
        """
        try:
            stat = self.path.stat()
            state = (stat.st_mtime_ns, stat.st_size)
            if state == self._read_state:
                return

            self._grants = ()
            self._read_state = state
            self._grants = _read_grants(self.path)
            self._problem = ""
        except FileNotFoundError:
            self._read_state = None
            self._grants = ()
            self._problem = ""
        except OSError as error:
            # The next call tries again: a change of permissions does not change time and size.
            self._read_state = None
            self._grants = ()
            self._set_problem(f"cannot read {self.path}: {error.strerror}")
        except SimplememError as error:
            self._set_problem(error.message)

    def _set_problem(self, problem: str) -> None:
        """Record why the file is not valid, and log that unless it is recorded already."""
        if problem != self._problem:
            log.error("%s", problem)
        self._problem = problem

    def grant(self, token: str) -> Grant | None:
        """Return what a token allows, or None if it is unknown or expired.

        Raises Unavailable if the file of tokens cannot be read, except for the owner's token.
        """
        return self.by_digest(digest(token))

    def by_digest(self, sha256: str) -> Grant | None:
        """Return what the token with a hash allows, or None if it is unknown or expired.

        All hashes are compared, in constant time. Raises Unavailable if the file of tokens cannot
        be read, except for the owner's token.
        """
        if self._owner and hmac.compare_digest(self._owner.sha256, sha256):
            return self._owner

        try:
            grants = self.all()
        except SimplememError:
            raise Unavailable(
                "the tokens of this server cannot be read", hint="The server's log names the file."
            ) from None

        matches = [grant for grant in grants if hmac.compare_digest(grant.sha256, sha256)]
        for grant in matches:
            if not grant.has_expired:
                return grant
        return None

    def is_valid(self, grant: Grant) -> bool:
        """Return whether a grant still applies: it has not expired, changed, or been revoked.

        False also if the file of tokens cannot be read. Of a grant that an authorization server
        issued, only the expiry is checked.
        """
        is_issued_elsewhere = not grant.sha256
        if is_issued_elsewhere:
            return not grant.has_expired
        with suppress(SimplememError):
            return self.by_digest(grant.sha256) == grant
        return False

    def new(self, grant: Grant) -> str:
        """Create a token with these permissions, store its hash, and return the token.

        `created` and `sha256` of the grant are ignored. Raises Invalid if the name, a scope or the
        user of the grant is not valid or the name is taken, and Unavailable if the file of tokens
        cannot be read or written.
        """
        _check_name(grant.name)
        grants = self.all()
        for existing in grants:
            _check_distinct(grant.name, existing.name)
        for scope in grant.scopes:
            if scope not in SCOPES:
                hint = "The scopes are read, write, propose and admin."
                raise Invalid(f"{scope!r} is not a scope", hint=hint)
        if grant.user:
            grant = replace(grant, user=check_scope(grant.user))

        token = _random_token()
        stored = replace(grant, created=int(now().timestamp()), sha256=digest(token))
        self._write((*grants, stored))
        return token

    def revoke(self, name: str) -> Grant:
        """Remove the grant with a name, and return it. A server notices at its next request.

        Raises NotFound if there is none, and Unavailable if the file cannot be read or written.
        """
        grants = self.all()
        remaining = [grant for grant in grants if grant.name != name]
        revoked = [grant for grant in grants if grant.name == name]
        if not revoked:
            names = [grant.name for grant in grants]
            raise NotFound(f"no token called {name[:60]!r}", candidates=names)

        self._write(remaining)
        return revoked[0]

    def _write(self, grants: Iterable[Grant]) -> None:
        """Replace the grants of the file. Raises Unavailable if it cannot be written."""
        rows = [asdict(grant) for grant in grants]
        write_private(self.path, json.dumps(rows, indent=1) + "\n")


def _random_token() -> str:
    """Return a new token, which nobody can guess."""
    return f"sm_{secrets.token_urlsafe(32)}"


def _check_name(name: str) -> None:
    """Raise Invalid unless a token may have this name.

    It has 1 to 60 printable characters, is not the owner's, and has no colon before a space.
    """
    if name.strip().casefold() == OWNER:
        hint = "The server creates the owner's token. Choose another name, such as laptop."
        raise Invalid(f"{OWNER!r} is reserved for the owner's own token", hint=hint)

    if not name.isprintable() or not 0 < len(name) <= _MAX_NAME:
        hint = f"Use 1 to {_MAX_NAME} characters, such as laptop."
        raise Invalid(f"{name[:_MAX_NAME]!r} is not a valid token name", hint=hint)

    if AUTHOR_SEPARATOR in name:
        raise Invalid(
            f"{name!r} is not a valid token name: it has a colon before a space",
            hint="The history writes a colon between a token and its client. Leave it out.",
        )


def _check_distinct(name: str, existing_name: str) -> None:
    """Raise Invalid if the history could not tell two names of tokens apart.

    It could not if they differ only in case or in a number at the end.
    """
    if name == existing_name:
        raise Invalid(
            f"a token called {existing_name!r} already exists",
            hint="Revoke it first, or choose another name.",
        )
    if is_called(existing_name, name) or is_called(name, existing_name):
        raise Invalid(
            f"the history could not tell {name!r} from the token {existing_name!r}",
            hint="Choose a name that differs in more than its case or a number at its end.",
        )


def _read_grants(path: Path) -> tuple[Grant, ...]:
    """Return the grants of a file of tokens, in its order.

    Raises Unavailable if any part of the file is not valid, because who may have access must not be
    guessed. Raises Invalid if it is no regular file or too large, and OSError if it cannot be read.
    """
    try:
        rows: list[dict[str, Any]] = json.loads(read_bounded(path, _MAX_FILE_BYTES))
        grants = []
        for row in rows:
            tuples = {field: tuple(row[field]) for field in _TUPLE_FIELDS}
            grants.append(Grant(**(row | tuples)))
        return tuple(grants)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        message = f"{path} is not a token file: only the owner's token is accepted"
        raise Unavailable(message) from None


def write_private(path: Path, text: str) -> None:
    """Write a file that no other user may read, completely or not at all.

    Creates its folder if necessary. Raises Unavailable if the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def owners_token(env: Mapping[str, str]) -> tuple[str, Path | None]:
    """Return the owner's token, and the file that contains it; None if a variable contains it.

    The token is that of SIMPLEMEM_TOKEN, else that of the file SIMPLEMEM_TOKEN_FILE, else that of
    the file in the folder of tokens, which is created at the first start. Raises Invalid if the
    token is too weak or the named file is missing, Unavailable if the file cannot be read or
    written.
    """
    token = env.get("SIMPLEMEM_TOKEN", "").strip()
    if token:
        _check_is_strong(token, "SIMPLEMEM_TOKEN")
        return token, None

    named_file = env.get("SIMPLEMEM_TOKEN_FILE")
    path = token_folder(env) / "token"
    if named_file:
        path = Path(named_file).expanduser()

    try:
        token = read_bounded(path, 4096).decode().strip()
    except FileNotFoundError:
        if named_file:
            hint = (
                "Create the file, or unset SIMPLEMEM_TOKEN_FILE: the server then creates a token."
            )
            message = f"the file {path} (SIMPLEMEM_TOKEN_FILE) does not exist"
            raise Invalid(message, hint=hint) from None
        token = _random_token()
        write_private(path, token + "\n")
    except (OSError, ValueError) as error:
        raise Unavailable(f"cannot read the token in {path} ({type(error).__name__})") from None

    _check_is_strong(token, str(path))
    return token, path


def _check_is_strong(token: str, source: str) -> None:
    """Raise Invalid if a token has fewer than 16 characters, or cannot be sent in a header.

    `source` names the variable or the file with the token, for the message.
    """
    is_sendable = token.isascii() and token.isprintable() and " " not in token
    if len(token) < _MIN_OWNER_TOKEN or not is_sendable:
        hint = f"Use {_MIN_OWNER_TOKEN} or more random letters and digits."
        raise Invalid(f"the token in {source} is too weak", hint=hint)


def token_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the token files: that of the user's own settings, never in a vault."""
    return user_config_path(env).parent
