"""Clients with an id of their own: whose it is, and what must not be kept."""

import pytest

from portico import limits
from portico.features.chats.commands import SetDraft
from portico.features.people.commands import AddToken
from portico.features.readiness.commands import SignIn
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import BadRequest, Forbidden, PorticoError
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener

ADA = c.Caller("token-1", "ada", frozenset({"read"}))
BOB = c.Caller("token-2", "bob", frozenset(c.SCOPES))


async def test_a_clients_id_belongs_to_the_token_that_used_it_first(open_host: HostOpener) -> None:
    host = await open_host()
    identify = c.IdentifyClient(client="editor", value={"version": "1", "caller": "token-2"})
    await host.do(identify, ADA)
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)
    host = await open_host()
    await host.do(identify, ADA)
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)


async def test_a_client_that_comes_back_as_it_was_waits_for_no_commit(host: Host) -> None:
    """Every reconnect waited for the disk. That it was here is noted with the next commit, or it would expire."""
    identify = c.IdentifyClient(client="editor", value={"version": "1"})
    await host.do(identify, ADA)
    now = 2_000_000_000
    host.log._clock = host.log._database.clock = lambda: now  # type: ignore[attr-defined]
    commits = host.log.commits  # type: ignore[attr-defined]
    await host.do(identify, ADA)
    assert host.log.commits == commits  # type: ignore[attr-defined]
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)
    await host.audit("any", "test")
    await host.log.expire_kv("ahp.client/", now * 1000)
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)
    await host.do(c.IdentifyClient(client="editor", value={"version": "2"}), ADA)
    assert host.log.commits == commits + 2  # type: ignore[attr-defined]  # the audit, and what is new of the client


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (c.IdentifyClient(client="x" * (kernel_limits.CLIENT_ID_CHARS + 1)), "client"),
        (SignIn(resource="r", token="x" * (limits.LOGIN_TOKEN_CHARS + 1)), "token"),
        (SignIn(resource="nobody asks", token="x"), "resource"),
    ],
)
async def test_bounds(host: Host, command: c.Command, field: str) -> None:
    with pytest.raises(PorticoError) as refused:
        await host.do(command, BOB)
    assert refused.value.field == field


async def test_nobody_acts_in_the_name_of_a_client(host: Host) -> None:
    """A token that may drive finished what an editor ran, with a result of its own."""
    mine = c.Caller("token-1", "ada", frozenset(c.SCOPES))
    editor = c.Caller("token-1", "ada", frozenset(c.SCOPES), client="editor")
    session = await host.start(by="test", cwd="/")
    await host.do(c.JoinSession(session=session.id, client="editor"), editor)
    await host.do(c.JoinSession(session=session.id, client="script"), mine)
    await host.do(c.IdentifyClient(client="editor", value={"version": "1"}), mine)
    for client in ("editor", "script"):
        for command in (
            c.JoinSession(session=session.id, client=client),
            c.LeaveSession(session=session.id, client=client, abandon=True),
            c.ReportContent(session=session.id, call="c1", client=client, content=[]),
            c.CompleteCall(session=session.id, call="c1", client=client, ok=True),
        ):
            with pytest.raises(Forbidden, match="somebody else"):
                await host.do(command, BOB)
    assert [each.id for each in session.state.clients] == ["editor", "script"]
    await host.do(c.LeaveSession(session=session.id, client="script"), mine)
    assert [each.id for each in session.state.clients] == ["editor"]


async def test_a_login_that_counts_for_everybody_is_an_admins(host: Host) -> None:
    """Whoever may only read gave the agents a token of his own, for all sessions that no editor had begun."""
    sign_in = SignIn(resource="r", token="mine")
    with pytest.raises(Forbidden, match="'admin'"):
        await host.do(sign_in, ADA)
    for caller in (BOB, c.Caller("token-1", "ada", frozenset({"read"}), client="editor")):
        with pytest.raises(BadRequest, match="Nothing here asks"):
            await host.do(sign_in, caller)


@pytest.mark.parametrize(
    "key", ["plugin/x", "customization/x", "draft", "told", "changes", "jobs/tools", "annotation/x", "reviewed/x"]
)
async def test_what_the_host_reads_is_not_for_scripts(host: Host, key: str) -> None:
    """A plugin without an id ended every turn of its session."""
    session = await host.start(by="test", cwd="/")
    with pytest.raises(Forbidden, match="another name"):
        await host.do(c.ShareData(session=session.id, key=key, value={}), BOB)


async def test_an_agents_commands_are_its_own(host: Host) -> None:
    session = await host.start(by="test", cwd="/")
    config = {"commands": [{"name": "mine"}]}
    with pytest.raises(Forbidden, match="announces"):
        await host.do(c.StartSession(cwd="/", config=config), BOB)
    with pytest.raises(Forbidden, match="announces"):
        await host.do(c.ConfigureSession(session=session.id, values=config), BOB)
    await session.append(e.SessionConfigured(values=config, by="agent"))
    await host.do(c.ConfigureSession(session=session.id, values={**config, "approvals": "ask"}), BOB)
    with pytest.raises(Forbidden, match="announces"):
        await host.do(c.ConfigureSession(session=session.id, values={"commands": None}), BOB)


async def test_what_clients_keep_beside_a_session_is_bounded(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hundred requests of a token that may drive took as many megabytes of memory."""
    session = await host.start(by="test", cwd="/")
    for name, bound in (("CLIENT_DATA_BYTES", 10_000), ("CLIENT_BYTES", 1_000), ("CONFIG_BYTES", 5_000)):
        monkeypatch.setattr(kernel_limits, name, bound)
    monkeypatch.setattr(kernel_limits, "CLIENT_DATA_KEYS", 4)
    monkeypatch.setattr(kernel_limits, "CLIENTS", 2)

    async def does(command: c.Command) -> str:
        try:
            await host.do(command, BOB)
        except PorticoError as error:
            return error.code
        return ""

    def share(key: str, size: int) -> c.Command:
        return c.ShareData(session=session.id, key=key, value={"x": "x" * size})

    assert [await does(share(key, 4_000)) for key in ("a", "b", "b", "c")] == ["", "", "", "too_large"]
    assert [await does(share(key, 10)) for key in ("d", "e", "f", "e")] == ["", "", "rate_limited", ""]
    assert await does(SetDraft(session=session.id, text="x" * 10_000)) == "rate_limited"
    assert await does(c.ShareData(session=session.id, key="a")) == ""
    assert await does(SetDraft(session=session.id, text="x" * 10_000)) == "too_large"
    values = [{"a": "x" * 3_000}, {"b": "x" * 3_000}, {"a": "x"}, {"b": "x" * 3_000}]
    found = [await does(c.ConfigureSession(session=session.id, values=each)) for each in values]
    assert found == ["", "too_large", "", ""]
    joined = [c.JoinSession(session=session.id, client=each) for each in ("one", "two", "three", "two")]
    assert [await does(each) for each in joined] == ["", "", "rate_limited", ""]
    assert await does(c.JoinSession(session=session.id, client="two", meta={"x": "x" * 1_000})) == "too_large"


@pytest.mark.parametrize("command", [SignIn(resource="r", token="secret"), AddToken(name="x")])
async def test_what_is_secret_leaves_no_receipt(host: Host, command: c.Command) -> None:
    """A command with an id is answered alike again, so its answer is stored: a token never is."""
    with pytest.raises(BadRequest, match="without an id"):
        await host.do(command, BOB.asking("k"))
