"""Tokens of an authorization server: who issued one, for whom, until when and for what is checked (OAuth 2.1, RFC 9728)."""

from __future__ import annotations

import base64
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from processes import run_program
from waiting import eventually

from tests.web.conftest import Served, Session

ISSUER, AUDIENCE = "https://login.example.org", "https://memory.example.org/mcp"
RSA, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())
KEYS = [
    {**RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "rsa", "use": "sig"},
    {**ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "kid": "ec", "use": "sig"},
]
SOUND = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "scope": "read"}
PUBLIC = RSA.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


@contextmanager
def login(*, answers: bool = True) -> Iterator[tuple[str, list[str]]]:
    """An authorization server's keys, and who asked for them."""
    key_requests = list[str]()

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            key_requests.append(self.path)
            self.send_response(200 if answers else 503)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": KEYS}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keys) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/jwks.json", key_requests
        server.shutdown()


def settings(keys: str, **more: str) -> dict[str, str]:
    variables = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "KEYS": keys, **more}
    return {f"SIMPLEMEM_HTTP_OAUTH_{key}": value for key, value in variables.items()}


def token(
    key: Any = RSA,
    kid: str = "rsa",
    algorithm: str = "RS256",
    header: Mapping[str, str] | None = None,
    **claims: Any,
) -> str:
    all_claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": time.time() + 600,
        "scope": "read",
    }
    all_claims = {
        name: value for name, value in {**all_claims, **claims}.items() if value is not None
    }
    return jwt.encode(all_claims, key, algorithm, {"kid": kid, **(header or {})})


def test_a_sound_token_is_taken_for_what_it_says(serve: Callable[..., Served]) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys))
        assert server.api("GET", "/memories", token=token()).status == 200
        assert (
            server.api(
                "GET", "/memories", token=token(EC, "ec", "ES256", aud=["other", AUDIENCE])
            ).status
            == 200
        )
        note = {"content": "of the writer"}
        assert server.api("PUT", "/memories/a", note, token=token()).status == 403
        assert (
            server.api("PUT", "/memories/a", note, token=token(scope="read simplemem:write")).status
            == 201
        )
        assert (
            server.api(
                "PUT", "/memories/a", note, token=token(scope=None, scp=["read", "mail:write"])
            ).status
            == 403
        )
        assert server.api("GET", "/memories", token=token(scope="mail:read")).status == 403
        assert server.api("GET", "/history/a").data["versions"][0]["who"] == "ada (oauth)"
        assert server.api("GET", "/memories").status == 200  # the owner's own token is one still


def test_no_other_token_is_taken_and_strangers_cause_few_questions(
    serve: Callable[..., Served],
) -> None:
    secret = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": time.time() + 600,
        "scope": "read",
    }
    unsound = {
        "issuer": token(iss="https://evil.example"),
        "audience": token(aud="https://other.example"),
        "no audience": token(aud=None),
        "expired": token(exp=time.time() - 60),
        "for ever": token(exp=None),
        "not yet": token(nbf=time.time() + 600),
        "nobody": token(sub=None),
        "another key": token(OTHER),
        "an unknown key": token(OTHER, "other"),
        "the kid of another": token(EC, "rsa", "ES256"),
        "unsigned": jwt.encode(secret, None, "none", {"kid": "rsa"}),
        "signed with what is public": _by_hand({"alg": "HS256", "kid": "rsa"}, secret),
        "no token": "a.b.c",
        "long": token(scope="x" * 20_000),
    }
    with login() as (keys, key_requests):
        server = serve(env=settings(keys))
        found = {
            name: server.api("GET", "/memories", token=each).status
            for name, each in unsound.items()
        }
        assert found == dict.fromkeys(unsound, 401)
        for number in range(5):
            server.api("GET", "/memories", token=token(OTHER, f"other {number}"))
        assert len(key_requests) == 1
        assert server.api("GET", "/memories", token=token()).status == 200


def test_a_claim_binds_a_token_to_one_user(serve: Callable[..., Served]) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys, USER_CLAIM="email"))
        for user in ("a?b@example.org", "a-b@example.org"):
            memory = {"content": f"My name is {user}.", "user_id": user}
            bearer = token(email=user, scope="read write")
            assert server.api("POST", "/memory", memory, token=bearer).status == 202
            assert (
                server.api("POST", "/memory", memory | {"user_id": "x"}, token=bearer).status == 400
            )
            listed = server.api("GET", "/memories", token=bearer).data
            found = server.api("POST", "/memory/search", {"query": "name"}, token=bearer)
            assert listed["total"] == 1 and user in found.body.decode()
        assert server.api("GET", "/memories", token=token()).status == 401
        assert server.api("GET", "/memories", token=token(email="")).status == 401
        assert eventually(lambda: server.api("GET", "/memories").data["total"] == 2)


