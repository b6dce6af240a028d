"""Files as programs make them, and a web server on 127.0.0.1 that gives them away."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_SPACE = "http://schemas.openxmlformats.org"


def pdf(*pages: str, title: str = "", columns: int = 1) -> bytes:
    """A PDF with these lines on its pages, in so many columns of the same."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
    ]
    objects.append(
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    )
    for at, lines in enumerate(pages):
        drawn = "".join(f"({line}) Tj T*\n" for line in lines.splitlines())
        size = 12 // columns
        drawn = "".join(
            f"BT /F1 {size} Tf {60 + 250 * k} 780 Td 16 TL\n{drawn}ET\n" for k in range(columns)
        )
        more = f"/Contents {5 + 2 * at} 0 R /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {more} >>")
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size, start = len(objects) + 1, len(out)
    trailer = (
        f"trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def docx(*parts: str, title: str = "") -> bytes:
    """A Word file: `# ` begins a heading, `= ` its title, `|` parts the cells of a table's row, `!` names a picture of
    another file. `title` stands in its properties."""
    body = ""
    for part in parts:
        text = f"<w:r><w:t>{part.lstrip('#= ')}</w:t></w:r>"
        if part.startswith("#"):
            body += f'<w:p><w:pPr><w:pStyle w:val="Heading{part.count("#")}"/></w:pPr>{text}</w:p>'
        elif part.startswith("= "):
            body += f'<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr>{text}</w:p>'
        elif "|" in part:
            cells = "".join(
                f"<w:tc><w:p><w:r><w:t>{each}</w:t></w:r></w:p></w:tc>" for each in part.split("|")
            )
            body += f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        elif part.startswith("!"):
            body += f'<w:p><w:r><w:drawing><wp:inline><a:graphic><a:graphicData><a:blip r:link="{part[1:]}"/>'
            body += "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
        else:
            body += f"<w:p>{text}</w:p>"
    body = body.replace("</w:tbl><w:tbl>", "")  # rows that follow each other are one table
    names = {
        "w": "wordprocessingml/2006/main",
        "r": "officeDocument/2006/relationships",
        "a": "drawingml/2006/main",
    }
    spaces = " ".join(f'xmlns:{key}="{_SPACE}/{path}"' for key, path in names.items())
    spaces += f' xmlns:wp="{_SPACE}/drawingml/2006/wordprocessingDrawing"'
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in (1, 2)
    )
    styles += '<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>'
    link = f"{_SPACE}/officeDocument/2006/relationships"
    relation = f'<Relationships xmlns="{_SPACE}/package/2006/relationships">'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_SPACE}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kinds}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kinds}.styles+xml"/></Types>',
        "_rels/.rels": f'{relation}<Relationship Id="r1" Type="{link}/officeDocument" Target="word/document.xml"/>'
        "</Relationships>",
        "word/_rels/document.xml.rels": f'{relation}<Relationship Id="r1" Type="{link}/styles" Target="styles.xml"/>'
        f'<Relationship Id="out" Type="{link}/image" Target="file:///etc/passwd" TargetMode="External"/>'
        "</Relationships>",
        "word/styles.xml": f"<w:styles {spaces}>{styles}</w:styles>",
        "docProps/core.xml": f"<cp:coreProperties><dc:title>{title}</dc:title></cp:coreProperties>",
        "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return out.getvalue()


class Web:
    """`pages[path]` is a type and bytes, or a status and a place; `asked` has the headers of each request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages: dict[str, tuple[Any, Any]] = {}
        self.asked: list[dict[str, str]] = []

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def web_server() -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            web.asked.append(
                {"path": self.path, **{key.lower(): value for key, value in self.headers.items()}}
            )
            kind, data = web.pages.get(self.path, (404, ""))
            self.send_response(kind if isinstance(kind, int) else 200)
            self.send_header("Set-Cookie", "crumb=1")
            if isinstance(kind, int):
                self.send_header("Location", data)
            else:
                self.send_header("Content-Type", kind)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(data if isinstance(data, bytes) else b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web = Web(server.server_port)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    ).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
