"""Handshake, reconnection and subscriptions: `initialize`, `reconnect`, `subscribe`."""

import logging
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from portico import __version__, limits
from portico.doors.ahp.act import automations, changes, clients, command_prefix, completions, drafts, relay
from portico.doors.ahp.act.command import Method, optional, subject, text, texts
from portico.doors.ahp.connection.broker import ClientRecord
from portico.doors.ahp.connection.encoder import Encoder
from portico.doors.ahp.view import names, targets
from portico.doors.ahp.view.targets import ROOT, Target
from portico.doors.ahp.wire import envelope, numbers, rpc, versions
from portico.doors.ahp.wire.envelope import Act, Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.clients import CLIENT
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError, RateLimited
from portico.kernel.events import HOST, Record

if TYPE_CHECKING:
    from portico.doors.ahp.connection.connection import Connection

logger = logging.getLogger("portico.ahp")

_REPLAY_RECORDS = 5_000
"""With more missed records than this, a snapshot is sent: it is smaller."""
_ROUNDS = 20
"""Maximum of reads for a replay to catch up with a busy host; after that a snapshot is sent."""
_UNAVAILABLE = (NotFound, Forbidden, BadRequest, Conflict)
"""Errors of one channel (it was removed, its folder is no longer a repository) that do not affect the others."""
_LOCALE_CHARS = 35
"""Longest `locale`: what RFC 5646 asks programs to support."""
Acts = dict[Target, list[Act]]


# -- initialize ------------------------------------------------------------------------------------------------


async def initialize(connection: "Connection", params: Json) -> Json:
    if connection.ready:
        raise WireError(rpc.INVALID_REQUEST, "This connection is initialized already.")
    version = _version(params)
    wanted = list(dict.fromkeys(texts(params, "initialSubscriptions")))[: limits.SUBSCRIPTIONS]
    client_id = await _identify(connection, params)
    connection.title = _title(params)
    connection.shows_apps = relay.shows_apps(params)
    connection.expects_drafts = drafts.expected(params)
    connection.locale = str(params.get("locale") or "")[:_LOCALE_CHARS]
    await _welcome(connection, client_id, version)
    connection.spawn(connection.broker.describe_agents(), "agents")  # they may have changed since the last client
    snapshots = []
    for name in wanted:
        try:
            snapshots.append(await _subscribe(connection, name, params))
        except _UNAVAILABLE:
            continue  # what cannot be found is left out
    seed = connection.dialect.seed
    connection.catch_up()
    result: Json = {
        "protocolVersion": 1 if seed else version,
        "serverSeq": numbers.through(connection.host.log.seq),
        "snapshots": [each for each in snapshots if each is not None],
        "defaultDirectory": names.file_uri(str(connection.broker.app.workspaces[0])),
    }
    return result if seed else result | _about() | command_prefix.offered(connection) | automations.offered(connection)


def _about() -> Json:
    return {
        "serverInfo": {"name": "portico", "version": __version__, "title": "Portico"},
        "completionTriggerCharacters": completions.TRIGGERS,
        "telemetry": {"logs": names.LOGS + "{?level}"},
    }


def _title(params: Json) -> str:
    about = params.get("clientInfo")
    said = [about.get(field) for field in ("title", "name")] if isinstance(about, dict) else []
    return next((each for each in said if isinstance(each, str)), "")[: kernel_limits.TITLE_CHARS]


def _version(params: Json) -> str:
    offered = params.get("protocolVersions")
    if isinstance(offered, list):
        found = versions.negotiate(offered)
    else:
        number = params.get("protocolVersion")
        if isinstance(number, str):
            found = versions.negotiate([number])
        elif isinstance(number, int) and not isinstance(number, bool):
            found = versions.SEED if number == 1 else None
        else:
            raise BadRequest("Offer 'protocolVersions', or 'protocolVersion': 1.", field="protocolVersions")
    if found is None:
        supported = [*versions.SUPPORTED]
        words = f"This host speaks {', '.join(supported)} and version 1; update one of us."
        raise WireError(rpc.UNSUPPORTED_VERSION, words, {"supportedVersions": supported})
    return found


