"""Signatures: they prove who wrote an index.

Anybody can compute a checksum; only a holder of the key can compute a signature (HMAC-SHA256). It
covers the manifest, and the manifest of a signed index contains a digest of the whole content.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import IndexFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MIN_KEY_BYTES: Final = 16


def read_key(key: str | bytes) -> bytes:
    """The key as bytes; raises an error if it is too short."""
    data = key.encode() if isinstance(key, str) else bytes(key)
    if len(data) < MIN_KEY_BYTES:
        raise InputError(
            f"the key has {len(data)} bytes; at least {MIN_KEY_BYTES} are needed",
            hint="make one: python -c 'import secrets; print(secrets.token_hex(32))'",
        )
    return data


def digest_content(chunks: Iterable[Any]) -> str:
    """The digest of the content, for a signed manifest."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def sign(manifest: dict[str, Any], key: bytes) -> str:
    """The signature of a manifest, computed without its signature and checksum."""
    body = {name: manifest[name] for name in manifest if name not in ("signature", "checksum")}
    signed = json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def expect_signed(manifest: dict[str, Any], key: bytes, directory: Path) -> None:
    """Raise an error unless the manifest was signed with the key."""
    signature = manifest.get("signature")
    if not isinstance(signature, str):
        raise IndexFormatError(
            f"{directory} is not signed", hint="build it with the key: tamis build --sign KEYFILE"
        )
    if not hmac.compare_digest(signature.encode(), sign(manifest, key).encode()):
        raise IndexFormatError(
            f"{directory} was not signed with this key, or it was changed since",
            hint="do not use it unless you know who wrote it",
        )
