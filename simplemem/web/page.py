"""The page: search as one types, notes with what leads to them, what agents wrote today with undo beside each. Made here,
in HTML that works without its script; what a note says is escaped, and nothing is fetched from elsewhere."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid, SimplememError
from simplemem.note.words import format_count
from simplemem.web.guard import Guesses
from simplemem.web.problems import STATUS, Refused
from simplemem.web.render import link_of
from simplemem.web.rendering import Renderer
from simplemem.web.site import Served, Site, View
from simplemem.web.tokens import Grant, Tokens, digest
from simplemem.web.ways import granted, route, view_for

if TYPE_CHECKING:
    from simplemem.models import Backlink, Finding, Found, HistoryEntry, Memory
    from simplemem.store import EnhancedStore

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HOURS: Final = 12  # that a browser stays signed in
_MOST_SIGNED_IN: Final = 1000
_MAX_SIGNED_IN_OF_TOKEN: Final = 20
_LATEST, _HITS, _MOST_REVIEWED = 20, 20, 100
_MAX_DIFF_LINES: Final = 400
_MAX_DIFF_LINE: Final = 2000  # characters
_KINDS: Final = {"page.css": "text/css", "page.js": "text/javascript"}
_HEADING: Final = '<h1 class="skip">Notes</h1>'
_LINK: Final = re.compile(r"\[\[([^\[\]|#]{1,400}+)[^\[\]]*+\]\]")  # never tries a text twice
Handler = Callable[[Request, View, Grant], Awaitable[Response]]
e = escape


class SignedIn:
    """Who is signed in at a browser: by a number of ours, never by the token itself.

    A browser sends the cookies of a machine to all of its ports. So each port has a cookie name of its own, or else two
    servers would sign each other's users out. Over TLS the prefix `__Host-` also keeps other hosts and plain HTTP from
    setting the cookie.
    """

    def __init__(self, tokens: Tokens, port: int, *, is_secure: bool) -> None:
        self._tokens = tokens
        self._is_secure = is_secure
        self.cookie_name = f"__Host-simplemem-{port}" if is_secure else f"simplemem-{port}"
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def sign_in(self, token: str) -> str | None:
        """A session for whoever has this token."""
        if self._tokens.grant(token) is None:
            return None
        session = secrets.token_urlsafe(32)
        self._end_oldest_of(digest(token))
        self._known[session] = digest(token), time.monotonic() + _HOURS * 3600
        if len(self._known) > _MOST_SIGNED_IN:
            self._known.popitem(last=False)
        return session

    def _end_oldest_of(self, sha256: str) -> None:
        """Make room for one more session of a token, so that no token can end the sessions of others."""
        own = [session for session, (owner, _) in self._known.items() if owner == sha256]
        excess = max(0, len(own) + 1 - _MAX_SIGNED_IN_OF_TOKEN)
        for session in own[:excess]:
            del self._known[session]

    def set_cookie(self, answer: Response, session: str) -> None:
        """Have the browser keep a session, which no script and no page elsewhere gets."""
        seconds = _HOURS * 3600
        secure = self._is_secure
        answer.set_cookie(
            self.cookie_name, session, seconds, httponly=True, samesite="strict", secure=secure
        )

    def delete_cookie(self, answer: Response) -> None:
        """Have the browser forget its session. Without `Secure` it would not touch a cookie with the prefix."""
        answer.delete_cookie(
            self.cookie_name, httponly=True, samesite="strict", secure=self._is_secure
        )

    def sign_out(self, session: str) -> None:
        self._known.pop(session, None)

    def grant(self, session: str) -> Grant | None:
        """Whose session it is, as long as their token is good."""
        sha256, ends = self._known.get(session, ("", 0.0))
        return self._tokens.by_digest(sha256) if ends > time.monotonic() else None


def routes(
    site: Site, served: Served, signed_in: SignedIn, guesses: Guesses, renderer: Renderer
) -> list[Route]:
    """The page of one vault."""

    def at(path: str, handler: Handler, method: str = "GET", *, right: Any = "read") -> Route:
        async def handle(request: Request) -> Response:
            if request.scope.get("grant") is None:
                return _sign_in_page(served, str(request.url.path))
            try:
                grant = granted(request.scope, right)
                return await handler(request, await view_for(request, site, served, grant), grant)
            except SimplememError as error:
                return _failed(served, request.scope.get("grant"), error)

        return route(served.prefix + path, handle, [method])

    async def sign_in(request: Request) -> Response:
        said = await _form(request)
        if (session := signed_in.sign_in(said.get("token", "").strip())) is None:
            guesses.count(request.client.host if request.client else "")
            return _sign_in_page(
                served,
                _inside(served, said.get("to")),
                "This token is unknown, revoked or expired.",
            )
        answer = RedirectResponse(_inside(served, said.get("to")), 303)
        signed_in.set_cookie(answer, session)
        return answer

    async def sign_out(request: Request) -> Response:
        signed_in.sign_out(request.cookies.get(signed_in.cookie_name, ""))
        answer = RedirectResponse(served.prefix + "/", 303)
        signed_in.delete_cookie(answer)
        return answer

    return [
        at("/", _home),
        at("/search", _results),
        at("/latest", _latest_part),
        at("/note/{name:path}", partial(_note, renderer)),
        at("/history/{name:path}", _past),
        at("/today", _today),
        at("/tags", _tags),
        at("/tags/{tag:path}", _tagged),
        at("/graph", _graph),
        at("/doctor", _doctor, right="admin"),
        at("/undo", _undo, "POST", right="write"),
        route(f"{served.prefix}/login", sign_in, ["POST"]),
        route(f"{served.prefix}/logout", sign_out, ["POST"]),
        route(f"{served.prefix}/static/{{file}}", _static, ["GET"]),
    ]


# --- pages


async def _home(request: Request, view: View, grant: Grant) -> Response:
    """Search; and without a question what agents wrote today, and what changed last."""
    if asked := request.query_params.get("q", "").strip():
        return _page(
            view,
            grant,
            asked,
            f'{_HEADING}<section id="results">{await _found(view, asked)}</section>',
            asked=asked,
        )
    written = await _written_today(view)
    said = f'<a href="{view.served.prefix}/today">{format_count(len(written), "change")} by agents today</a>'
    latest = f'<p class="lead">{said}</p><h2>Recent changes</h2>{await _latest(view)}'
    body = f'{_HEADING}<section id="results">{latest}</section>'
    return _page(view, grant, view.served.root.name, body)


async def _results(request: Request, view: View, _grant: Grant) -> Response:
    """What is found while somebody types."""
    asked = request.query_params.get("q", "").strip()
    return _part(
        await _found(view, asked) if asked else f"<h2>Recent changes</h2>{await _latest(view)}"
    )


async def _latest_part(_request: Request, view: View, _grant: Grant) -> Response:
    return _part(await _latest(view))


async def _note(renderer: Renderer, request: Request, view: View, grant: Grant) -> Response:
    """A note with all that leads to it and from it."""
    name, prefix = request.path_params["name"], view.served.prefix

    def read(store: EnhancedStore) -> tuple[Memory, Sequence[Backlink], Sequence[HistoryEntry]]:
        found = store.read(name)
        return found, store.backlinks(found.name, limit=20), store.history(found.name, limit=5)

    found, leading, past = await _ask(view, read)
    text = await renderer.render(_body(found), prefix)
    facts = {
        key: each
        for key, each in found.frontmatter.items()
        if key not in ("title", "tags", "description")
    }
    rows = "".join(
        f"<dt>{e(str(key))}</dt><dd>{_value(prefix, each)}</dd>" for key, each in facts.items()
    )
    there = [each for each in found.links if each.resolved]
    parts = [
        f'<p class="place">{e(found.path)}</p><h1>{e(found.title)}</h1>',
        f'<p class="description">{e(found.description)}</p>' if found.description else "",
        _tag_list(prefix, found.tags),
        f'<p class="problem">{e(found.problem)}</p>' if found.problem else "",
        f'<div class="text">{text}</div>',
    ]
    aside = [
        _box("Backlinks", [_led(prefix, each) for each in leading if each.kind == "link"]),
        _box(
            "Links",
            [_to(prefix, each.target) for each in {each.target: each for each in there}.values()],
        ),
        _box(
            "Related notes", [_led(prefix, each) for each in leading if each.kind == "semantic"][:6]
        ),
        f"<section><h2>Properties</h2><dl>{rows}</dl></section>" if rows else "",
        _box("History", [_version(each) for each in past])
        + f'<p><a href="{prefix}/history/{quote(found.name)}">Full history with changes</a></p>',
    ]
    return _page(
        view,
        grant,
        found.title,
        f"<article>{''.join(parts)}</article><aside>{''.join(aside)}</aside>",
        "note",
    )


async def _past(request: Request, view: View, grant: Grant) -> Response:
    """The history of a note, with what each change did."""
    name = request.path_params["name"]
    entries = await _ask(view, lambda store: store.history(name, limit=50, diff=True))
    title = f'<h1>History of <a href="{link_of(view.served.prefix, name)}">{e(name)}</a></h1>'
    return _page(view, grant, f"History of {name}", title + _changes(view, grant, entries))


async def _today(request: Request, view: View, grant: Grant) -> Response:
    """What agents wrote today, with undo beside each."""
    entries = await _written_today(view, diff=True)
    undone = request.query_params.get("undone", "")
    said = f'<p class="done" role="status">Done: {e(undone)}.</p>' if undone else ""
    head = f"<h1>Changes by agents today</h1>{said}"
    return _page(
        view, grant, "Today", head + (_changes(view, grant, entries) or "<p>No changes yet.</p>")
    )


async def _written_today(view: View, *, diff: bool = False) -> list[HistoryEntry]:
    """What tools of agents changed today."""
    found = await _ask(
        view, lambda store: store.history(since="today", limit=_MOST_REVIEWED, diff=diff)
    )
    return [each for each in found if "_" in each.tool]


async def _undo(request: Request, view: View, grant: Grant) -> Response:
    version = (await _form(request)).get("version", "")
    if not re.fullmatch(r"v\d{1,12}", version):
        raise Invalid(
            f"{version[:20]!r} is not a version",
            hint="Versions look like v12. The history lists them.",
        )
    work = view.door.run(
        lambda: view.door.store().undo(version, who=grant.name, tool="page"), writes=True
    )
    done = await work
    return RedirectResponse(f"{view.served.prefix}/today?{urlencode({'undone': done.what})}", 303)


async def _tags(_request: Request, view: View, grant: Grant) -> Response:
    counts = await _ask(view, lambda store: store.tags())
    prefix = view.served.prefix
    cloud = "".join(
        f'<li><a class="tag" href="{prefix}/tags/{quote(tag)}">#{e(tag)}</a> <small>{count}</small></li>'
        for tag, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )
    return _page(
        view,
        grant,
        "Tags",
        f'<h1>Tags</h1><ul class="cloud">{cloud}</ul>' if cloud else "<p>No tags.</p>",
    )


async def _tagged(request: Request, view: View, grant: Grant) -> Response:
    from simplemem.models import Filter

    tag = request.path_params["tag"]
    page = await _ask(view, lambda store: store.list(filter=Filter(tags={tag: ""}), limit=200))
    rows = "".join(_row(view.served.prefix, each) for each in page.items)
    return _page(view, grant, f"#{tag}", f'<h1>#{e(tag)}</h1><ol class="rows">{rows}</ol>')


async def _graph(_request: Request, view: View, _grant: Grant) -> Response:
    """The picture of the vault, which brings its own policy."""

    def drawn(store: EnhancedStore) -> str:
        from simplemem.features.graph.graph import graph_of
        from simplemem.features.picture import drawing_of_store, shorten_drawing

        return shorten_drawing(
            drawing_of_store(store, graph_of(store).read(), notes="all", texts=False), "html"
        )[0]

    return HTMLResponse(
        await _ask(view, drawn), headers={"Content-Security-Policy": "frame-ancestors 'none'"}
    )


async def _doctor(_request: Request, view: View, grant: Grant) -> Response:
    found: Sequence[Finding] = await _ask(view, lambda store: store.doctor())
    rows = "".join(
        f'<li class="{each.level}"><b>{e(each.path)}</b> {e(each.message)} <small>{e(each.hint)}</small></li>'
        for each in found
    )
    return _page(
        view,
        grant,
        "Doctor",
        f'<h1>Problems</h1><ul class="rows">{rows}</ul>' if rows else "<p>No problems found.</p>",
    )


async def _static(request: Request) -> Response:
    file = request.path_params["file"]
    if file not in _KINDS:
        raise Refused(404, "nothing is served at this path", code="not_found")
    return Response(
        _file(file), media_type=_KINDS[file], headers={"Cache-Control": "public, max-age=600"}
    )


@cache
def _file(name: str) -> bytes:
    return files("simplemem.web").joinpath("static", name).read_bytes()


# --- parts


async def _ask(view: View, question: Callable[[EnhancedStore], Any]) -> Any:
    return await view.door.run(lambda: question(view.door.store()))


async def _found(view: View, asked: str) -> str:
    found: Found = await _ask(view, lambda store: store.search(asked, limit=_HITS, explain=True))
    said = [f"No note contains: {e(', '.join(found.absent))}." if found.absent else ""]
    if found.not_searched:
        said[0] += (
            f" Not looked at: {format_count(found.not_searched, 'note')} excluded from search."
        )
    said += [e(found.notice) if found.hits else ""]
    if not found.hits:
        said.append("Nothing found." if found.index.is_ready else "No answer yet.")
    if not found.index.is_ready:
        said.append(e(found.index.reason))
    said.append(e(found.degraded))
    head = "".join(f'<p class="said">{each}</p>' for each in said if each)
    return (
        head
        + f'<ol class="hits">{"".join(_hit(view.served.prefix, each) for each in found.hits)}</ol>'
    )


def _hit(prefix: str, hit: Any) -> str:
    why = "".join(
        f"<dt>{e(str(key))}</dt><dd>{e(_shown(each))}</dd>" for key, each in (hit.why or {}).items()
    )
    heading = f" › {e(hit.heading)}" if hit.heading and hit.heading != hit.title else ""
    return (
        f'<li><a class="title" href="{link_of(prefix, hit.name)}">{e(hit.title)}</a>'
        f'<span class="place">{e(hit.name)}{heading}</span><p>{e(hit.snippet)}</p>{_tag_list(prefix, hit.tags)}'
        f"<details><summary>Score {hit.score:.2f}</summary><dl>{why}</dl></details></li>"
    )


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


async def _latest(view: View) -> str:
    page = await _ask(view, lambda store: store.list(sort="modified", limit=_LATEST))
    rows = "".join(_row(view.served.prefix, each) for each in page.items)
    return f'<ol class="rows" id="latest">{rows}</ol>' if rows else "<p>There are no notes yet.</p>"


def _row(prefix: str, each: Any) -> str:
    when = f"<time>{e((each.modified or '')[:16].replace('T', ' '))}</time>"
    about = f"<small>{e(each.description)}</small>" if each.description else ""
    return f'<li><a class="title" href="{link_of(prefix, each.name)}">{e(each.title)}</a> {about}{when}</li>'


def _changes(view: View, grant: Grant, entries: Iterable[HistoryEntry]) -> str:
    shown = []
    for each in entries:
        lines = "".join(
            f'<span class="{"add" if line[:1] == "+" else "del" if line[:1] == "-" else "same"}">{e(line)}\n</span>'
            for line in _shown_lines(each.diff or "")
        )
        diff = f"<details><summary>Changes</summary><pre>{lines}</pre></details>" if lines else ""
        can_undo = (
            grant.may("write") and each.source == "simplemem" and not view.served.settings.read_only
        )
        button = (
            f'<form method="post" action="{view.served.prefix}/undo">'
            f'<button name="version" value="{e(each.version)}">Undo</button></form>'
        )
        link = f'<a class="title" href="{link_of(view.served.prefix, each.new_name or each.name)}">{e(each.name)}</a>'
        shown.append(f"<li>{link} {_version(each)}{button if can_undo else ''}{diff}</li>")
    return f'<ol class="rows changes">{"".join(shown)}</ol>' if shown else ""


def _shown_lines(diff: str) -> list[str]:
    """Return the beginning of a diff: whole notes may be one line, and a page shows many diffs."""
    lines = diff.splitlines()[:_MAX_DIFF_LINES]
    return [line[:_MAX_DIFF_LINE] for line in lines]


def _version(each: HistoryEntry) -> str:
    reason = f" <i>{e(each.reason)}</i>" if each.reason else ""
    when = e(each.when[:16].replace("T", " "))
    return f'<span class="what"><time>{when}</time> {e(each.op)} by {e(each.who or "unknown")}{reason}</span>'


def _led(prefix: str, each: Backlink) -> str:
    said = f"<small>{e(each.snippet)}</small>" if each.snippet else ""
    return f'<a href="{link_of(prefix, each.name)}">{e(each.title)}</a>{said}'


def _to(prefix: str, name: str) -> str:
    return f'<a href="{link_of(prefix, name)}">{e(name.rpartition("/")[2])}</a>'


def _box(title: str, rows: Sequence[str]) -> str:
    return (
        f"<section><h2>{title}</h2><ul>{''.join(f'<li>{each}</li>' for each in rows)}</ul></section>"
        if rows
        else ""
    )


def _tag_list(prefix: str, tags: Sequence[str]) -> str:
    shown = "".join(
        f'<a class="tag" href="{prefix}/tags/{quote(tag)}">#{e(tag)}</a> ' for tag in tags
    )
    return f'<p class="tags">{shown}</p>' if shown else ""


def _value(prefix: str, value: Any) -> str:
    """A property, with the links in it."""
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(prefix, each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{e(str(key))}: {_value(prefix, each)}" for key, each in value.items())
    text = e(str(value))
    return _LINK.sub(
        lambda link: f'<a href="{link_of(prefix, link[1])}">{link[1].rpartition("/")[2]}</a>', text
    )


def _body(found: Memory) -> str:
    """The note's text, without a first heading that says its title again."""
    first, _, rest = found.content.lstrip().partition("\n")
    return rest if first.strip().casefold() == f"# {found.title}".casefold() else found.content


