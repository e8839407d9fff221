"""The targets of the settings: what is wrong with one is said, with the name of its table; and what each is told."""

import base64
from typing import Any

import pytest

from portico.features.notices.notice import WAITS, Delivery, Notice, NotSent, is_quiet_form, tried, wants
from portico.features.notices.send import body_of, keys_of, secret_of, signature
from portico.features.notices.targets import target_problem, targets_of
from portico.kernel.errors import BadRequest
from portico.server.settings import NoticeCommand, NoticeSettings, NoticeTarget, Webhook

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()
SETTINGS = NoticeSettings(allow_private=["box.local", "[::1]:8080", "port.local:8080"])


def webhook(**fields: Any) -> Webhook:
    return Webhook(**{"name": "phone", "url": "https://example.org/hook", "secret": SECRET, **fields})


def command(**fields: Any) -> NoticeCommand:
    return NoticeCommand(**{"name": "beep", "command": ["beep", "-x"], **fields})


RIGHT = {
    "a webhook": webhook(),
    "in plain HTTP to a host that is allowed": webhook(url="http://box.local/x"),
    "in plain HTTP to a port that is allowed": webhook(url="http://port.local:8080/x"),
    "in plain HTTP to a port of IPv6 that is allowed": webhook(url="http://[::1]:8080/x"),
    "with a port": webhook(url="https://example.org:8443/hook"),
    "with quiet hours": webhook(quiet="22:00-07:00", zone="Europe/Berlin"),
    "of one session": webhook(sessions="session-7"),
    "of mine": webhook(sessions="mine"),
    "with a secret of the environment": webhook(secret="", secret_env="KEY"),
    "with a secret in a file": webhook(secret="", secret_file="/x"),
    "a program": command(),
    "a program without arguments": command(command=["beep"]),
}


@pytest.mark.parametrize("target", RIGHT.values(), ids=RIGHT)
def test_nothing_is_wrong_with(target: Any) -> None:
    assert target_problem(target, SETTINGS) == ""


WRONG: dict[str, tuple[Any, str]] = {
    "no name": (webhook(name=""), "a name has"),
    "a name in capitals": (webhook(name="Phone"), "a name has"),
    "a name with a space": (webhook(name="my phone"), "a name has"),
    "a name that begins with a hyphen": (webhook(name="-phone"), "a name has"),
    "a long name": (webhook(name="x" * 41), "at most 40"),
    "a browser's name": (webhook(name="push-1"), "those of browsers"),
    "quiet for ever": (webhook(quiet="22:00-22:00"), "quiet = '22:00-22:00'"),
    "quiet until an hour that is none": (webhook(quiet="22:00-25:00"), "is not of the form"),
    "a zone that is none": (webhook(zone="Europe/Nowhere"), "no time zone 'Europe/Nowhere'"),
    "a zone that leads elsewhere": (webhook(zone="../../etc/passwd"), "no time zone"),
    "sessions of nobody": (webhook(sessions="yours"), "is none of 'all', 'mine'"),
    "another port than the allowed one": (webhook(url="http://port.local/x"), "url needs https"),
    "no address": (webhook(url=""), "url is an address"),
    "another scheme": (webhook(url="ftp://example.org"), "url is an address"),
    "no host": (webhook(url="https:///x"), "url is an address"),
    "a password in it": (webhook(url="https://me:pw@example.org"), "a name or password before '@'"),
    "plain HTTP": (webhook(url="http://example.org"), "url needs https"),
    "a port that is none": (webhook(url="https://example.org:99999/"), "url"),
    "no secret": (webhook(secret=""), "exactly one of secret"),
    "two secrets": (webhook(secret_env="KEY"), "exactly one of secret"),
    "a secret that is short": (webhook(secret="whsec_YWJj"), "at least 16 bytes"),
    "a secret that is no base64": (webhook(secret="whsec_?"), "at least 16 bytes"),
    "no program": (command(command=[]), "a program and its arguments"),
    "a program without a name": (command(command=[""]), "a program and its arguments"),
}


@pytest.mark.parametrize(("target", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(target: Any, words: str) -> None:
    assert words in target_problem(target, SETTINGS)


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        (NoticeSettings(webhooks=[webhook(), webhook()]), "notices.webhooks", "the name is taken"),
        (
            NoticeSettings(webhooks=[webhook()], commands=[command(name="phone")]),
            "notices.commands",
            "the name is taken",
        ),
        (NoticeSettings(commands=[command(command=[])]), "notices.commands", "'beep': command is a list"),
    ],
    ids=["twice", "of both kinds", "wrong"],
)
def test_the_table_that_is_wrong_is_named(settings: NoticeSettings, field: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        targets_of(settings)
    assert refused.value.field == field


def test_targets_are_known_by_name() -> None:
    settings = NoticeSettings(webhooks=[webhook()], commands=[command()])
    assert list(targets_of(settings)) == ["phone", "beep"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("", True),
        ("22:00-07:00", True),
        ("00:00-23:59", True),
        ("7:00-9:00", False),
        ("22:00 - 07:00", False),
        ("24:00-07:00", False),
        ("22:60-07:00", False),
        ("12:00-12:00", False),
        ("22:00", False),
    ],
)
def test_how_quiet_hours_are_written(text: str, right: bool) -> None:
    assert is_quiet_form(text) is right


