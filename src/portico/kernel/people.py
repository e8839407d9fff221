"""Names of people, as sessions and shares know them."""

import re

from portico.kernel.errors import BadRequest

EVERYONE = "*"
HOST_OWNER = "owner"
"""To whom belongs what tokens without a person start, on a host that has people."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")


def check_person(name: str, also: str = "") -> str:
    if name == also and also:
        return name
    if not _NAME.fullmatch(name):
        words = "A person's name has 1 to 64 small letters, digits, '.', '_', '@', '+' or '-'."
        raise BadRequest(words, field="person")
    return name