async def _identify(connection: "Connection", params: Json) -> str:
    """A client id belongs to the user who used it first: no other user may use it."""
    client_id = text(params, "clientId")
    if len(client_id) > kernel_limits.CLIENT_ID_CHARS:
        raise BadRequest(f"A 'clientId' has at most {kernel_limits.CLIENT_ID_CHARS} characters.", field="clientId")
    known = await _remembered(connection, client_id)
    if known is not None and known.caller != connection.caller.id:
        raise WireError(-32009, "This clientId belongs to somebody else.")
    return client_id


async def _remembered(connection: "Connection", client_id: str) -> ClientRecord | None:
    known = connection.broker.known.get(client_id)
    if known is not None:
        return known
    data = await connection.host.log.get_kv(HOST, CLIENT + client_id)
    return msgspec.json.decode(data, type=ClientRecord) if data else None


async def _welcome(connection: "Connection", client_id: str, version: str) -> None:
    from portico.doors.ahp.connection.connection import REPLACED

    known = ClientRecord(
        connection.caller.id,
        version,
        numbers.SPAN,
        connection.host.log.epoch,
        connection.shows_apps,
        connection.expects_drafts,
        connection.locale,
    )
    # First: of two tokens that take a new id at the same time, one is refused, and must not close the other's.
    await connection.host.do(c.IdentifyClient(client=client_id, value=msgspec.to_builtins(known)), connection.caller)
    before = connection.broker.clients.get(client_id)
    if before is not None and before is not connection:
        before.end(REPLACED, "The same client has connected again.")
        connection.joined |= before.joined
    connection.start(client_id, version)
    connection.broker.remember(client_id, known)


# -- subscribe -------------------------------------------------------------------------------------------------


async def subscribe(connection: "Connection", params: Json) -> Json:
    _check_delivery(params)
    snapshot = await _subscribe(connection, subject(connection, params, "resource"), params)
    return {} if snapshot is None else {"snapshot": snapshot}


def _check_delivery(params: Json) -> None:
    """Validate the maximum delay of actions. This host delays none, so every limit is met."""
    latency = (optional(params, "delivery", dict) or {}).get("maxLatencyMs")
    if latency is not None and (isinstance(latency, bool) or not isinstance(latency, int | float) or latency < 0):
        raise BadRequest("'delivery.maxLatencyMs' is a number of milliseconds.", field="delivery.maxLatencyMs")


async def _subscribe(connection: "Connection", name: str, params: Json) -> Json | None:
    target = await _target(connection, name)
    _check_room(connection, target)
    if target.kind in _SPECIAL:
        connection.subscribe(target, name)
        return await _special(connection, target, name)
    await _prepare(connection, target)
    return _snapshot(connection, target, name, _last(params))


async def _target(connection: "Connection", name: str) -> Target:
    if name.startswith(names.TERMINAL):  # resolve its owner if it is closed
        await connection.view.open(f"terminal/{name.removeprefix(names.TERMINAL)}")
    return targets.resolve(connection.view, name, connection.dialect.seed)


async def _prepare(connection: "Connection", target: Target) -> None:
    if target.kind == "terminal":
        connection.view.require("terminals")  # a shell shows keys and files
    session = await connection.broker.prepare(target)
    if session is not None:
        await clients.sort_out(connection, session)


_SPECIAL = ("watch", "logs", "changeset", "automations", "run")


async def _special(connection: "Connection", target: Target, name: str) -> Json | None:
    from portico.doors.ahp.act import logs, watches

    if target.kind == "logs":
        logs.follow(connection, target)
        return None
    try:
        if target.kind == "watch":
            state = watches.state(connection, target)
        elif target.kind in ("automations", "run"):
            state = connection.broker.automation_feed.state(target)
        else:
            state = await changes.state(connection, target)
    except Exception:  # the caller reports the error; a subscription without a snapshot must not remain
        connection.unsubscribe(target)
        raise
    connection.catch_up()  # the log advanced in the meantime; later actions follow this state
    return {"resource": name, "state": state, "fromSeq": numbers.through(connection.host.log.seq)}


def _check_room(connection: "Connection", target: Target) -> None:
    if target not in connection.targets and len(connection.targets) >= limits.SUBSCRIPTIONS:
        raise RateLimited(f"A client may have {limits.SUBSCRIPTIONS} subscriptions; end some.")


def _last(params: Json) -> int | None:
    """How many finished turns the client wants initially. At least one: `fetchTurns` continues from it."""
    view = optional(params, "view", dict) or {}
    turns = view.get("turns")
    return max(1, turns) if isinstance(turns, int) and not isinstance(turns, bool) else None


