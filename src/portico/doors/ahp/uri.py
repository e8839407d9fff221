"""The URIs that both sides derive on their own, and so must derive alike."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache

SEED_ROOT = "agenthost:/root"
ROOT = "ahp-root://"

_DEFAULT_CHAT = "ahp-chat://default/"
_ANNOTATIONS = "/annotations"


def is_root(uri: str) -> bool:
    """Whether `uri` names the root channel of either dialect; URI libraries like to drop or add its slashes."""
    return uri == SEED_ROOT or uri.rstrip("/") == ROOT.rstrip("/")


@lru_cache(maxsize=4096)
def default_chat(session: str) -> str:
    """The URI of a session's default chat: the client computes it without asking."""
    return _DEFAULT_CHAT + urlsafe_b64encode(session.encode()).decode().rstrip("=")


def default_chat_session(chat: str) -> str | None:
    """The session whose default chat this is, or None for every other URI."""
    if not chat.startswith(_DEFAULT_CHAT):
        return None
    encoded = chat.removeprefix(_DEFAULT_CHAT).rstrip("=")
    try:
        session = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None
    # The decoder skips characters it does not know; only the exact form may name a session.
    return session if default_chat(session) == _DEFAULT_CHAT + encoded else None


def annotations(session: str) -> str:
    return session.rstrip("/") + _ANNOTATIONS


def annotations_session(uri: str) -> str | None:
    """The session whose annotations channel this is, or None."""
    return uri.removesuffix(_ANNOTATIONS) if uri.endswith(_ANNOTATIONS) and uri != _ANNOTATIONS else None
