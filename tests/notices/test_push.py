"""Web push: encrypted for the browser, signed by the host, without content, and only to who may see it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt
from joserfc.jwk import ECKey

from portico.agents.agent import Message
from portico.features.notices import commands, push
from portico.features.notices.commands import SubscribePush, UnsubscribePush
from portico.features.notices.notices import Notices
from portico.features.notices.push import PushTarget
from portico.features.people.commands import ShareSession
from portico.features.people.people import add_person
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Forbidden
from portico.server.identity import new_login, new_token, remove_person, revoke_token
from portico.server.settings import NoticeSettings
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.doors.standing import standing
from tests.features import feature
from tests.notices.receiver import Receiver, receiver
from tests.notices.test_notices import ME, SECRET, Desk
from tests.notices.test_notices import settings as notice_settings

KEY = ec.generate_private_key(ec.SECP256R1())
AUTH = b"0123456789abcdef"


def target(endpoint: str = "https://push.example/1", **more: Any) -> PushTarget:
    keys = {"p256dh": push.encode(push.public_of(KEY)), "auth": push.encode(AUTH), **more}
    return PushTarget(name="push-1", endpoint=endpoint, by="token:t", created=0, **keys)


def decrypted(body: bytes) -> bytes:
    """As a browser does it: by ECDH with its own key, from what stands at the head of the body."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, size, public = body[:16], body[20], body[21:86]
    assert (int.from_bytes(body[16:20], "big"), size) == (4096, 65)
    shared = KEY.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public))
    secret = push._hkdf(AUTH, shared, b"WebPush: info\0" + push.public_of(KEY) + public, 32)
    key = push._hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = push._hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
    plain = AESGCM(key).decrypt(nonce, body[86:], None)
    assert plain.endswith(b"\x02")
    return plain[:-1]


class PushService(Receiver):
    """What a vendor's push service and the browser behind it do: verify the sender, and decrypt."""

    @property
    def place(self) -> str:
        return self.url.split("/")[2]

    async def _note(self, path: str, headers: dict[str, str], body: bytes) -> None:
        scheme, _, rest = headers["authorization"].partition(" ")
        assert scheme == "vapid"
        parts = dict(each.strip().split("=", 1) for each in rest.split(","))
        point = push.decode(parts["k"])
        found: dict[str, str | list[str]] = {
            "kty": "EC",
            "crv": "P-256",
            "x": push.encode(point[1:33]),
            "y": push.encode(point[33:]),
        }
        claims = jwt.decode(parts["t"], ECKey.import_key(found), algorithms=["ES256"]).claims
        assert claims["aud"] == self.url.rpartition("/")[0]
        self.keys = (parts["k"], claims.get("sub"))
        plain = decrypted(body)
        assert len(plain) == push.SIZE
        await super()._note(path, headers, plain)


@pytest.fixture
async def at() -> AsyncIterator[PushService]:
    found = PushService()
    async with receiver(found):
        yield found


@pytest.fixture
def desk(open_host: HostOpener, clock: FakeClock) -> Desk:
    return Desk(open_host, clock)


def settings(at: PushService | None = None, **more: Any) -> NoticeSettings:
    """Allow the push service of the test, which is on loopback."""
    return notice_settings(**{"allow_private": [at.place] if at is not None else [], **more})


def subscription(url: str, **more: Any) -> SubscribePush:
    known = target(url)
    return SubscribePush(endpoint=url, p256dh=known.p256dh, auth=known.auth, **more)


