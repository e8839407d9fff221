"""`portico token` edits a file, also while no host runs: what is new since the last look is written down."""

import msgspec

from portico.kernel.events import HOST, Audited
from portico.kernel.host import Host
from portico.server.identity import Tokens

_TOKENS = "tokens"


class TokenAudit:
    def __init__(self, host: Host, tokens: Tokens) -> None:
        self._host = host
        self._tokens = tokens
        self._known: dict[str, str] = {}

    @classmethod
    async def open(cls, host: Host, tokens: Tokens) -> "TokenAudit":
        audit = cls(host, tokens)
        audit._known = await audit._stored()
        await audit.look()
        return audit

    async def look(self) -> None:
        self._tokens.save_uses()
        known, log = self._tokens.known(), self._host.log
        if known == self._known or log.down is not None:
            return
        if self._host.members.several:  # another host, where it was done, may have written it down
            self._known = await self._stored()
        before = self._known
        changes = [("token.added", known[ident]) for ident in known.keys() - before.keys()]
        changes += [("token.revoked", before[ident]) for ident in before.keys() - known.keys()]
        log.put_kv(HOST, _TOKENS, msgspec.json.encode(known))
        audited = [Audited(action=action, by="file", detail={"token": name}) for action, name in changes]
        if audited:
            await log.append(HOST, *audited)
        self._known = known  # not before: what could not be written down is for the next look

    async def _stored(self) -> dict[str, str]:
        seen = await self._host.log.get_kv(HOST, _TOKENS)
        return msgspec.json.decode(seen, type=dict[str, str]) if seen else {}
