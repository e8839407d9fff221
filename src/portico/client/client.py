"""Calls and streams. A dropped stream reconnects automatically, after the last event that it has yielded."""

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from portico import limits
from portico.client.context import chosen, named_token
from portico.client.methods import Methods
from portico.client.record import RemoteRecord, decoder
from portico.client.tls import authorities, is_near, trusting
from portico.features.sandboxes.shapes import NetworkUse, SandboxChoice
from portico.features.usage.shapes import UsageAnswer
from portico.kernel import commands as c
from portico.kernel import errors
from portico.kernel.agent import AgentInfo, Check
from portico.kernel.errors import KINDS, PorticoError, Unreachable
from portico.kernel.events import Json, QuestionResponse, TurnEnded, TurnStarted
from portico.kernel.state import ChangeList, SessionState, Summary
from portico.server.home import Home, HostEndpoint

_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Delays between attempts to reconnect; the last one repeats."""
_PASSING = (429, 503)
"""The host is reachable but busy, starting or stopping: a stream retries."""

_DOWN = b": down "


class RemoteError(PorticoError):
    """An error the host answered with, carrying the host's own code."""

    def __init__(self, code: str, message: str, field: str | None, status: int) -> None:
        super().__init__(message, field=field)
        self.code = code
        self.status = status


class _Outage:
    """How long a host has been unreachable."""

    def __init__(self, reconnect_timeout: float) -> None:
        self._timeout = reconnect_timeout
        self._began = 0.0
        self.tries = 0

    def over(self) -> None:
        self.tries = 0

    def goes_on(self) -> bool:
        """Count a failed attempt; return False if it was the last one."""
        now = asyncio.get_running_loop().time()
        if self.tries == 0:
            self._began = now
        self.tries += 1
        return now - self._began <= self._timeout

    @property
    def wait(self) -> float:
        return _RETRY_SECONDS[min(max(self.tries - 1, 0), len(_RETRY_SECONDS) - 1)]


