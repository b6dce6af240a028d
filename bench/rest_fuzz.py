"""Requests of every kind against the REST API of a server on a copy of the example vault, made of its own OpenAPI
document by schemathesis: no 5xx, no answer that is not documented, no answer that its schema does not allow.

    python -m pip install 'schemathesis>=4,<5'
    python bench/rest_fuzz.py --examples 100
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

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
CHECKS += ",response_headers_conformance,unsupported_method,missing_required_header"
TOKEN = "a-token-for-this-run-alone"


def main() -> int:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--examples", type=int, default=100, help="of each operation and phase")
    asked.add_argument("--profile", default="remembrances")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        vault = shutil.copytree(Path(__file__).parents[1] / "vault-example", Path(folder, "vault"))
        env = os.environ | {
            "SIMPLEMEM_TOKEN": TOKEN,
            "XDG_CONFIG_HOME": folder,
            "SIMPLEMEM_EMBED_PROVIDER": "none",
        }
        command = [
            sys.executable,
            "-m",
            "simplemem",
            "serve",
            "--vault",
            str(vault),
            "--http",
            "127.0.0.1:0",
        ]
        command += ["--profile", given.profile, "--knowledge-base", str(vault / "topics")]
        (vault / "topics").mkdir(exist_ok=True)
        log = Path(folder, "log")
        with log.open("w") as said:
            server = subprocess.Popen(command, env=env, stderr=said)
        try:
            while (
                not (found := re.search(r" at (http://\S+)", log.read_text()))
                and server.poll() is None
            ):
                time.sleep(0.1)
            assert found, log.read_text()
            run = [
                "-m",
                "schemathesis.cli",
                "run",
                f"{found[1]}/api/v1/openapi.json",
                "-H",
                f"Authorization: Bearer {TOKEN}",
            ]
            run += [
                "--checks",
                CHECKS,
                "--max-examples",
                str(given.examples),
                "--workers",
                "2",
                "--continue-on-failure",
            ]
            code = subprocess.run(
                [sys.executable, *run, "--suppress-health-check", "all"], cwd=folder
            ).returncode
            faults = [line for line in log.read_text().splitlines() if " error " in line]
            print(*faults, f"{len(faults)} faults in the server's log", sep="\n")
            return code or bool(faults)
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    raise SystemExit(main())