# --- the whole


def _page(
    view: View,
    grant: Grant,
    title: str,
    body: str,
    kind: str = "",
    asked: str = "",
    status: int = 200,
) -> Response:
    served = view.served
    places = [("", "Home"), ("today", "Today"), ("tags", "Tags"), ("graph", "Graph")]
    places += [("doctor", "Doctor")] if grant.may("admin") else []
    links = "".join(f'<a href="{served.prefix}/{path}">{name}</a>' for path, name in places)
    head = (
        f'<form role="search" action="{served.prefix}/"><input type="search" name="q" value="{e(asked)}" autocomplete="off"'
        f' placeholder="Search notes" aria-label="Search notes"></form><nav aria-label="Pages">{links}'
        f'<form method="post" action="{served.prefix}/logout"><button title="{e(grant.name)}">Sign out</button></form></nav>'
    )
    return _whole(served, title, head, f'<main class="{kind}" id="main">{body}</main>', status)


def _whole(served: Served, title: str, head: str, main: str, status: int = 200) -> Response:
    root = f"{served.prefix}/"
    text = f"""<!doctype html>
<html lang="en" data-root="{e(served.prefix)}"><head><meta charset="utf-8"><title>{e(title)} · simplemem</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}static/page.css"><script src="{root}static/page.js" defer></script></head>
<body><a class="skip" href="#main">Skip to content</a><header><a class="brand" href="{root}">simplemem</a>{head}</header>
{main}<p id="news" role="status" hidden></p></body></html>"""
    return HTMLResponse(
        text.encode("utf-8", "replace"), status, {"Content-Security-Policy": POLICY}
    )


