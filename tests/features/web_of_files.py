"""PDF and Word files as programs write them, and a web server on 127.0.0.1 that serves files."""

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
    """Return a PDF with these lines on its pages, repeated in each of the columns."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in enumerate(pages):
        stream = _pdf_stream(lines, columns)
        contents = f"/Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {contents} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) >>")

    data = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252")

    size = len(objects) + 1
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    data_size = len(data)
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\n"
    end = f"startxref\n{data_size}\n%%EOF\n"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}{end}".encode()


def _pdf_stream(lines: str, columns: int) -> str:
    """Return the commands that draw some lines in each of the columns of a page."""
    text = "".join(f"({line}) Tj T*\n" for line in lines.splitlines())
    font_size = 12 // columns
    return "".join(
        f"BT /F1 {font_size} Tf {60 + 250 * column} 780 Td 16 TL\n{text}ET\n"
        for column in range(columns)
    )


def docx(*parts: str, title: str = "") -> bytes:
    """Return a Word file of these paragraphs, with a title in its properties.

    A paragraph that begins with `# ` is a heading, and one with `= ` a title. `|` separates the
    cells of a table row. `!` is followed by the id of a picture outside the file.
    """
    body = "".join(map(_docx_part, parts))
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
        f'<w:style w:type="paragraph" w:styleId="Heading{level}">'
        f'<w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    styles += '<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>'
    link = f"{_SPACE}/officeDocument/2006/relationships"
    relation = f'<Relationships xmlns="{_SPACE}/package/2006/relationships">'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_SPACE}/package/2006/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kinds}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kinds}.styles+xml"/></Types>',
        "_rels/.rels": f'{relation}<Relationship Id="r1" Type="{link}/officeDocument"'
        ' Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'{relation}<Relationship Id="r1" Type="{link}/styles"'
        ' Target="styles.xml"/>'
        f'<Relationship Id="out" Type="{link}/image" Target="file:///etc/passwd"'
        ' TargetMode="External"/>'
        "</Relationships>",
        "word/styles.xml": f"<w:styles {spaces}>{styles}</w:styles>",
        "docProps/core.xml": f"<cp:coreProperties><dc:title>{title}</dc:title></cp:coreProperties>",
        "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
    }

    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return output.getvalue()


def _docx_part(part: str) -> str:
    """Return the XML of a paragraph or a table row."""
    text = f"<w:r><w:t>{part.lstrip('#= ')}</w:t></w:r>"
    if part.startswith("#"):
        style = f"Heading{part.count('#')}"
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{text}</w:p>'
    if part.startswith("= "):
        return f'<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr>{text}</w:p>'
    if "|" in part:
        cells = "".join(
            f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in part.split("|")
        )
        return f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    if part.startswith("!"):
        picture = (
            f'<a:graphic><a:graphicData><a:blip r:link="{part[1:]}"/></a:graphicData></a:graphic>'
        )
        inline = f"<wp:inline>{picture}</wp:inline>"
        return f"<w:p><w:r><w:drawing>{inline}</w:drawing></w:r></w:p>"
    return f"<w:p>{text}</w:p>"


class Web:
    """A web server. `pages` maps a path to a content type and bytes, or to a status and a location.

    `requests` has the path and the headers of each request.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages: dict[str, tuple[Any, Any]] = {}
        self.requests: list[dict[str, str]] = []

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the address of a path on this server."""
        return f"http://{host}:{self.port}{path}"


@contextmanager
def web_server() -> Iterator[Web]:
    """Yield a running server without pages."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            web.requests.append({"path": self.path, **headers})
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