def test_the_example_of_rfc_8291() -> None:
    """Its keys, its salt, its text, its bytes."""
    own = push.key_from(push.decode("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    known = target(
        p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth="BTBZMqHH6r4Tts7J_aSIgg",
    )
    text = b"When I grow up, I want to be a watermelon"
    assert push.encode(push.encrypt(known, text, push.decode("DGv6ra1nlYgDCS1FRnbzlw"), own)) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


async def test_a_browser_hears_that_something_waits_and_not_what(desk: Desk, at: PushService, tmp_path: Path) -> None:
    notices = await desk.open(settings(at, contact="mailto:ada@example.org"))
    named = await desk.host.do(subscription(at.url), ME)
    await at.until(lambda: len(at.got) == 1)
    assert at.got[0]["text"] == "This browser is told from now on."
    assert at.keys == (await notices.subscriptions.public_key(), "mailto:ada@example.org")
    session = await desk.session(tmp_path)
    await session.send(Message("approve"), by="token:ada")
    await at.until(lambda: len(at.got) == 2)
    got = at.got[1]
    told = {key: got[key] for key in ("text", "path", "tag")}
    assert told == {"text": "Something waits for you.", "path": f"/app/inbox/{session.id}.a3", "tag": session.id}
    assert b"make" not in got["body"]
    headers = got["headers"]
    assert (headers["urgency"], headers["content-encoding"], headers["ttl"]) == ("high", "aes128gcm", "86400")
    await desk.host.do(UnsubscribePush(push=named.push), ME)
    assert notices.subscriptions.targets == {}


async def test_what_did_not_arrive_is_sent_again_also_after_a_restart(
    desk: Desk, at: PushService, tmp_path: Path
) -> None:
    await desk.open(settings(at))
    await desk.host.do(subscription(at.url), ME)
    await at.until(lambda: len(at.got) == 1)
    at.status = 503
    await desk.turn(await desk.session(tmp_path))
    await at.until(lambda: at.requests == 2)
    notices = await desk.open(settings(at))
    (waiting,) = [each for each in notices.deliveries.values() if each.waits]
    assert waiting.notice.kind == "turn_done"
    at.status = 200
    desk.clock.advance(5)
    await at.until(lambda: len(at.got) == 2)
    assert at.got[1]["text"] == "Something has ended."


@pytest.mark.parametrize("looked", [False, True], ids=["before the look of each second", "after it"])
async def test_a_subscription_ends_with_its_token(desk: Desk, at: PushService, tmp_path: Path, looked: bool) -> None:
    """Bug: pushes went on to browsers whose token was revoked or whose person was removed."""
    notices = await desk.open(settings(at))
    await desk.host.do(subscription(at.url), ME)
    await at.until(lambda: len(at.got) == 1)
    notices.is_token = lambda ident: ident != ME.id
    if looked:
        await notices.poll()
        assert notices.subscriptions.targets == {}
    await desk.turn(await desk.session(tmp_path))
    await desk.host.log.flush()
    assert [each for each in notices.deliveries.values() if each.notice.kind == "turn_done"] == []
    await notices.poll()
    assert (notices.subscriptions.targets, await notices.subscriptions.load()) == ({}, False)


@pytest.mark.parametrize("ended", ["revoked", "removed", "logged out"])
async def test_a_host_ends_the_subscriptions_of_a_token_within_a_second(
    tmp_path: Path, at: PushService, ended: str
) -> None:
    async with standing(tmp_path) as here:
        home, tokens, notices = here.home, here.server.tokens, feature(here.server.host, Notices)
        add_person(home, "ada", ["read", "drive"])
        person = tokens.people.get("ada")
        assert person is not None
        if ended == "logged out":
            caller = tokens.by_id(new_login(home, person, 12))
        else:
            caller = tokens.by_token(new_token(home, "phone", ["read", "drive"], person="ada"))
        assert caller is not None
        target_ = target(at.url, caller=caller.id, person="ada")
        notices.subscriptions.targets[target_.name] = target_
        await notices.subscriptions._save()
        await notices.poll()
        assert len(notices.subscriptions.targets) == 1
        saved, save = asyncio.Event(), notices.subscriptions._save

        async def save_and_tell() -> None:
            await save()
            saved.set()

        notices.subscriptions._save = save_and_tell  # type: ignore[method-assign]
        match ended:
            case "revoked":
                revoke_token(home, "phone", "ada")
            case "removed":
                remove_person(home, "ada")
            case _:
                tokens.log_out(tokens.cookie(caller))
        await asyncio.wait_for(saved.wait(), 5)
        assert notices.subscriptions.targets == {}


async def test_a_subscription_that_the_browser_ended_goes(desk: Desk, at: PushService, tmp_path: Path) -> None:
    notices = await desk.open(settings(at))
    await desk.host.do(subscription(at.url), ME)
    await at.until(lambda: len(at.got) == 1)
    at.status = 410
    await desk.turn(await desk.session(tmp_path))
    await desk.until("delivered", "failed")
    assert notices.subscriptions.targets == {}
    await desk.turn(await desk.session(tmp_path))
    assert len(notices.deliveries) == 2


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"endpoint": "http://push.example/1"}, "endpoint"),
        ({"endpoint": "https://me@push.example/1"}, "endpoint"),
        ({"endpoint": "nonsense"}, "endpoint"),
        ({"p256dh": push.encode(b"\x04" + bytes(64))}, "p256dh"),
        ({"p256dh": "!"}, "p256dh"),
        ({"auth": "c2hvcnQ"}, "auth"),
        ({"kinds": ["gossip"]}, "kinds"),
        ({"quiet": "22-7"}, "quiet"),
        ({"zone": "Berlin"}, "zone"),
        ({"sessions": "yours"}, "sessions"),
    ],
)
async def test_a_wrong_subscription_is_named(desk: Desk, changed: dict[str, Any], field: str) -> None:
    await desk.open(settings())
    known = target()
    given = {"endpoint": known.endpoint, "p256dh": known.p256dh, "auth": known.auth, **changed}
    with pytest.raises(BadRequest) as found:
        await desk.host.do(SubscribePush(**given), ME)
    assert found.value.field == field


