"""The browsers that receive web push, and the key that the host signs with. Both are values in the log, so that several
hosts on one log sign with the same key."""

import asyncio
from typing import TYPE_CHECKING, get_args

import msgspec

from portico.features.notices import push
from portico.features.notices.commands import SubscribePush
from portico.features.notices.push import PushTarget
from portico.features.notices.targets import target_problem
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound
from portico.kernel.host import Host
from portico.server.settings import NoticeKind, NoticeSettings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as PrivateKey

_CHANNEL, _TARGETS, _KEY = "notices", "push", "push.key"
MOST = 1_000
"""Browsers of one host: a push for each is a call of some KB."""
MOST_OF_ONE = 20
"""Of one person or token: the oldest is removed, because reinstalled browsers never unsubscribe."""


class Subscriptions:
    def __init__(self, host: Host, lock: asyncio.Lock) -> None:
        self._host = host
        self.lock = lock
        """Held by commands and by every other caller of `load`, `add` and `remove`: they read, await and write."""
        self.targets: dict[str, PushTarget] = {}
        self._key: PrivateKey | None = None

    async def load(self) -> bool:
        """Read the list; returns whether it has changed."""
        data = await self._host.log.get_kv(_CHANNEL, _TARGETS)
        found = msgspec.json.decode(data, type=list[PushTarget]) if data is not None else []
        before, self.targets = self.targets, {each.name: each for each in found}
        return before != self.targets

    async def key(self) -> "PrivateKey":
        """The stored key; made and stored by the first caller."""
        async with self.lock:
            if self._key is None:
                push.check_installed()
                data = await self._host.log.get_kv(_CHANNEL, _KEY)
                if data is None:
                    data = push.new_key()
                    self._host.log.put_kv(_CHANNEL, _KEY, data)
                    await self._host.log.flush()
                self._key = push.key_from(data)
            return self._key

    async def public_key(self) -> str:
        return push.encode(push.public_of(await self.key()))

    def mine(self, caller: c.Caller) -> list[PushTarget]:
        """Those that this caller subscribed; all of them for an admin."""
        return [each for each in self.targets.values() if caller.may("admin") or _is_of(each, caller)]

    async def add(self, command: SubscribePush, caller: c.Caller, settings: NoticeSettings) -> PushTarget:
        push.check_installed()
        push.check_keys(command.p256dh, command.auth)
        target = PushTarget(
            name=push.name_of(command.endpoint),
            endpoint=command.endpoint,
            p256dh=command.p256dh,
            auth=command.auth,
            device=command.device[:80],
            kinds=_kinds(command.kinds),
            sessions=command.sessions,
            quiet=command.quiet,
            zone=command.zone,
            person=caller.person,
            by=caller.by,
            caller=caller.id,
            created=self._host.now(),
        )
        if problem := target_problem(target, settings):
            field = next((name for name in ("sessions", "quiet", "zone") if name in problem), "endpoint")
            raise BadRequest(f"{problem.replace('url', 'endpoint')}.", field=field)
        await self.load()
        own = [each for each in self.targets.values() if _is_of(each, caller) and each.name != target.name]
        for oldest in sorted(own, key=lambda each: each.created)[: max(0, len(own) + 1 - MOST_OF_ONE)]:
            del self.targets[oldest.name]
        if len(self.targets) >= MOST and target.name not in self.targets:
            raise Conflict(f"{MOST} browsers are told already, which are the most.")
        self.targets[target.name] = target
        await self._save()
        return target

    async def remove(self, name: str, caller: c.Caller | None = None) -> None:
        """`caller` None: the browser has withdrawn it."""
        await self.load()
        target = self.targets.get(name)
        if caller is not None:
            if target is None:
                raise NotFound("subscription", name, "`GET /v1/push` lists yours.")
            if not (caller.may("admin") or _is_of(target, caller)):
                raise Forbidden(f"{name!r} is somebody else's.")
        if self.targets.pop(name, None) is not None:
            await self._save()

    async def _save(self) -> None:
        data = msgspec.json.encode(list(self.targets.values())) if self.targets else None
        self._host.log.put_kv(_CHANNEL, _TARGETS, data)
        await self._host.log.flush()


def _kinds(names: list[str]) -> list[NoticeKind]:
    try:
        return msgspec.convert(names, list[NoticeKind])
    except msgspec.ValidationError:
        raise BadRequest(f"kinds are some of {', '.join(get_args(NoticeKind))}.", field="kinds") from None


def _is_of(target: PushTarget, caller: c.Caller) -> bool:
    return target.person == caller.person if caller.person else target.caller == caller.id
