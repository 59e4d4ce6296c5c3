"""Whether a summary was written by this user: only then does replay run the code that it names.

A summary is signed with a key that only this user can read. The signature covers the implementation, all options and
the current folder, from which relative paths and commands count.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from platformdirs import user_data_path

_BYTES: Final = 32


def sign(summary: Mapping[str, Any]) -> str:
    """Return the signature of a summary's `impl` and `options`; empty where the key can't be made or read."""
    key = _key()
    if not key:
        return ""
    signed = [summary.get("impl"), summary.get("options"), os.getcwd()]
    return hmac.new(key, json.dumps(signed, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def made_here(summary: Mapping[str, Any]) -> bool:
    """Return whether this user's `mluops run` wrote the summary, in the current folder."""
    signature = summary.get("signature")
    return (
        isinstance(signature, str)
        and bool(signature)
        and hmac.compare_digest(signature.encode(), sign(summary).encode())
    )


def key_file() -> Path:
    """Return where the key is kept."""
    return user_data_path("mluops") / "signature.key"


def _key() -> bytes:
    """The key, made when it is first needed; empty where that can't be."""
    path = key_file()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
        key = path.read_bytes()
        return key if len(key) == _BYTES else b""  # another process is just writing it, or it is damaged
    return b""
