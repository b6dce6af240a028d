"""Requests of every kind against the REST API, made from its OpenAPI document by schemathesis.

    python -m pip install 'schemathesis>=4,<5'
    python bench/rest_fuzz.py --examples 100

The server has a copy of the example vault. There must be no status 5xx, no answer that is not
documented, and no answer that its schema does not allow.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
    "missing_required_header",
)
TOKEN: Final = "a-token-for-this-run-alone"
EXAMPLE: Final = Path(__file__).parents[1] / "vault-example"

_ADDRESS: Final = re.compile(r" at (http://\S+)")


def main() -> int:
    """Start a server, and let schemathesis send its requests.

    Return the exit code of schemathesis, or 1 if only the log of the server has errors.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=100, help="of each operation and phase")
    parser.add_argument("--profile", default="remembrances")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        vault = shutil.copytree(EXAMPLE, folder / "vault")
        (vault / "topics").mkdir(exist_ok=True)
        log = folder / "log"
        server = start_server(vault, options.profile, log)
        try:
            address = wait_for_address(server, log)
            code = run_schemathesis(address, options.examples, folder)
            errors = [line for line in log.read_text().splitlines() if " error " in line]
        finally:
            server.terminate()
            server.wait(10)

    for error in errors:
        print(error)
    print(f"{len(errors)} faults in the server's log")
    if code == 0 and errors:
        return 1
    return code


def start_server(vault: Path, profile: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a server of a vault over HTTP, on a free port. It writes its log to a file."""
    env = {
        **os.environ,
        "SIMPLEMEM_TOKEN": TOKEN,
        "SIMPLEMEM_EMBED_PROVIDER": "none",
        "XDG_CONFIG_HOME": str(vault.parent),
    }
    command = [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault)]
    command += ["--http", "127.0.0.1:0"]
    command += ["--profile", profile]
    command += ["--knowledge-base", str(vault / "topics")]
    with log.open("w") as stderr:
        return subprocess.Popen(command, env=env, stderr=stderr)


def wait_for_address(server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server has logged its address, and return it.

    Raises:
        SystemExit: The server ended before that.
    """
    while True:
        has_ended = server.poll() is not None
        text = log.read_text()
        match = _ADDRESS.search(text)
        if match:
            return match[1]
        if has_ended:
            raise SystemExit(f"the server did not start:\n{text}")
        time.sleep(0.1)


def run_schemathesis(address: str, examples: int, folder: Path) -> int:
    """Send so many requests per operation and phase, print the result, and return the exit code."""
    document = f"{address}/api/v1/openapi.json"
    command = [sys.executable, "-m", "schemathesis.cli", "run", document]
    command += ["-H", f"Authorization: Bearer {TOKEN}"]
    command += ["--checks", ",".join(CHECKS)]
    command += ["--max-examples", str(examples)]
    command += ["--workers", "2"]
    command += ["--continue-on-failure"]
    command += ["--suppress-health-check", "all"]
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