@pytest.mark.parametrize("allowed", [[], ["127.0.0.1"], ["127.0.0.1:2"], ["127.0.0.1:443"], ["localhost:1"]])
async def test_a_private_address_is_never_called(desk: Desk, tmp_path: Path, allowed: list[str]) -> None:
    """A browser's endpoint is whatever a client says it is. Bug: with a name in `allow_private`, a token with the scope
    read sent requests to any port of it."""
    notices = await desk.open(settings(allow_private=allowed))
    with pytest.raises(BadRequest, match="HOST:PORT"):
        await desk.host.do(subscription("http://127.0.0.1:1/push"), ME)
    await desk.host.do(subscription("https://127.0.0.1:1/push"), ME)
    await desk.attempts(1)
    (delivery,) = notices.deliveries.values()
    assert "a private address" in delivery.attempts[0].error


@pytest.mark.parametrize(("sessions", "told"), [("all", ["hers", "shared"]), ("mine", ["hers"])])
async def test_a_person_hears_of_what_they_may_see(
    desk: Desk, at: PushService, tmp_path: Path, sessions: str, told: list[str]
) -> None:
    await desk.open(settings(at))
    desk.host.workspaces.append(tmp_path)
    ada, bob = (c.Caller(f"t-{name}", name, frozenset({"read", "drive"}), person=name) for name in ("ada", "bob"))
    named = await desk.host.do(subscription(at.url, sessions=sessions), ada)
    await at.until(lambda: len(at.got) == 1)
    with pytest.raises(Forbidden):
        await desk.host.do(UnsubscribePush(push=named.push), bob)
    ids: dict[str, str] = {}
    for name, person in (("his", bob), ("shared", bob), ("hers", ada)):
        started = await desk.host.do(c.StartSession(agent="play", cwd=str(tmp_path)), person)
        ids[started.id] = name
        if name == "shared":
            await desk.host.do(ShareSession(session=started.id, person="ada", rights=["read"]), person)
        await desk.turn(await desk.host.get(started.id))
    await at.until(lambda: len(at.got) == 1 + len(told))
    assert sorted(ids[each["tag"]] for each in at.got[1:]) == told


@pytest.mark.parametrize("reader", ["ada", "bob", "admin", "host"])
async def test_a_person_sees_no_notice_to_another_one(desk: Desk, at: PushService, tmp_path: Path, reader: str) -> None:
    """Bug: everybody saw the test notices of other people. Here Bob shares a session with Ada, both have a browser, and
    the settings have a webhook for all and one for Bob."""
    hook = {"secret": SECRET, "url": "https://127.0.0.1:1/hook"}  # refused, and seen nevertheless
    hooks = [{"name": "all", **hook}, {"name": "his", "person": "bob", **hook}]
    notices = await desk.open(settings(at, webhooks=hooks))
    desk.host.workspaces.append(tmp_path)
    ada, bob = (c.Caller(f"t-{name}", name, frozenset({"read", "drive"}), person=name) for name in ("ada", "bob"))
    pushes = {(await desk.host.do(subscription(f"{at.url}{each.name}"), each)).push: each.name for each in (ada, bob)}
    for name in ("all", "his"):
        await desk.host.do(commands.TestNotice(target=name), ME)
    started = await desk.host.do(c.StartSession(agent="play", cwd=str(tmp_path)), bob)
    await desk.host.do(ShareSession(session=started.id, person="ada", rights=["read"]), bob)
    await desk.turn(await desk.host.get(started.id))
    await desk.attempts(8)
    scopes = frozenset({"read", "admin"} if reader == "admin" else {"read"})
    person = "" if reader == "host" else reader
    found = notices.visible(c.Caller("r", reader, scopes, person=person))
    seen = sorted((pushes.get(each.target, each.target), each.notice.kind) for each in found)
    ended, tested = "turn_done", "test"
    hers = [("ada", tested), ("ada", ended), ("all", ended)]
    his = [("all", ended), ("bob", tested), ("bob", ended), ("his", tested), ("his", ended)]
    everything = [("ada", tested), ("ada", ended), ("all", tested), *his]
    assert seen == {"ada": hers, "bob": his}.get(reader, everything)
