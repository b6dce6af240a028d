"""Reads the certificate of a server, at its start and again while it runs."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from simplemem.errors import Invalid

log = logging.getLogger("simplemem.web")


def check_is_readable(file: Path | None, option: str) -> None:
    """Raise Invalid if a file cannot be read. Does nothing if there is none.

    `option` is the option that names the file, for the message.
    """
    if file is None:
        return

    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise Invalid(f"cannot read {file} ({option}): {describe_error(error)}") from None


def describe_error(error: OSError) -> str:
    """Return the system's own message for an error, or else the text of the error."""
    return error.strerror or str(error)


def load_certificate(
    certificate: Path | None, key: Path | None, load: Callable[[], object]
) -> None:
    """Call `load`, which reads a certificate and its key from these files.

    Raises Invalid, with the names of the files, if they cannot be read or do not belong together.
    """
    check_is_readable(certificate, "--tls-cert")
    check_is_readable(key, "--tls-key")
    try:
        load()
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            message = f"the key in {key} (--tls-key) does not belong to {certificate} (--tls-cert)"
            raise Invalid(message) from None

        message = (
            f"{certificate} (--tls-cert) and {key} (--tls-key) are not a certificate and its key"
        )
        hint = "Both files must be in PEM format. The key must have no password."
        raise Invalid(message, hint=hint) from None
    except OSError as error:
        reason = describe_error(error)
        message = f"cannot read {certificate} (--tls-cert) or {key} (--tls-key): {reason}"
        raise Invalid(message) from None


def reload_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Read a certificate again for new connections. If that fails, log why and keep the old one.

    Changes `context`. Raises nothing for files that are wrong or cannot be read.
    """

    def load() -> None:
        # OpenSSL drops the old key when it reads a certificate that does not match, so a context of
        # its own comes first. Without a password OpenSSL would ask for one in the terminal.
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trial.load_cert_chain(certificate, key, password=lambda: "")
        context.load_cert_chain(certificate, key)

    try:
        load_certificate(certificate, key, load)
    except Invalid as error:
        log.error("the certificate could not be reloaded: %s", error.message)
        return

    log.info("the certificate was reloaded")
