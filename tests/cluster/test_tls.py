"""Hosts with certificates talk to each other, and to nobody else."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.cluster.tls import link_tls
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Unreachable
from portico.server.settings import ClusterSettings
from tests.cluster.conftest import Nodes
from tests.cluster.test_cluster import ADA, found, say
from tests.process import needs_openssl

_EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]


def signed(folder: Path, name: str) -> dict[str, Any]:
    """An authority of that name, and a host's certificate from it."""
    needs_openssl()
    authority, ca_key, cert, key = (folder / f"{name}-{each}.pem" for each in ("ca", "ca-key", "cert", "key"))
    subject = ["-subj", f"/CN={name}"]
    made = ["openssl", "req", "-x509", *_EC, "-keyout", str(ca_key), "-out", str(authority), *subject]
    subprocess.run(made, check=True, capture_output=True)
    host = ["openssl", "req", "-x509", *_EC, "-keyout", str(key), "-out", str(cert), "-subj", "/CN=host"]
    by = ["-CA", str(authority), "-CAkey", str(ca_key), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*host, *by, "-addext", "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
    return {"tls_cert": str(cert), "tls_key": str(key), "tls_ca": str(authority)}


async def test_hosts_show_each_other_their_certificates(nodes: Nodes, tmp_path: Path) -> None:
    ours, theirs = signed(tmp_path, "ours"), signed(tmp_path, "theirs")
    a, b = await nodes("a", **ours), await nodes("b", **ours)
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    assert a.cluster.link.url.startswith("https://")
    assert (await there.wait(await say(b, session.id, "hello"))).outcome == "completed"

    key = {"authorization": f"Bearer {await a.cluster.roster.key()}"}
    stranger = link_tls(ClusterSettings(**{**theirs, "tls_ca": ours["tls_ca"]}))
    assert stranger is not None
    for shown in (False, stranger.client):
        with pytest.raises(httpx.TransportError):
            async with httpx.AsyncClient(trust_env=False, verify=shown) as other:
                await other.post(f"{a.cluster.link.url}/do", headers=key, content=b"{}")
    with pytest.raises(Unreachable, match="no certificate"):
        await a.cluster.link.ask("http://127.0.0.1:1", c.CancelTurn(session="x"), ADA, "")

    async with asyncio.timeout(25):  # each waited 30 seconds for the other's idle connection
        await a.cluster.link.close()
        await b.cluster.link.close()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tls_key": ""}, "cluster.tls_key"),
        ({"tls_ca": "/nowhere.pem"}, "cluster.tls_ca"),
        ({"tls_ca": "tls_key"}, "cluster.tls_ca"),
        ({"tls_key": "tls_ca"}, "cluster.tls_cert"),
    ],
)
def test_certificates_that_cannot_be_used_are_told_by_their_field(
    tmp_path: Path, change: dict[str, str], field: str
) -> None:
    given = signed(tmp_path, "ours")
    given |= {name: given.get(value, value) for name, value in change.items()}
    with pytest.raises(BadRequest) as refused:
        link_tls(ClusterSettings(**given))
    assert refused.value.field == field
