"""One thing that `portico doctor` has looked at."""

from dataclasses import dataclass


@dataclass
class Finding:
    what: str
    ok: bool
    detail: str
    status: str = ""
    """Of an agent: what a check of it found."""
