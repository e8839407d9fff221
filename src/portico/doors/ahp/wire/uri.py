"""The URIs that client and host derive independently, and so must derive in the same way."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from urllib.parse import quote

SEED_ROOT = "agenthost:/root"
ROOT = "ahp-root://"

_CHAT = "ahp-chat://"
_DEFAULT_CHAT = f"{_CHAT}default/"
_SUBAGENT = f"{_CHAT}subagent/"
_SEED_SUBAGENT = "/subagent/"
_ANNOTATIONS = "/annotations"


def is_root(uri: str) -> bool:
    """Whether `uri` names the root channel of either dialect; URI libraries like to drop or add its slashes."""
    return uri == SEED_ROOT or uri.rstrip("/") == ROOT.rstrip("/")


@lru_cache(maxsize=4096)
def default_chat(session: str) -> str:
    """The URI of a session's default chat: the client computes it without asking."""
    return _DEFAULT_CHAT + _encoded(session)


def default_chat_session(chat: str) -> str | None:
    """The session whose default chat this is, or None for every other URI."""
    if not chat.startswith(_DEFAULT_CHAT):
        return None
    return _decoded(chat.removeprefix(_DEFAULT_CHAT).rstrip("="))


def chat(session: str, ident: str) -> str:
    """A further chat of a session. Its name has an authority: editors do not open one without."""
    return f"{_CHAT}{ident}/{_encoded(session)}"


def subagent(session: str, call: str) -> str:
    """The chat of a sub-agent: clients derive it from the session and the call that has started it."""
    return f"{_SUBAGENT}{_encoded(session)}/{quote(call, safe='')}"


def seed_subagent(chat: str) -> str | None:
    """The version 1 name of a sub-agent's session, from the name of its chat; None for every other URI."""
    if not chat.startswith(_SUBAGENT):
        return None
    encoded, _, call = chat.removeprefix(_SUBAGENT).partition("/")
    session = _decoded(encoded)
    return f"{session}{_SEED_SUBAGENT}{call}" if session is not None and call else None


def subagent_of_seed(name: str) -> str | None:
    """The chat that version 1 means by this name of a session, or None."""
    session, found, call = name.rpartition(_SEED_SUBAGENT)
    return f"{_SUBAGENT}{_encoded(session)}/{call}" if found and session and call else None


def _encoded(session: str) -> str:
    return urlsafe_b64encode(session.encode()).decode().rstrip("=")


def _decoded(encoded: str) -> str | None:
    try:
        session = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None
    # The decoder skips characters it does not know; only the exact form may name a session.
    return session if _encoded(session) == encoded else None


def annotations(session: str) -> str:
    return session.rstrip("/") + _ANNOTATIONS


def annotations_session(uri: str) -> str | None:
    """The session whose annotations channel this is, or None."""
    return uri.removesuffix(_ANNOTATIONS) if uri.endswith(_ANNOTATIONS) and uri != _ANNOTATIONS else None
