"""The labels of approvals in the language of the client (seed 004: `locale`)."""

import json
from pathlib import Path

import pytest

from portico.doors.ahp.view import parts
from portico.doors.ahp.wire.labels import ENGLISH, OTHERS, labels_of, localized
from portico.features.sandboxes.access import OPTIONS
from portico.kernel.events import Option
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import standing


@pytest.mark.parametrize(
    ("locale", "deny"),
    [
        ("en", "Deny"),
        ("en-US", "Deny"),
        ("de", "Ablehnen"),
        ("de-AT", "Ablehnen"),
        ("DE_ch", "Ablehnen"),
        ("fr-CA", "Refuser"),
        ("es-419", "Denegar"),
        ("ja", "拒否"),
        ("zh-Hans-CN", "拒绝"),
        ("tlh", "Deny"),
        ("", "Deny"),
        ("-", "Deny"),
    ],
)
def test_the_language_of_a_locale(locale: str, deny: str) -> None:
    option = json.dumps(parts.option(Option("deny", "Deny", False)), separators=(",", ":")).encode()
    assert json.loads(localized(option, labels_of(locale)))["label"] == deny


def test_every_option_has_a_label_in_every_language() -> None:
    assert {each.id: each.label for each in OPTIONS} == ENGLISH
    assert {len(words) for words in OTHERS.values()} == {len(ENGLISH)}


def test_a_text_that_quotes_an_option_stays_as_it_is() -> None:
    quoted = json.dumps({"text": '{"id":"deny","label":"Deny"}'}, separators=(",", ":")).encode()
    assert localized(quoted, labels_of("de")) == quoted


@pytest.mark.parametrize("version", ["1", "0.5.1", "1.0.0"])
async def test_two_editors_in_two_languages(tmp_path: Path, version: str) -> None:
    """Live, in a snapshot, and after a reconnect, which carries no locale."""
    script = tmp_path / "script.yaml"
    script.write_text("rules: [{match: write, steps: [{do: write, path: a.txt, text: x}]}]")
    async with standing(tmp_path, script=script) as here:
        address = f"{here.url.replace('http', 'ws')}/ahp?tkn={here.home.token()}"
        async with (
            opened(WireClient(address, "german", version)) as german,
            opened(WireClient(address, "english", version)) as english,
        ):
            await german.initialize(locale="de-DE")
            await english.initialize()
            chat = await german.create_session("scripted:/one")
            await german.say(chat, "turn-1", "write")

            def labels(client: WireClient) -> list[str]:
                ready = client.actions(client.verb("toolCallReady"))
                shown = ready[-1] if ready else {}
                return [each["label"] for each in shown.get("options") or []]

            await german.wait(lambda: labels(german))
            assert labels(german) == ["Einmal erlauben", "In dieser Sitzung erlauben", "Ablehnen"]
            snapshot = json.dumps(await english.subscribe(chat))
            assert '"Allow once"' in snapshot
            assert "erlauben" not in snapshot
            await german.drop()
            await german.open()
            assert "Allow once" not in json.dumps(await german.reconnect())
            assert "Einmal erlauben" in json.dumps(await german.subscribe(chat), ensure_ascii=False)