class Client(Methods):
    """Calls and streams of one host. Each command has a method of its name (`methods.py`)."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        reconnect_timeout: float = 30.0,
        socket: str | None = None,
        certificate: str | None = None,
        cacert: str = "",
    ) -> None:
        """`socket`: a Unix socket to connect to; `certificate`: a file with the only certificate to trust; `cacert`: a
        file with the only authorities to trust. Hosts on other machines are reached through the proxies of the
        environment (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`)."""
        self.url = url
        self.reconnect_timeout = reconnect_timeout
        self.on_trouble: Callable[[str], None] = lambda words: None
        """Called with the reason when a stream stalls: its host is down or cannot write. It resumes automatically."""
        self._home: Home | None = None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Loading all certificates takes 25 ms. Plain HTTP needs none, and no redirect is followed.
        verify = trusting(certificate) if certificate else not url.startswith("http:") and authorities(cacert)
        near = socket is not None or certificate is not None or is_near(url)
        transport = httpx.AsyncHTTPTransport(uds=socket, verify=verify, trust_env=False) if near else None
        try:
            self._http = httpx.AsyncClient(
                base_url=url,
                headers=headers,
                timeout=httpx.Timeout(30, connect=5),
                trust_env=not near,
                verify=verify,
                transport=transport,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise Unreachable(f"The proxy of the environment cannot be used: {error}. Check HTTPS_PROXY.") from error

    @classmethod
    def local(cls, home: Path | None = None) -> "Client":
        """The host that runs on this machine and home folder, found by its endpoint file; or the one that
        PORTICO_URL, PORTICO_CONTEXT or the saved choice names."""
        elsewhere = chosen()
        if elsewhere is not None:
            return cls(elsewhere.url, elsewhere.token or None, cacert=elsewhere.cacert)
        place = Home.default(home)
        endpoint = place.endpoint()
        if endpoint is None:
            start = "portico serve" if home is None else f"portico serve --home {shlex.quote(str(home))}"
            raise Unreachable(f"No host runs on the home folder {str(place.path)!r}. Start one with: {start}")
        token = named_token() or _token(place, endpoint)
        client = cls(endpoint.url, token, socket=endpoint.socket, certificate=endpoint.certificate)
        client._home = place
        return client

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    # -- calls -------------------------------------------------------------------------------------------------

    async def call(self, method: str, path: str, body: Any = None, /, **query: Any) -> bytes:
        """Make one call of the REST API. Errors of the host are raised as `RemoteError`."""
        return await self._call(method, path, body, query)

    async def _call(
        self,
        method: str,
        path: str,
        body: Any,
        query: Json,
        timeout: Any = httpx.USE_CLIENT_DEFAULT,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        params = {name: _text(value) for name, value in query.items() if value is not None}
        try:
            answer = await self._http.request(
                method, path, content=content, params=params, timeout=timeout, headers=headers
            )
        except httpx.TransportError as error:
            if isinstance(error, httpx.ConnectError) and self._look_again():  # nothing was sent
                return await self._call(method, path, body, query, timeout, headers)
            raise Unreachable(f"The host at {self.url} does not answer: {_words(error)}.") from error
        if answer.status_code >= 400:
            raise _remote(answer.status_code, answer.content)
        return answer.content

    def post_stream(
        self, path: str, content: bytes, headers: dict[str, str], timeout: httpx.Timeout
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """POST bytes and read the answer as it arrives. Errors are not raised: the answer has its status."""
        return self._http.stream("POST", path, content=content, headers=headers, timeout=timeout)

    async def about(self) -> Json:
        found: Json = msgspec.json.decode(await self.call("GET", "/v1"))
        return found

    async def agents(self) -> list[AgentInfo]:
        class _Agents(msgspec.Struct):
            agents: list[AgentInfo]

        return msgspec.json.decode(await self.call("GET", "/v1/agents"), type=_Agents).agents

    async def sandbox(self, *, session: str = "", cwd: str = "", agent: str = "") -> SandboxChoice:
        """Return the sandboxes that can be chosen for a session, or for a new one in a folder."""
        given = {"session": session, "cwd": cwd, "agent": agent}
        found = await self.call("GET", "/v1/sandbox", **{name: value for name, value in given.items() if value})
        return msgspec.json.decode(found, type=SandboxChoice)

    async def usage(self, by: Sequence[str], days: int = 30, east: int = 840) -> UsageAnswer:
        """Added up by some of day, session, agent, model, by; `east` is the zone as in `GET /v1/usage`."""
        found = await self.call("GET", "/v1/usage", by=",".join(by), days=days, east=east)
        return msgspec.json.decode(found, type=UsageAnswer)

    async def default_agent(self) -> str | None:
        """Return the default agent of new sessions, as far as the host knows it without starting one."""
        found = msgspec.json.decode(await self.call("GET", "/v1/agents"))["default"]
        return str(found) if found is not None else None

    async def find_agents(self) -> list[str]:
        """Make the host search for agents again; return the new ids."""
        found: list[str] = msgspec.json.decode(await self.call("POST", "/v1/agents/find", {}))["added"]
        return found

    async def check_agent(self, ident: str) -> Check:
        """Start an agent on the host and perform its first handshake. It can take a minute."""
        path = f"/v1/agents/{segment(ident)}/check"
        answer = await self._call("POST", path, None, {}, limits.AGENT_CHECK_SECONDS + 10)
        return msgspec.json.decode(answer, type=Check)

    async def import_session(self, archive: Json, *, agent: str | None = None, cwd: str | None = None) -> str:
        """Import a session of another host from its archive; return its id on this host."""
        body = {"archive": archive, "agent": agent, "cwd": cwd}
        answer = await self._call("POST", "/v1/sessions/import", body, {}, 120)
        return str(msgspec.json.decode(answer)["id"])

    async def sessions(self, **query: Any) -> list[Summary]:
        class _Sessions(msgspec.Struct):
            sessions: list[Summary]

        return msgspec.json.decode(await self.call("GET", "/v1/sessions", **query), type=_Sessions).sessions

    async def start(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str = "",
        config: Json | None = None,
        worktree: bool | Json = False,
        folders: Sequence[str] = (),
        draft: bool = False,
    ) -> "RemoteSession":
        """Start a session. `worktree`: in a new git worktree; `{"name": ..., "base": ...}` sets its name or base.
        `folders`: where it works besides `cwd`. `draft`: lists omit it until its first message."""
        isolation = worktree if isinstance(worktree, bool) else msgspec.convert(worktree, c.Isolation)
        summary = await self.start_session(
            agent=agent,
            model=model,
            cwd=cwd,
            title=title,
            config=config or {},
            worktree=isolation,
            folders=list(folders),
            draft=draft,
        )
        return RemoteSession(self, summary.id)

    def session(self, ident: str) -> "RemoteSession":
        return RemoteSession(self, ident)

    async def approve(self, approval: str, *, allow: bool | None = None, option: str | None = None) -> None:
        await self.answer_approval(approval, allow=allow, option=option)

    async def answer(self, question: str, text: str | None = None, response: QuestionResponse = "accept") -> None:
        await self.answer_question(question, response=response, text=text)

    async def do(self, command: c.Command, *, request: str = "") -> Any:
        """Run any command, over its own route if it has one. The answer has the type that the command declares."""
        kind, said = type(command), msgspec.to_builtins(command)
        name = said.pop("command")
        headers = {"Idempotency-Key": request} if request else {}
        if kind.http is None:
            body = {"command": name, "arguments": said}
            return shaped(kind, await self._call("POST", "/v1/commands", body, {}, headers=headers))
        path = kind.http.path
        for part in re.findall(r"{(\w+)}", path):
            path = path.replace(f"{{{part}}}", segment(said.pop(kind.about if part == "id" else part)))
        return shaped(kind, await self._call(kind.http.method, path, said or None, {}, headers=headers))

    # -- streams -----------------------------------------------------------------------------------------------

    async def follow(
        self, path: str, after: int = 0, by_seq: bool = False, **query: Any
    ) -> AsyncGenerator[RemoteRecord, None]:
        """Events behind the cursor, for ever. A dropped connection or a restarted host is waited out, up to
        `reconnect_timeout` seconds; however long nothing happened before counts for nothing. `cursor_lost` (410): the
        host has another log now; read the state again."""
        outage = _Outage(self.reconnect_timeout)
        cursor = str(after)
        while True:
            try:
                async with aclosing(self._stream(path, cursor, query)) as records:
                    async for record in records:
                        outage.over()
                        if record is not None:
                            number = record.seq if by_seq else record.pos
                            cursor = f"{number}.{record.epoch}" if record.epoch else str(number)
                            yield record
            except httpx.TransportError as error:
                if not outage.goes_on():
                    raise Unreachable(f"The host at {self.url} does not come back: {_words(error)}.") from error
                if outage.tries == 2:  # a single failure may be transient
                    self.on_trouble("the host is gone; waiting for it to come back")
                self._look_again()
            except RemoteError as error:
                if error.status not in _PASSING or not outage.goes_on():
                    raise
            await asyncio.sleep(outage.wait)

    async def _stream(self, path: str, after: str, query: dict[str, Any]) -> AsyncGenerator[RemoteRecord | None, None]:
        """First None: the host is there."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
        timeout = httpx.Timeout(60, connect=5)  # the host sends a heartbeat every 15 seconds
        async with self._http.stream("GET", path, headers=headers, params=query, timeout=timeout) as answer:
            if answer.status_code >= 400:
                raise _remote(answer.status_code, await answer.aread())
            yield None
            down, epoch = b"", ""
            async for line in _lines(answer):
                if line.startswith(b"id: "):
                    epoch = epoch or line.partition(b".")[2].decode("ascii", "replace").strip()
                elif line.startswith(b'data: {"seq"'):
                    record = decoder.decode(line[6:])
                    record.epoch = epoch
                    yield record
                elif line.startswith(_DOWN) and line != down:  # repeated with every heartbeat
                    down = line
                    self.on_trouble(msgspec.json.decode(line.removeprefix(_DOWN), type=str))

    def _look_again(self) -> bool:
        """Return whether the host has another address now: one that was restarted may listen on another port."""
        endpoint = self._home.endpoint() if self._home is not None else None
        if endpoint is None or endpoint.url == self.url:
            return False
        self.url = endpoint.url
        self._http.base_url = endpoint.url
        return True


def segment(name: str) -> str:
    """Encode a name as one segment of a path: a slash or `..` in it cannot address another path."""
    return quote(name, safe="").replace(".", "%2E")


class RemoteSession:
    def __init__(self, client: Client, ident: str) -> None:
        self.client = client
        self.id = ident

    @property
    def path(self) -> str:
        return f"/v1/sessions/{segment(self.id)}"

    async def state(self) -> SessionState:
        return msgspec.json.decode(await self.client.call("GET", self.path), type=SessionState)

    async def suggestions(self, word: str) -> list[Json]:
        """Return files (`@`) and commands (`/`) that match a word: `text`, and `about` if there is a description."""
        found: Json = msgspec.json.decode(await self.client.call("GET", f"{self.path}/suggestions", q=word))
        items: list[Json] = found["items"]
        return items

    async def head(self) -> int:
        """The position of the newest event."""
        page: Json = msgspec.json.decode(await self.client.call("GET", f"{self.path}/events", limit=1))
        return int(page["head"])

    def follow(self, after: int = 0) -> AsyncGenerator[RemoteRecord, None]:
        return self.client.follow(f"{self.path}/events", after)

    async def post(
        self, text: str, *, busy: c.Busy = "queue", model: str | None = None, attachments: list[Json] | None = None
    ) -> Json:
        """Send a message without waiting; return `{turn}` or `{queued, pending, position}`."""
        sent = await self.client.send_message(self.id, text, busy=busy, model=model, attachments=attachments or [])
        found: Json = msgspec.to_builtins(sent)
        return found

    async def send(self, text: str, *, model: str | None = None) -> AsyncGenerator[RemoteRecord, None]:
        """Send a message and yield all events of its turn, until the turn ends. If queued, wait for its turn."""
        after = await self.head()
        sent = await self.post(text, model=model)
        async with aclosing(self._turn(after, sent.get("turn"), sent.get("pending"))) as records:
            async for record in records:
                yield record

    async def resumed(self) -> AsyncGenerator[RemoteRecord, None]:
        """Resume the last turn, if it failed or was interrupted, and yield all further events."""
        after = await self.head()
        async with aclosing(self._turn(after, await self.resume())) as records:
            async for record in records:
                yield record

    async def _turn(
        self, after: int, turn: str | None, pending: str | None = None
    ) -> AsyncGenerator[RemoteRecord, None]:
        async with aclosing(self.follow(after)) as records:
            async for record in records:
                event = record.event
                if isinstance(event, TurnStarted) and pending is not None and event.pending == pending:
                    turn = event.turn
                if turn is not None and getattr(event, "turn", turn) == turn:
                    yield record
                if isinstance(event, TurnEnded) and event.turn == turn:
                    return

    async def cancel(self) -> None:
        await self.client.cancel_turn(self.id)

    async def resume(self) -> str:
        return (await self.client.resume_turn(self.id)).turn

    async def rename(self, title: str) -> None:
        await self.client.rename_session(self.id, title)

    async def delete(self) -> str:
        """Delete the session. Return what is kept of its worktree, and why; usually nothing."""
        return (await self.client.delete_session(self.id)).kept

    async def changes(self, turn: str | None = None) -> ChangeList:
        """Return what its turns, or one of them, changed in its folder."""
        return msgspec.json.decode(await self.client.call("GET", f"{self.path}/changes", turn=turn), type=ChangeList)

    async def network(self) -> NetworkUse:
        """Return the hosts that its sandboxed programs connected to, or tried to."""
        return msgspec.json.decode(await self.client.call("GET", f"{self.path}/network"), type=NetworkUse)

    async def diff(self, path: str | None = None, turn: str | None = None) -> str:
        """Return the changes as a unified diff, of one file or of all."""
        return (await self.client.call("GET", f"{self.path}/changes/diff", path=path, turn=turn)).decode()

    async def archive(self) -> Json:
        """Return an archive with its blobs, for `Client.import_session` of another host."""
        found: Json = msgspec.json.decode(await self.client.call("GET", f"{self.path}/archive"))
        return found

    async def export(self, form: str = "markdown") -> bytes:
        return await self.client.call("GET", f"{self.path}/export", format=form)


def shaped(kind: type[c.Command], content: bytes) -> Any:
    """Decode the host's answer to the type that the command declares; of several, the one with matching fields."""
    if kind.gives is None:
        return msgspec.json.decode(content, type=Summary if kind.shows == "session" else dict[str, Any])
    found = msgspec.json.decode(content) if content else {"kept": ""}
    shapes = kind.gives if isinstance(kind.gives, tuple) else (kind.gives,)
    fits = (each for each in shapes if set(each.__struct_fields__) <= found.keys())
    return msgspec.convert(found, next(fits, shapes[0]))


async def _lines(answer: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Split a stream into lines as server-sent events define them. httpx also splits at U+2028 and U+0085, which JSON
    does not escape: an agent's text would split a record."""
    rest = b""
    async for data in answer.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line


def _remote(status: int, content: bytes) -> PorticoError:
    try:
        body = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError:
        body = {}
    code = str(body.get("code", "internal"))
    message = str(body.get("error", f"The host answered {status}."))
    return RemoteError(code if code in KINDS else "internal", message, body.get("field"), status)


def _token(home: Home, endpoint: HostEndpoint) -> str | None:
    if endpoint.token_path is None:
        return None
    # The endpoint file is not trusted with our secrets. `..` and links can give the same folder other names.
    if Path(endpoint.token_path).resolve() != home.token_path.resolve():
        raise errors.Forbidden(f"The endpoint file names a strange token file: {endpoint.token_path!r}.")
    return home.token()


def _words(error: httpx.TransportError) -> str:
    words = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return f"{words.rstrip('.')}. If it has a private authority, name its file: --cacert FILE or SSL_CERT_FILE"
    return words


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
