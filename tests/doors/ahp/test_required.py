"""What the published schemas require: a request without it is rejected and has no effect."""

from typing import Any

import pytest

from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient

VERSIONS = ["1", "0.5.1", "0.9.0", "1.0.0"]


def requests(client: WireClient, served: Served) -> dict[str, Json]:
    terminal: Json = {"terminal" if client.seed else "channel": "t:/1", "claim": client.claim}
    root: Json = {} if client.seed else {"channel": client.root}
    file = (served.work / "new.txt").as_uri()
    return {"createTerminal": terminal, "resourceWrite": {**root, "uri": file, "data": "x", "encoding": "utf-8"}}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("method", "missing"), [("createTerminal", "claim"), ("resourceWrite", "encoding")])
@pytest.mark.parametrize("given", ["absent", None])
async def test_a_request_without_a_required_field_is_rejected(
    connect: Connect, served: Served, version: str, method: str, missing: str, given: Any
) -> None:
    client = await connect(version)
    params = requests(client, served)[method]
    wrong = {key: value for key, value in params.items() if key != missing}
    with pytest.raises(Refused, match=missing) as refused:
        await client.request(method, **wrong, **({} if given == "absent" else {missing: given}))
    assert refused.value.code == -32602
    assert not (served.work / "new.txt").exists()
    assert await client.request(method, **params) in (None, {})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model", ["gpt-4.1", {"id": "gpt-4.1"}])
async def test_a_model_is_an_object_or_its_id(connect: Connect, served: Served, version: str, model: object) -> None:
    """The example of version 1 sends the id alone; it was an error."""
    client = await connect(version)
    await client.create_session("scripted:/s1", model=model)
    assert [each.model for each in served.host.list(drafts=True)] == ["gpt-4.1"]


async def test_version_1_rejects_an_action_on_an_unknown_session(connect: Connect) -> None:
    """A client of version 1 waited forever for its echo; later versions state that such an action is ignored."""
    client = await connect("1")
    seq = await client.dispatch("scripted:/none", "session/titleChanged", title="x")
    await client.wait(lambda: client.echoes(seq))
    assert "scripted:/none" in client.echoes(seq)[0]["rejectionReason"]