def _snapshot(connection: "Connection", target: Target, name: str, last: int | None = None) -> Json:
    """Take the snapshot and subscribe in one step, so that no record is missed between them."""
    state = connection.broker.snapshot(target, connection.dialect, connection.view, last)
    connection.subscribe(target, name)
    of = connection.broker.state(target.ident) if connection.shows_apps and target.kind == "session" else None
    if of is not None and "customizations" in state:
        state["customizations"] = relay.with_channels(connection, of, state["customizations"])
    if "turnsNextCursor" in state:
        connection.oldest[target] = state["turnsNextCursor"]
    return {"resource": name, "state": state, "fromSeq": numbers.through(connection.host.log.seq)}


# -- reconnect -------------------------------------------------------------------------------------------------


async def reconnect(connection: "Connection", params: Json) -> Json:
    if connection.ready:
        raise WireError(rpc.INVALID_REQUEST, "This connection is initialized already.")
    client_id = text(params, "clientId")
    last_seen = optional(params, "lastSeenServerSeq", int)
    if last_seen is None or last_seen < 0:
        raise BadRequest("'lastSeenServerSeq' must be a number.", field="lastSeenServerSeq")
    wanted = list(dict.fromkeys(texts(params, "subscriptions")))
    known = await _remembered(connection, client_id)
    if known is None or not known.version or known.caller != connection.caller.id:
        raise WireError(rpc.NOT_FOUND, "This host does not know the client; initialize first.")
    connection.behind = True
    connection.shows_apps = known.shows_apps
    connection.expects_drafts = known.expects_drafts
    connection.locale = known.locale
    try:
        await _welcome(connection, client_id, known.version)
        same_log = known.epoch in ("", connection.host.log.epoch)
        last_seen = last_seen if known.span == numbers.SPAN and same_log else numbers.FOREIGN
        return await _come_back(connection, wanted[: limits.SUBSCRIPTIONS], last_seen)
    finally:
        connection.caught_up()


async def _come_back(connection: "Connection", wanted: list[str], last_seen: int) -> Json:
    found: dict[Target, str] = {}
    special: dict[Target, Json] = {}
    missing: list[str] = []
    for name in wanted:
        try:
            target = await _target(connection, name)
            if target.kind in _SPECIAL:
                connection.subscribe(target, name)
                snapshot = await _special(connection, target, name)
                special |= {target: snapshot} if snapshot is not None else {}
            else:
                await _prepare(connection, target)
                found[target] = name
        except PorticoError as error:  # e.g. a broken repository: the other targets still reconnect
            logger.info("%s cannot come back to %r: %s", connection.client_id, name, error.message)
            missing.append(name)
    mark = numbers.mark(last_seen)
    acts = _at_hand(connection, found, mark)
    if acts is None:
        acts = await _from_the_log(connection, found, mark)
    if acts is None:
        snapshots = [_snapshot(connection, target, name) for target, name in found.items()]
        return {"type": "snapshot", "snapshots": [*snapshots, *special.values()]}
    for target, name in found.items():
        connection.subscribe(target, name)
    connection.catch_up(mark)
    named = [act for target, each in acts.items() for act in connection.named(target, each)]
    missed = sorted(connection.wanted(named, last_seen), key=attrgetter("number"))
    if ROOT in found:
        missed += _now(connection, ROOT, connection.broker.root_now(connection.view))
    for target in found:  # what follows is not in the log
        if target.kind == "chat" and connection.dialect.since("1.0.0"):
            missed += _now(connection, target, connection.broker.background.now(target.ident))
        state = connection.broker.state(target.ident) if target.kind in ("session", "seed") else None
        if state is not None and connection.broker.meta(state):
            missed += _now(connection, target, [connection.broker.meta_changed(state)])
        if state is not None and connection.shows_apps:
            missed += _now(connection, target, relay.now(connection, state))
    for target, snapshot in special.items():  # nothing of these is in the log
        if target.kind == "changeset":
            missed += _now(connection, target, [changes.content(snapshot["state"])])
        elif target.kind in ("automations", "run"):
            missed += _now(connection, target, connection.broker.automation_feed.now(target, snapshot["state"]))
    envelopes = rpc.Raw(envelope.together(missed))
    return {"type": "replay", "actions": envelopes, "missing": missing}


