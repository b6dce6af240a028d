"""What is handed out, in dist/: the wheel and the source, and the bundle for Claude Desktop (.mcpb). With `links`, print the
deep links that Cursor and VS Code open.

    python bundles/build.py [links]
"""

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from simplemem import __version__
from simplemem.profiles.registry import built_in_profiles, choose_tools

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
_ENTRY = {"command": "uvx", "args": ["--from", "simplemem-vault", "simplemem", "serve"]}


def manifest() -> dict[str, Any]:
    """The manifest of the bundle, with the tools as the server lists them."""
    told: dict[str, Any] = json.loads(
        (ROOT / "bundles" / "manifest.json").read_text(encoding="utf-8")
    )
    tools = [
        {"name": each.name, "description": each.description}
        for each in choose_tools(built_in_profiles()["default"])
    ]
    return told | {"version": __version__, "tools": tools}


def bundle(place: Path) -> Path:
    """Write the .mcpb: the manifest, and the package as uv installs it."""
    file = place / f"simplemem-{__version__}.mcpb"
    place.mkdir(exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "manifest.json", json.dumps(manifest(), indent=2, ensure_ascii=False) + "\n"
        )
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            archive.write(ROOT / name, name)
        for each in sorted((ROOT / "simplemem").rglob("*")):
            if each.is_file() and "__pycache__" not in each.parts:
                archive.write(each, each.relative_to(ROOT).as_posix())
    return file


def links() -> dict[str, str]:
    """What a click opens in an editor, by its name."""
    cursor = base64.b64encode(json.dumps(_ENTRY).encode()).decode()
    vscode = quote(json.dumps({"name": "simplemem", "type": "stdio", **_ENTRY}))
    return {
        "Cursor": f"cursor://anysphere.cursor-deeplink/mcp/install?name=simplemem&config={quote(cursor)}",
        "VS Code": f"vscode:mcp/install?{vscode}",
        "VS Code Insiders": f"vscode-insiders:mcp/install?{vscode}",
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["links"]:
        print("\n".join(f"- {name}: `{link}`" for name, link in links().items()))
    else:
        subprocess.run(
            [sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], check=True
        )
        print(bundle(DIST))
