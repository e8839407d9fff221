"""Who asks. Doors find that out (from a token, a cookie, a handshake); what callers claim is ignored."""

import hashlib
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from portico.kernel.errors import Forbidden, Unauthenticated

Scope = Literal["open", "any", "read", "drive", "approve", "files", "terminal", "jobs", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "drive", "approve", "files", "terminal", "jobs", "admin")


TOOL_SCOPES: frozenset[str] = frozenset({"read", "drive", "jobs"})
"""What MCP tools may use that no token names."""


class Caller(Struct, frozen=True):
    id: str
    name: str
    scopes: frozenset[str]
    door: str = ""
    """Through which protocol: `rest`, `portal`, `anywhere`, `ahp`, `mcp`; empty inside of the host."""
    client: str = ""
    """The client's own id, where its protocol has one."""
    request: str = ""
    """The caller's own id of the command it sends: the same one is done once, and answered alike."""
    label: str = ""
    """How events name this caller, where it is not by its token."""
    person: str = ""
    """Whose token or login it is. Empty: the host's own (its owner, named tokens without a person, jobs, agents), for
    whom ownership makes no difference."""
    tools: frozenset[str] = frozenset()
    """The MCP tools that its token was created for by name."""

    @property
    def by(self) -> str:
        return self.label or (f"person:{self.person}" if self.person else f"token:{self.name}")

    @property
    def outside(self) -> bool:
        """Whether it came through a door; the host, its jobs and its agents did not."""
        return bool(self.id)

    def may(self, scope: Scope) -> bool:
        """`open` is for strangers too, `any` for everybody with a token."""
        return scope == "open" or scope in self.scopes or (scope == "any" and bool(self.scopes))

    def require(self, scope: Scope) -> None:
        if scope in self.scopes:
            return
        if not self.scopes and scope != "open":
            raise Unauthenticated("A token is needed: 'Authorization: Bearer TOKEN', or log in at /login.")
        if not self.may(scope):
            if self.person:
                words = f"{self.person!r} or the token {self.name!r} has no scope {scope!r}"
                raise Forbidden(f"{words}; make a token that has it, or ask an admin for it.")
            raise Forbidden(f"The token {self.name!r} has no scope {scope!r}; make one that has.")

    def require_all(self, why: str) -> None:
        """For what concerns everybody: an admin's, where there are people."""
        if self.person and not self.may("admin"):
            raise Forbidden(f"{why}: that needs the scope 'admin'.")

    def with_tool(self, name: str) -> "Caller":
        """The same caller as it uses one MCP tool: with all its scopes only if its token names that tool."""
        return self if name in self.tools else replace(self, scopes=self.scopes & TOOL_SCOPES)

    def asking(self, request: str) -> "Caller":
        """The same caller with an id for its next command."""
        return replace(self, request=request)

    def step(self, name: str) -> "Caller":
        """For one step of a command: its id follows from the command's id, so a repeated command repeats no step."""
        whole = hashlib.sha256(self.request.encode()).hexdigest()[:32]
        return replace(self, request=f"{whole} {name}") if self.request else self

    @classmethod
    def inside(cls, by: str) -> "Caller":
        """The host itself, its jobs and its agents: trusted, and named in events as `by`."""
        return cls("", by, frozenset(SCOPES), label=by)