def _at_hand(connection: "Connection", found: dict[Target, str], mark: numbers.ReadMark) -> Acts | None:
    """All missed actions, if they are still in the replay buffer."""
    replay, seed = connection.broker.replay, connection.dialect.seed
    buffers = {target: replay.buffer(target, seed) for target in found if target != ROOT}
    if mark.seq > connection.host.log.seq or not all(buffer and buffer.reaches(mark) for buffer in buffers.values()):
        return None
    return {target: list(buffer.acts) for target, buffer in buffers.items() if buffer is not None}


async def _from_the_log(connection: "Connection", found: dict[Target, str], mark: numbers.ReadMark) -> Acts | None:
    """The same, translated from the log and cached for the next reconnect; None when a snapshot is needed."""
    channels = {channel: target for target in found for channel in _channels(connection, target)}
    records = await _missed(connection, list(channels), mark, found)
    if records is None:
        return None
    told = {target: _replay(connection, target, records) for target in found}
    if e.TurnResumed not in {type(record.event) for record in records}:
        # Older versions must receive a resumed turn as it was at that time.
        for target, each in told.items():
            connection.broker.replay.refill(target, connection.dialect.seed, mark.seq - 1, each)
    return told


def _channels(connection: "Connection", target: Target) -> list[str]:
    if target.kind == "terminal":
        return [f"terminal/{target.ident}"]
    if target.kind == "root":
        return []
    below = connection.host.catalogue.descendants(target.ident) if target.kind == "session" else []
    return [f"session/{target.ident}", *(f"session/{each.id}" for each in below)]


async def _missed(
    connection: "Connection", channels: list[str], mark: numbers.ReadMark, found: dict[Target, str]
) -> list[Record] | None:
    """Every record since then, up to now; None when a snapshot is needed."""
    log = connection.host.log
    if mark.seq > log.seq:
        return None  # from another host, or from one that was restored from a backup
    if any(target.kind == "session" for target in found):
        channels = [*channels, HOST]
    records: list[Record] = []
    at = mark.seq - 1
    for _ in range(_ROUNDS):
        upto = log.seq
        if at >= upto or not channels:
            return records if _complete(connection, records) else None
        batch = await log.read_all(*channels, after=max(0, at), limit=_REPLAY_RECORDS)
        records += batch
        full = len(batch) >= _REPLAY_RECORDS or sum(len(each.data) for each in batch) > kernel_limits.READ_BYTES // 4
        at = batch[-1].seq if full else upto
        if len(records) > _REPLAY_RECORDS:
            return None
        for channel in {each.channel for each in batch}:
            if channel.startswith("session/"):
                await connection.view.get(channel.removeprefix("session/"))
    return None


def _complete(connection: "Connection", records: list[Record]) -> bool:
    """Whether a replay of the records is complete: nothing was compacted, and no record needs an older state."""
    host = connection.host
    if records and records[0].time < host.now() - int(host.retention_hours * 3_600_000) // 2:
        return False
    told_otherwise = {e.SessionRemoved, e.ChatMoved} | (set() if connection.dialect.since("0.9.0") else {e.TurnResumed})
    kinds = {type(each.event) for each in records}
    return kinds.isdisjoint(told_otherwise) and not (e.PartEnded in kinds and any(map(corrects, records)))


def corrects(record: Record) -> bool:
    """Whether the record replaces parts. It is sent with the turn as it was then, which a replay no longer has."""
    return isinstance(record.event, e.PartEnded) and record.event.replaces > 0


def _replay(connection: "Connection", target: Target, records: list[Record]) -> list[Act]:
    encoder = Encoder(connection.broker, target, connection.dialect.seed)
    channels = set(_channels(connection, target))
    acts: list[Act] = []
    for record in records:
        if record.channel in channels:
            acts += encoder.acts(record)
    return acts


def _now(connection: "Connection", target: Target, said: list[Outgoing]) -> list[Act]:
    """The current state, for a client that missed the updates."""
    seed = connection.dialect.seed
    name = connection.targets.get(target) or targets.uri_of(connection.host, target, seed)
    to = envelope.ActionTarget(target.kind, name, seed)
    return [to.act(each, connection.own_number()) for each in said]


async def ping(connection: "Connection", params: Json) -> None:
    return None


COMMANDS = {
    "initialize": Method(initialize, "sessions"),
    "reconnect": Method(reconnect, "sessions"),
    "subscribe": Method(subscribe, "sessions", is_slow=changes.is_changeset),
    "ping": Method(ping, "sessions"),
}