def told(**fields: Any) -> Notice:
    return Notice(**{"kind": "approval", "text": "x", "time": 0, "session": "session-1", "folder": "/w/api", **fields})


@pytest.mark.parametrize(
    ("target", "notice", "wanted"),
    [
        ({}, told(), True),
        ({"kinds": ["approval"]}, told(), True),
        ({"kinds": ["question"]}, told(), False),
        ({"sessions": "session-1"}, told(), True),
        ({"sessions": "session-2"}, told(), False),
        ({"sessions": "mine"}, told(), True),
        ({"folders": ["/w"]}, told(), True),
        ({"folders": ["/w/api"]}, told(), True),
        ({"folders": ["/w/ap"]}, told(), False),
        ({"folders": ["/x", "/w"]}, told(), True),
        ({"folders": ["/w"]}, told(folder=""), False),
    ],
)
def test_what_a_target_wants(target: dict[str, Any], notice: Notice, wanted: bool) -> None:
    assert wants(NoticeTarget(name="t", **target), notice) is wanted


@pytest.mark.parametrize(
    ("notice", "channel", "about"),
    [
        (told(), "session/session-1", "session-1"),
        (told(job="job-1"), "session/session-1", "session-1"),
        (told(session="", job="job-1"), "job/job-1", "job-1"),
        (told(session="", automation="morning"), "automation/morning", "morning"),
    ],
)
def test_who_sees_a_notice_and_what_it_waits_behind(notice: Notice, channel: str, about: str) -> None:
    assert (notice.channel, notice.about) == (channel, about)


def test_attempts_come_further_apart_until_it_is_given_up() -> None:
    delivery, now, waits = Delivery("n1", "phone", told()), 1_000, []
    while delivery.waits:
        tried(delivery, now, "no answer")
        if delivery.waits:
            waits.append((delivery.next - now) // 1000)
            now = delivery.next
    assert waits == list(WAITS)
    assert (delivery.state, delivery.tries, len(delivery.attempts)) == ("failed", len(WAITS) + 1, len(WAITS) + 1)


def test_one_that_arrives_is_tried_no_more() -> None:
    delivery = Delivery("n1", "phone", told())
    tried(delivery, 1_000, "no answer")
    tried(delivery, 2_000)
    assert (delivery.state, [each.error for each in delivery.attempts]) == ("delivered", ["no answer", ""])


def test_the_same_bytes_go_out_at_every_attempt() -> None:
    delivery = Delivery("n1", "phone", told(title="T"))
    first = body_of(delivery)
    tried(delivery, 5_000, "no answer")
    assert body_of(delivery) == first
    assert first == (
        b'{"type":"approval","timestamp":"1970-01-01T00:00:00.000Z",'
        b'"data":{"id":"n1","text":"x","session":"session-1","title":"T","folder":"/w/api"}}'
    )


@pytest.mark.parametrize("wrong", ["", "whsec_", "short", "whsec_" + "A" * 8, "whsec_!!!!", f"{SECRET} whsec_YQ=="])
def test_a_secret_that_would_sign_nothing(wrong: str) -> None:
    with pytest.raises(NotSent):
        keys_of(wrong)


def test_each_secret_signs_and_each_message_has_its_own_signature() -> None:
    other = "whsec_" + base64.b64encode(b"fedcba9876543210").decode()
    both = signature(f"{SECRET} {other}", "n1", 7, b"x").split()
    assert both == [signature(SECRET, "n1", 7, b"x"), signature(other, "n1", 7, b"x")]
    assert (
        len({signature(SECRET, *each) for each in (("n1", 7, b"x"), ("n2", 7, b"x"), ("n1", 8, b"x"), ("n1", 7, b"y"))})
        == 4
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"secret_env": "NO_SUCH_KEY"}, "no variable 'NO_SUCH_KEY'"), ({"secret_file": "/nonexistent"}, "cannot be read")],
)
def test_a_secret_that_is_not_there_fails_the_attempt(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], words: str
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(NotSent, match=words):
        secret_of(webhook(secret="", **fields))
