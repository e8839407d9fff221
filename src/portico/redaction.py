"""Removes secrets from data that leaves this machine: from every text of a document, including its keys.

It detects the formats of common keys and the given texts; it cannot detect a secret without a known format.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from portico.kernel.events import Json

RULES: dict[str, str] = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "model key": r"\bsk-[A-Za-z0-9_-]{16,}",
    "GitHub token": r"\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    "AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "Google key": r"\bAIza[A-Za-z0-9_-]{30,}",
    "Slack token": r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
    "JSON Web Token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "bearer token": r"(?i:(?<=bearer ))[A-Za-z0-9._~+/=-]{16,}",
    "password in an address": r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    "secret": r"(?i:(?<=password=)|(?<=passwd=)|(?<=secret=)|(?<=api_key=)|(?<=token=))[^\s&\"']{6,}",
}


class Redaction:
    def __init__(self, words: Iterable[str] = ()) -> None:
        """`words`: further texts to remove, such as names and folders."""
        self._words = sorted(filter(None, words), key=len, reverse=True)
        self._rules = [(name, re.compile(rule)) for name, rule in RULES.items()]
        self.count = 0

    def text(self, text: str) -> str:
        for word in self._words:
            self.count += text.count(word)
            text = text.replace(word, "[redacted]")
        for name, rule in self._rules:
            text, count = rule.subn(f"[redacted: {name}]", text)
            self.count += count
        return text

    def document(self, value: Any) -> Any:
        """Redact every text in a value, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.document(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.document(each) for each in value]
        return value


def redacted(archive: Json, redaction: Redaction) -> Json:
    """Redact an archive of a session, including blobs that are text. Blobs are named by their content, so references
    to them are renamed."""
    names: dict[str, str] = {}
    blobs: dict[str, str] = {}
    for digest, encoded in archive.get("blobs", {}).items():
        data = base64.b64decode(encoded)
        try:
            data = redaction.text(data.decode()).encode()
        except UnicodeDecodeError:
            data = b"[redacted: not a text]"
        names[digest] = hashlib.sha256(data).hexdigest()
        blobs[names[digest]] = base64.b64encode(data).decode()
    text = msgspec.json.encode(redaction.document({**archive, "blobs": {}})).decode()
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    found: Json = msgspec.json.decode(text)
    return {**found, "blobs": blobs}
