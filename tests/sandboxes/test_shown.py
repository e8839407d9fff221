"""The record of connections where people read it: REST, the export, a job, and the command line."""

import json
from pathlib import Path

import pytest

from portico.cli.network import print_hosts, size
from portico.features.sandboxes.record import NetworkRecord
from portico.features.sandboxes.shapes import HostUse
from portico.kernel.session import Session
from portico.sandbox.network import Destination
from tests.doors.standing import Standing, standing


def connect(here: Standing, session: Session) -> None:
    record = here.server.features[NetworkRecord]
    record.opened(session, Destination("pypi.org", 443), "policy")
    record.moved(session, Destination("pypi.org", 443), 10, 2000)
    record.refused(session, Destination("evil.test", 443), "person:ada")


async def test_over_rest_and_in_the_export(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        ident = await here.start()
        assert (await here.http.get(f"/v1/sessions/{ident}/network")).json() == {"hosts": []}
        connect(here, await here.server.host.get(ident))
        await here.say(ident, "[[say:hello]]")
        hosts = (await here.http.get(f"/v1/sessions/{ident}/network")).json()["hosts"]
        assert {each["host"]: (each["count"], each["refused"]) for each in hosts} == {
            "pypi.org": (1, 0),
            "evil.test": (0, 1),
        }
        text = (await here.http.get(f"/v1/sessions/{ident}/export?format=markdown")).text
        assert "| `pypi.org:443` | 1 | 0 | 10 | 2000 | policy |" in text
        assert "| `evil.test:443` | 0 | 1 | 0 | 0 |  |" in text
        await here.server.features[NetworkRecord].sweep()
        lines = (await here.http.get(f"/v1/sessions/{ident}/export?format=jsonl")).text.splitlines()
        events = [json.loads(line)["event"] for line in lines]
        assert [each["host"] for each in events if each["type"] == "network.reached"] == ["pypi.org", "evil.test"]
        assert (await here.stranger.get(f"/v1/sessions/{ident}/network")).status_code == 401


async def test_a_session_without_connections_has_no_section(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        ident = await here.start()
        assert "Network" not in (await here.http.get(f"/v1/sessions/{ident}/export?format=markdown")).text


def test_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_hosts([HostUse("pypi.org", 443, 2, 0, 1500, 3_200_000, 0, 0, ["policy"]), HostUse("*", 0, refused=9_000)])
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:5] for row in rows] == [
        ["pypi.org:443", "2", "0", "1.5 kB", "3.2 MB"],
        ["other hosts", "0", "9000", "0 B", "0 B"],
    ]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (5 * 10**12, "5000.0 GB")])
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