def test_an_email_address_that_is_not_verified_speaks_for_nobody(
    serve: Callable[..., Served],
) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys, USER_CLAIM="email"))

        def status(**claims: Any) -> int:
            return server.api(
                "GET", "/memories", token=token(email="ada@example.org", **claims)
            ).status

        assert status(email_verified=True) == 200
        assert [
            status(email_verified=verified) for verified in (False, "false", "true", 0, [])
        ] == [401] * 5
        assert server.api("GET", "/memories", token=token(email=["ada@example.org"])).status == 401


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({}, {"nonce": "n-0S6_WzA2Mj"}),
        ({}, {"at_hash": "MTIzNDU2Nzg5MDEyMzQ1Ng"}),
        ({}, {"scope": None, "email": "ada@example.org", "auth_time": 1}),
        ({}, {"typ": "ID"}),
        ({}, {"token_use": "id"}),
        ({}, {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}),
        ({"typ": "id+jwt"}, {}),
        ({"typ": "secevent+jwt"}, {}),
        ({"typ": "dpop+jwt"}, {}),
    ],
    ids=str,
)
def test_an_id_token_is_no_access_token(
    serve: Callable[..., Served], header: dict[str, str], claims: dict[str, Any]
) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys))
        assert server.api("GET", "/memories", token=token(header=header, **claims)).status == 401
        assert (
            server.api(
                "GET", "/memories", token=token(header={"typ": "at+jwt"}, auth_time=1)
            ).status
            == 200
        )
        assert (
            server.api("GET", "/memories", token=token(typ="Bearer", nonce="n-0S6_WzA2Mj")).status
            == 200
        )


def test_a_subject_cannot_pass_for_a_token_in_the_history(serve: Callable[..., Served]) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys))
        bearer = token(sub="ida: claude-ai", scope="read write")
        assert server.api("PUT", "/memories/a", {"content": "x"}, token=bearer).status == 201
        [version] = server.api("GET", "/history").data["versions"]
        assert ": " not in version["who"] and version["who"].endswith(" (oauth)")


def test_subjects_that_begin_alike_share_no_session_no_answer_and_no_name(
    serve: Callable[..., Served],
) -> None:
    one, other = ("a" * 80 + end for end in ("1", "2"))
    with login() as (keys, _):
        server = serve(env=settings(keys))
        session = Session(server, token=token(sub=one, scope="read write"))
        assert session.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 200
        session.token = token(sub=other, scope="read write")
        assert session.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404
        for number, subject in enumerate((one, other)):
            bearer = token(sub=subject, scope="read write")
            assert (
                server.api("PUT", f"/memories/{number}", {"content": "x"}, token=bearer).status
                == 201
            )
        names = {version["who"] for version in server.api("GET", "/history").data["versions"]}
        assert len(names) == 2 and all(name.endswith(" (oauth)") for name in names)


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": 5},
        {"scope": {"read": True}},
        {"scope": ["read", 5]},
        {"scope": True},
        {"scp": 5, "scope": None},
        {"exp": float("inf")},
        {"exp": "soon"},
        {"nbf": []},
        {"iss": 5},
        {"iss": [ISSUER]},
        {"sub": 5},
        {"sub": ["ada"]},
        {"aud": 5},
        {"aud": {}},
    ],
    ids=str,
)
def test_a_claim_of_another_type_is_refused_and_breaks_nothing(
    serve: Callable[..., Served], claims: dict[str, Any]
) -> None:
    with login() as (keys, _):
        server = serve(env=settings(keys))
        signed = _signed({**SOUND, "exp": time.time() + 600, **claims})
        refused = server.api("GET", "/memories", token=signed)
        assert refused.status == 401, refused
        assert refused.problem["code"] == "unauthorized"


def test_whoever_has_no_token_is_told_whom_to_ask(serve: Callable[..., Served]) -> None:
    with login() as (keys, key_requests):
        server = serve(env=settings(keys))
        refused = server.ask("POST", "/mcp", {}, token=None)
        assert refused.status == 401
        where = "https://memory.example.org/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
        metadata = server.ask("GET", "/.well-known/oauth-protected-resource/mcp", token=None)
        assert metadata.data["resource"] == AUDIENCE and metadata.data["authorization_servers"] == [
            f"{ISSUER}/"
        ]
        assert metadata.data["scopes_supported"] == ["read", "write", "propose", "admin"]
        assert not key_requests


def test_keys_that_cannot_be_had_let_nobody_in_and_keep_nobody_out(
    serve: Callable[..., Served],
) -> None:
    with login(answers=False) as (keys, key_requests):
        server = serve(env=settings(keys))
        assert {server.api("GET", "/memories", token=token()).status for _ in range(4)} == {401}
        assert len(key_requests) == 1 and server.api("GET", "/memories").status == 200


@pytest.mark.parametrize("missing", ["AUDIENCE", "KEYS", "ISSUER"])
def test_half_of_the_settings_start_no_server(tmp_path: Path, missing: str) -> None:
    env = {**os.environ, **settings("https://login.example.org/jwks.json", **{missing: ""})}
    ended = run_program("serve", "--vault", str(tmp_path), "--http", "127.0.0.1:0", env=env)
    assert ended.returncode == 1 and f"http.oauth_{missing.lower()} must be set too" in ended.stderr


def _by_hand(head: dict[str, Any], claims: dict[str, Any]) -> str:
    """A token signed with the public key, as if that were a shared secret."""
    signed_part = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in (head, claims)
    )
    signed = base64.urlsafe_b64encode(hmac.digest(PUBLIC, signed_part.encode(), "sha256")).decode()
    return f"{signed_part}.{signed.rstrip('=')}"


def _signed(claims: dict[str, Any]) -> str:
    """A token with claims that a well-behaved library would not sign."""
    return jwt.api_jws.encode(
        json.dumps(claims).encode(), RSA, "RS256", {"kid": "rsa", "typ": "JWT"}
    )