def _part(html: str) -> Response:
    return HTMLResponse(
        html.encode("utf-8", "replace"), headers={"Content-Security-Policy": POLICY}
    )


def _sign_in_page(served: Served, to: str, wrong: str = "") -> Response:
    said = f'<p class="problem" role="alert">{e(wrong)}</p>' if wrong else ""
    form = (
        f'<form method="post" action="{served.prefix}/login" class="sign-in"><h1>Sign in</h1>{said}'
        f'<input type="hidden" name="to" value="{e(to)}"><label for="token">Token</label>'
        '<input type="password" id="token" name="token" autocomplete="current-password" required autofocus>'
        "<button>Sign in</button><p><small>When it starts, the server prints where the owner's token is."
        " <code>simplemem token new NAME</code> creates more tokens.</small></p></form>"
    )
    return _whole(served, "Sign in", "", f'<main id="main">{form}</main>', 401)


def _failed(served: Served, grant: Grant | None, error: SimplememError) -> Response:
    status = error.status if isinstance(error, Refused) else STATUS.get(error.code, 500)
    said = f'<main id="main"><h1>{e(error.message)}</h1><p>{e(error.hint)}</p></main>'
    back = f'<nav aria-label="Pages"><a href="{served.prefix}/">Home</a></nav>' if grant else ""
    return _whole(served, "Error", back, said, status)


def _inside(served: Served, to: str | None) -> str:
    """Where to go after signing in: a place of this page, and no other."""
    home = f"{served.prefix}/"
    return (
        to
        if to and to.startswith(home) and not re.match(r"[/\\]{2}", to) and to.isprintable()
        else home
    )


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        hint = "Send it with `Content-Type: application/x-www-form-urlencoded`."
        raise Refused(415, "the body must be a form", hint=hint)
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return {key: values[-1] for key, values in parse_qs(body, max_num_fields=10).items()}
    except ValueError:
        raise Invalid("the form has more than ten fields") from None
