"""Every command with a handler, twice concurrently and with one read that fails: what it reads still holds when it
writes. Two concurrent commands leave what they leave one after the other, in one of the two orders."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.agents.agent import Message, Turn
from portico.agents.native import NativeHistory, NativePage, NativeSession
from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.budgets.budgets import Budgets
from portico.features.budgets.commands import AnswerBudget
from portico.features.budgets.question import AskedBudget, BudgetQuestion
from portico.features.changes.commands import CommitChanges, DiscardChanges, RestoreChanges
from portico.features.chats.commands import MoveChat
from portico.features.client_servers.commands import AskServer, ClientServer, SetServers
from portico.features.configuration.commands import ConnectModel, SetSetting
from portico.features.configuration.feature import Configuration
from portico.features.drafts.commands import DraftWorkflow, PlanWorkflow, SaveWorkflow
from portico.features.files.commands import CopyFile, DeleteFile, MakeFolder, MoveFile, WriteFile
from portico.features.hosts.commands import DrainHost, GiveUpHost
from portico.features.jobs import Jobs
from portico.features.jobs import commands as jc
from portico.features.native.commands import AdoptSession, ContinueInTerminal, FindSessions
from portico.features.notices.commands import RedeliverNotice, SubscribePush, UnsubscribePush
from portico.features.notices.commands import TestNotice as NoticeTest
from portico.features.notices.notices import Notices
from portico.features.pairing.commands import PairDevice
from portico.features.pairing.pairing import Pairing, PhoneAddress
from portico.features.people.commands import (
    AddOwnToken,
    AddPerson,
    AddToken,
    ApplyRetention,
    ErasePerson,
    RemovePerson,
    RevokeOwnToken,
    RevokeToken,
)
from portico.features.people.feature import PeopleFeature
from portico.features.people.people import add_person as add_to_file
from portico.features.people.quotas import Quotas
from portico.features.people.retention import Retention, RetentionBounds
from portico.features.projects.commands import AddProject, ClearProject, ForgetProject, OpenProject
from portico.features.projects.projects import Projects
from portico.features.readiness.commands import SignIn
from portico.features.sandboxes.commands import ChooseSandbox
from portico.features.secrets.commands import RemoveSecret, SetSecret
from portico.features.secrets.feature import HostSecrets
from portico.features.terminals.commands import (
    ClaimTerminal,
    ClearTerminal,
    CloseTerminal,
    OpenTerminal,
    RenameTerminal,
    ResizeTerminal,
    TypeInput,
)
from portico.features.transcripts.archive import export_archive
from portico.features.transcripts.commands import ImportSession
from portico.kernel import commands as c
from portico.kernel.agent import AgentInfo, Capabilities, Model, Resource
from portico.kernel.errors import LogUnavailable, PorticoError
from portico.kernel.events import ToolSpec
from portico.kernel.host import Host
from portico.kernel.state import TurnState
from portico.server.home import Home
from portico.server.identity import new_token
from portico.server.settings import NoticeCommand, NoticeSettings
from portico.server.settings_load import Loaded, load
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.git import git
from tests.automation.playing import plan
from tests.features import feature
from tests.jobs.playing import make, ok
from tests.notices.test_push import subscription

ME = c.Caller("t", "t", frozenset(c.SCOPES))
ADA = c.Caller("t", "t", frozenset(c.SCOPES), person="ada")
HANDLED = [name for name, kind in c.COMMANDS.items() if kind.decide is None]
_READS = ("get_kv", "list_kv", "read", "read_all")
_RANDOM = {"push.key"}
"""Values that are made at random."""
_LATER = ("work.", "task.")
"""What a started job does afterwards, in its own time."""


class Signed(PlayAgent):
    """Asks for a token of the resource `r`."""

    async def describe(self) -> AgentInfo:
        models = [Model(each, each, 1) for each in ("gpt-5-mini", "gpt-5.2")]
        resources, capabilities = [Resource("r", "R")], Capabilities(steer=True)
        return AgentInfo(self.id, "Signed", models=models, resources=resources, capabilities=capabilities)

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        await asyncio.sleep(0)

    def sign_out(self, client: str) -> None:
        pass

    async def native_sessions(self, cwd: str | None, cursor: str | None, folders: Sequence[str]) -> NativePage:
        await asyncio.sleep(0)
        return NativePage([NativeSession("n1", folders[0], "Native")])

    async def native_history(self, session: NativeSession) -> NativeHistory:
        await asyncio.sleep(0)
        return NativeHistory([TurnState("t1", Message("before"), "imported", 1, 0, ended=1, outcome="completed")])

    async def native_release(self) -> None:
        await asyncio.sleep(0)

    def native_command(self, session: str, cwd: str) -> str:
        return f"continue {session}"

    def native_message(self, session: str, text: str) -> None:
        return None


async def play(message: Message, turn: Turn) -> None:
    if message.text == "call":
        call = turn.tool("theirs", "{}")
        await turn.session.tools.perform(call)
    else:
        turn.text("working")
        await asyncio.get_running_loop().create_future()


class World:
    """A host with all its features, whose log stays when it is opened again."""

    def __init__(self, opener: HostOpener, folder: Path) -> None:
        self._open, self.folder = opener, folder
        self.clock = FakeClock()
        self.home = Home(folder / "home")
        self.home.make()

    async def _phone_address(self) -> PhoneAddress:
        return PhoneAddress("https://box.example")

    async def open(self) -> "World":
        self.host: Host = await self._open(Signed(play, "scripted"), clock=self.clock)
        self.host.workspaces[:] = [self.folder]
        self.jobs = await Jobs.open(self.host)
        if not self.host.list():
            waits = [{"kind": "Wait", "hook": hook} for hook in ("go", "on")]
            await self.jobs.install(make({"main": ok()}, {"kind": "Seq", "works": waits}))
        self.automations = await Automations.open(self.host, self.jobs, self.folder)
        self.projects = Projects(self.host, self.home)
        PeopleFeature(self.host, feature(self.host, Quotas), feature(self.host, Retention), self.home)
        Pairing(self.host, self.home, self._phone_address)
        HostSecrets(self.host, self.home)
        Configuration(self.host, self.home, self._settings)
        settings = NoticeSettings(commands=[NoticeCommand(name="note", command=["true"])])
        feature(self.host, Notices).configure(settings, "")
        return self

    async def _settings(self) -> Loaded:
        return load(self.home.settings_path)

    def send_nothing(self) -> None:
        """Notices are stored, and another host sends them."""
        self.host.members.held = lambda: False  # type: ignore[method-assign]

    async def close(self) -> None:
        await self._open.close()

    async def do(self, *commands: c.Command, caller: c.Caller = ME) -> list[Any]:
        return [await self.host.do(each, caller) for each in commands]

    async def session(self, **more: Any) -> str:
        (started,) = await self.do(c.StartSession(cwd=str(self.folder), **more))
        ident: str = started.id
        return ident

    async def turn(self, session: str, text: str, **more: Any) -> str:
        (begun,) = await self.do(c.SendMessage(session=session, text=text, **more))
        ident: str = begun.turn
        return ident

    def made(self, name: str) -> str:
        (self.folder / name).mkdir(exist_ok=True)
        return str(self.folder / name)


Pair = tuple[c.Command, c.Command]
Setup = Callable[[World], Awaitable[Pair]]
"""Prepares a host, and gives two commands of one kind."""
CASES: dict[type[c.Command], Setup] = {}


def case(kind: type[c.Command]) -> Callable[[Setup], Setup]:
    def add(setup: Setup) -> Setup:
        CASES[kind] = setup
        return setup

    return add


def twice(command: c.Command) -> Pair:
    return command, command


@case(PlanWorkflow)
async def _(world: World) -> Pair:
    return twice(PlanWorkflow(name="x", text="steps: [{id: a, run: echo a}]"))


@case(SaveWorkflow)
async def _(world: World) -> Pair:
    return twice(SaveWorkflow(cwd=str(world.folder), name="x", text="steps: [{id: a, run: echo a}]"))


@case(DraftWorkflow)
async def _(world: World) -> Pair:
    return twice(DraftWorkflow(description="x", cwd=str(world.folder)))


@case(SetServers)
async def _(world: World) -> Pair:
    session = await world.session()
    one, two = (ClientServer(name=name, command=["true"]) for name in ("one", "two"))
    return SetServers(session=session, servers=[one]), SetServers(session=session, servers=[two])


@case(PairDevice)
async def _(world: World) -> Pair:
    return twice(PairDevice())


@case(FindSessions)
async def _(world: World) -> Pair:
    return twice(FindSessions())


@case(AdoptSession)
async def _(world: World) -> Pair:
    return twice(AdoptSession(agent="scripted", native="n1"))


@case(ContinueInTerminal)
async def _(world: World) -> Pair:
    (adopted,) = await world.do(AdoptSession(agent="scripted", native="n1"))
    return twice(ContinueInTerminal(session=adopted.id))


# -- sessions, clients and hosts -------------------------------------------------------------------------------


@case(c.StartSession)
async def _start_session(world: World) -> Pair:
    await world.session()
    return twice(c.StartSession(cwd=str(world.folder), uri="mine:/1"))


@case(c.ForkSession)
async def _fork_session(world: World) -> Pair:
    return twice(c.ForkSession(session=await world.session(), uri="mine:/1"))


@case(ImportSession)
async def _import_session(world: World) -> Pair:
    archive = await export_archive(world.host, await world.host.get(await world.session(title="a")))
    return twice(ImportSession(archive=msgspec.to_builtins(archive), cwd=str(world.folder)))


@case(c.DeleteSession)
async def _delete_session(world: World) -> Pair:
    session = await world.session()
    await world.session(parent=session)
    return twice(c.DeleteSession(session=session))


@case(MoveChat)
async def _move_chat(world: World) -> Pair:
    first, second = await world.session(), await world.session()
    chat = await world.session(parent=first)
    return MoveChat(session=chat, to=second), MoveChat(session=chat)


@case(c.CancelTurn)
async def _cancel_turn(world: World) -> Pair:
    session = await world.session()
    await world.turn(session, "hang")
    return twice(c.CancelTurn(session=session))


@case(c.SteerQueued)
async def _steer_queued(world: World) -> Pair:
    session = await world.session()
    await world.turn(session, "hang")
    (queued,) = await world.do(c.QueueMessage(session=session, message=Message("now")))
    return twice(c.SteerQueued(session=session, pending=queued.pending))


async def _called(world: World) -> tuple[str, str]:
    session = await world.session()
    await world.do(c.JoinSession(session=session, client="ed", tools=[ToolSpec("theirs", "", {})]))
    turn = await world.turn(session, "call")
    state = await (await world.host.get(session)).wait_until(lambda state: bool(state.active and state.active.parts))
    found = state.turn(turn)
    assert found is not None
    return session, found.parts[0].id


@case(c.ReportContent)
async def _report_content(world: World) -> Pair:
    session, call = await _called(world)
    texts = ([{"type": "text", "text": text}] for text in "ab")
    first, second = (c.ReportContent(session=session, call=call, client="ed", content=each) for each in texts)
    return first, second


@case(c.CompleteCall)
async def _complete_call(world: World) -> Pair:
    session, call = await _called(world)
    first, second = (c.CompleteCall(session=session, call=call, client="ed", ok=True, output=each) for each in "ab")
    return first, second


@case(AskServer)
async def _ask_server(world: World) -> Pair:
    return twice(AskServer(session=await world.session(), server="s"))


@case(c.IdentifyClient)
async def _identify_client(world: World) -> Pair:
    return c.IdentifyClient(client="ed", value={"a": 1}), c.IdentifyClient(client="ed", value={"a": 2})


@case(SignIn)
async def _sign_in(world: World) -> Pair:
    return SignIn(resource="r", token="a"), SignIn(resource="r", token="b")


@case(DrainHost)
async def _drain_host(world: World) -> Pair:
    return twice(DrainHost(name="other"))


@case(GiveUpHost)
async def _give_up_host(world: World) -> Pair:
    return twice(GiveUpHost(name="other"))


# -- people ----------------------------------------------------------------------------------------------------


@case(AddPerson)
async def _add_person(world: World) -> Pair:
    return twice(AddPerson(name="ada"))


@case(RemovePerson)
async def _remove_person(world: World) -> Pair:
    add_person_now(world, "ada")
    return twice(RemovePerson(name="ada"))


@case(ErasePerson)
async def _erase_person(world: World) -> Pair:
    add_person_now(world, "ada")
    world.host.ownership.team = lambda: True
    await world.do(c.StartSession(cwd=str(world.folder)), caller=ADA)
    return twice(ErasePerson(name="ada"))


@case(ApplyRetention)
async def _apply_retention(world: World) -> Pair:
    feature(world.host, Retention).rules = [RetentionBounds(archive_days=1)]
    await world.session()
    await world.session()
    world.clock.advance(2 * 86_400)
    return twice(ApplyRetention())


@case(AddToken)
async def _add_token(world: World) -> Pair:
    return twice(AddToken(name="ci"))


@case(RevokeToken)
async def _revoke_token(world: World) -> Pair:
    await world.do(AddToken(name="ci"))
    return twice(RevokeToken(token="ci"))


@case(AddOwnToken)
async def _add_own_token(world: World) -> Pair:
    add_person_now(world, "ada")
    return AddOwnToken(name="a"), AddOwnToken(name="b")


@case(RevokeOwnToken)
async def _revoke_own_token(world: World) -> Pair:
    add_person_now(world, "ada")
    new_token(world.home, "ci", ["read"], person="ada")
    return twice(RevokeOwnToken(name="ci"))


def add_person_now(world: World, name: str) -> None:
    add_to_file(world.home, name, list(c.SCOPES), [])


# -- notices ---------------------------------------------------------------------------------------------------


@case(SubscribePush)
async def _subscribe_push(world: World) -> Pair:
    world.send_nothing()
    await world.do(subscription("https://push.example/0"))
    return subscription("https://push.example/1"), subscription("https://push.example/2")


@case(UnsubscribePush)
async def _unsubscribe_push(world: World) -> Pair:
    world.send_nothing()
    named = await world.do(*(subscription(f"https://push.example/{number}") for number in range(3)))
    return UnsubscribePush(push=named[0].push), UnsubscribePush(push=named[1].push)


@case(NoticeTest)
async def _test_notice(world: World) -> Pair:
    world.send_nothing()
    return twice(NoticeTest(target="note"))


@case(RedeliverNotice)
async def _redeliver_notice(world: World) -> Pair:
    world.send_nothing()
    (named,) = await world.do(NoticeTest(target="note"))
    return twice(RedeliverNotice(notice=named.notice))


# -- automations and jobs --------------------------------------------------------------------------------------


async def _automation(world: World, name: str = "first", **parts: Any) -> str:
    (made,) = await world.do(ac.CreateAutomation(name=name, plan=plan(**parts)))
    ident: str = made.automation
    return ident


@case(ac.CreateAutomation)
async def _create_automation(world: World) -> Pair:
    return twice(ac.CreateAutomation(name="same", plan=plan()))


@case(ac.EditAutomation)
async def _edit_automation(world: World) -> Pair:
    first = await _automation(world)
    other = plan(prompt={"text": "other", "agent": "scripted"})
    return ac.EditAutomation(automation=first, name="renamed"), ac.EditAutomation(automation=first, plan=other)


@case(ac.PauseAutomation)
async def _pause_automation(world: World) -> Pair:
    return twice(ac.PauseAutomation(automation=await _automation(world)))


@case(ac.ResumeAutomation)
async def _resume_automation(world: World) -> Pair:
    ident = await _automation(world)
    await world.do(ac.PauseAutomation(automation=ident))
    return twice(ac.ResumeAutomation(automation=ident))


@case(ac.RunAutomation)
async def _run_automation(world: World) -> Pair:
    return twice(ac.RunAutomation(automation=await _automation(world)))


@case(ac.CancelRun)
async def _cancel_run(world: World) -> Pair:
    (named,) = await world.do(ac.RunAutomation(automation=await _automation(world)))
    return twice(ac.CancelRun(run=named.run))


@case(ac.RotateSecret)
async def _rotate_secret(world: World) -> Pair:
    return twice(ac.RotateSecret(automation=await _automation(world, hook={})))


@case(ac.DeleteAutomation)
async def _delete_automation(world: World) -> Pair:
    return twice(ac.DeleteAutomation(automation=await _automation(world)))


@case(jc.StartJob)
async def _start_job(world: World) -> Pair:
    return twice(jc.StartJob(job="main", cwd=str(world.folder)))


async def _job(world: World, *, stop: bool = False) -> str:
    (named,) = await world.do(jc.StartJob(job="main", cwd=str(world.folder)))
    if stop:
        await world.do(jc.StopJob(job=named.job))
    ident: str = named.job
    return ident


@case(jc.StopJob)
async def _stop_job(world: World) -> Pair:
    return twice(jc.StopJob(job=await _job(world)))


@case(jc.ResumeJob)
async def _resume_job(world: World) -> Pair:
    return twice(jc.ResumeJob(job=await _job(world, stop=True)))


@case(jc.RetryJob)
async def _retry_job(world: World) -> Pair:
    return twice(jc.RetryJob(job=await _job(world, stop=True)))


@case(jc.PlanRetry)
async def _plan_retry(world: World) -> Pair:
    text = "steps: [{id: a, wait: 60}]"
    (named,) = await world.do(jc.StartJob(job="other", cwd=str(world.folder), workflow=text))
    await world.do(jc.StopJob(job=named.job))
    return twice(jc.PlanRetry(job=named.job, step="a", workflow=text.replace("60", "61")))


@case(jc.CallHook)
async def _call_hook(world: World) -> Pair:
    return twice(jc.CallHook(job=await _job(world), hook="go"))


@case(jc.StartTask)
async def _start_task(world: World) -> Pair:
    return twice(jc.StartTask(session=await world.session(), name="main"))


@case(jc.StopTask)
async def _stop_task(world: World) -> Pair:
    (named,) = await world.do(jc.StartTask(session=await world.session(), name="main"))
    return twice(jc.StopTask(task=named.task))


# -- projects --------------------------------------------------------------------------------------------------


@case(AddProject)
async def _add_project(world: World) -> Pair:
    await world.do(AddProject(path=world.made("old")))
    await world.open()
    return AddProject(path=world.made("a")), AddProject(path=world.made("b"))


@case(ForgetProject)
async def _forget_project(world: World) -> Pair:
    known = await world.do(*(AddProject(path=world.made(name)) for name in "abc"))
    await world.open()
    return ForgetProject(project=known[0].id), ForgetProject(project=known[1].id)


@case(OpenProject)
async def _open_project(world: World) -> Pair:
    (known,) = await world.do(AddProject(path=world.made("a")))
    await world.open()
    return twice(OpenProject(project=known.id))


@case(ClearProject)
async def _clear_project(world: World) -> Pair:
    (known,) = await world.do(AddProject(path=world.made("a")))
    await world.do(OpenProject(project=known.id))
    await world.open()
    return twice(ClearProject(project=known.id))


# -- folders, files and terminals ------------------------------------------------------------------------------


async def _repository(world: World) -> str:
    folder = Path(world.made("tree"))
    await git(folder, "init", "-q", "-b", "main")
    await git(folder, "config", "user.name", "A")
    await git(folder, "config", "user.email", "a@b.c")
    (folder / "old.txt").write_text("old")
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "--no-gpg-sign", "-m", "first")
    for name in ("old.txt", "a.txt", "b.txt"):
        (folder / name).write_text(f"new {name}")
    (started,) = await world.do(c.StartSession(cwd=str(folder)))
    ident: str = started.id
    return ident


@case(CommitChanges)
async def _commit_changes(world: World) -> Pair:
    session = await _repository(world)
    first, second = (CommitChanges(session=session, message=n, state=None, paths=[f"{n}.txt"]) for n in "ab")
    return first, second


@case(DiscardChanges)
async def _discard_changes(world: World) -> Pair:
    session = await _repository(world)
    first, second = (DiscardChanges(session=session, state=None, paths=[f"{n}.txt"]) for n in "ab")
    return first, second


@case(RestoreChanges)
async def _restore_changes(world: World) -> Pair:
    session = await _repository(world)
    (done,) = await world.do(DiscardChanges(session=session, state=None, paths=["a.txt"]))
    return twice(RestoreChanges(session=session, undo=done.undo, paths=["a.txt"]))


@case(WriteFile)
async def _write_file(world: World) -> Pair:
    path = str(world.folder / "file.txt")
    return WriteFile(path=path, data="a", create_only=True), WriteFile(path=path, data="b", create_only=True)


@case(SetSetting)
async def set_setting(world: World) -> Pair:
    return SetSetting(key="agent.max_steps", value=3), SetSetting(key="quotas.turns", value=2)


@case(ConnectModel)
async def connect_model(world: World) -> Pair:
    return twice(ConnectModel(base_url="http://127.0.0.1:9/v1"))


@case(AnswerBudget)
async def _answer_budget(world: World) -> Pair:
    session = await world.session()
    asked = AskedBudget(f"session/{session}", "this session", "", "tokens", 100, "100 of 100 tokens", session, 1)
    questions = feature(world.host, Budgets)._questions
    questions.open[asked.key] = BudgetQuestion(asked)
    questions.store()
    await world.host.log.flush()
    return twice(AnswerBudget(budget=asked.key, answer="raise"))


@case(ChooseSandbox)
async def _choose_sandbox(world: World) -> Pair:
    folder = str(world.folder)
    return ChooseSandbox(folder=folder, mode="off"), ChooseSandbox(folder=folder, mode="")


@case(SetSecret)
async def set_secret(world: World) -> Pair:
    return SetSecret(name="A", value="one secret"), SetSecret(name="A", value="another secret")


@case(RemoveSecret)
async def remove_secret(world: World) -> Pair:
    await world.do(SetSecret(name="A", value="one secret"))
    return twice(RemoveSecret(name="A"))


def _two_files(world: World) -> list[str]:
    for name in "ab":
        (world.folder / name).write_text(name)
    return [str(world.folder / name) for name in "ab"]


@case(CopyFile)
async def _copy_file(world: World) -> Pair:
    to = str(world.folder / "c")
    first, second = (CopyFile(source=each, destination=to, fail_if_exists=True) for each in _two_files(world))
    return first, second


@case(MoveFile)
async def _move_file(world: World) -> Pair:
    to = str(world.folder / "c")
    first, second = (MoveFile(source=each, destination=to, fail_if_exists=True) for each in _two_files(world))
    return first, second


@case(DeleteFile)
async def _delete_file(world: World) -> Pair:
    return twice(DeleteFile(path=_two_files(world)[0]))


@case(MakeFolder)
async def _make_folder(world: World) -> Pair:
    return twice(MakeFolder(path=str(world.folder / "x" / "y")))


@case(OpenTerminal)
async def _open_terminal(world: World) -> Pair:
    return twice(OpenTerminal(cwd=str(world.folder), uri="mine:/1"))


async def _terminal(world: World) -> str:
    (opened,) = await world.do(OpenTerminal(cwd=str(world.folder)))
    ident: str = opened.id
    return ident


@case(TypeInput)
async def _type_input(world: World) -> Pair:
    return twice(TypeInput(terminal=await _terminal(world), data=""))


@case(ResizeTerminal)
async def _resize_terminal(world: World) -> Pair:
    return twice(ResizeTerminal(terminal=await _terminal(world), cols=100, rows=30))


@case(ClaimTerminal)
async def _claim_terminal(world: World) -> Pair:
    """The first of two editors holds it; the other one is refused."""
    world.host.connected = ("ed-1", "ed-2")
    terminal = await _terminal(world)
    first, second = (
        ClaimTerminal(terminal=terminal, claim={"kind": "client", "clientId": each}) for each in ("ed-1", "ed-2")
    )
    return first, second


@case(RenameTerminal)
async def _rename_terminal(world: World) -> Pair:
    terminal = await _terminal(world)
    return RenameTerminal(terminal=terminal, title="a"), RenameTerminal(terminal=terminal, title="b")


@case(ClearTerminal)
async def _clear_terminal(world: World) -> Pair:
    return twice(ClearTerminal(terminal=await _terminal(world)))


@case(CloseTerminal)
async def _close_terminal(world: World) -> Pair:
    return twice(CloseTerminal(terminal=await _terminal(world)))


# -- the table -------------------------------------------------------------------------------------------------


class Left:
    """What two commands leave: how each ended, the events and the stored values, and the files."""

    def __init__(self, world: World, outcomes: list[str], after: int) -> None:
        self.outcomes = outcomes
        with sqlite3.connect(world._open.path) as database:
            named = dict(database.execute("SELECT id, name FROM channels"))
            rows = list(database.execute("SELECT channel, data FROM events WHERE seq > ?", (after,)))
            kept = list(database.execute("SELECT channel, key, data FROM notes"))
        events = [(named[channel], data.decode()) for channel, data in rows]
        self.events = sorted(each for each in events if not any(f'"type":"{kind}' in each[1] for kind in _LATER))
        values = {(named[channel], key): data for channel, key, data in kept if key not in _RANDOM}
        self.values = {place: data for place, data in values.items() if not place[0].startswith("task/")}


REFUSED = {MoveChat: "conflict", CloseTerminal: "conflict"}
"""Commands that do not wait for another one about the same thing: the second is refused, and changes nothing."""
JOINED = {c.CancelTurn}
"""Commands whose second caller waits for what the first one has begun, and is answered like it."""


async def outcome(world: World, command: c.Command) -> str:
    caller = ADA if command.__struct_config__.tag.startswith("own_token") else ME  # type: ignore[union-attr]
    if isinstance(command, ClaimTerminal):
        caller = msgspec.structs.replace(ME, client=command.claim["clientId"])
    try:
        await world.host.do(command, caller)
    except PorticoError as error:
        return error.code
    return "done"


def fresh(folder: Path) -> World:
    """In the same folder each time: what is left there names it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return World(HostOpener(folder), folder)


async def run(setup: Setup, folder: Path, way: str) -> Left:
    """`way`: commands in order (`1`, `2`, `12`, `21`), both concurrently, or the first after a failed read."""
    world = await fresh(folder).open()
    try:
        first, second = await setup(world)
        await world.host.log.flush()
        after = world.host.log.seq
        async with asyncio.timeout(20):
            if way == "concurrent":
                outcomes = list(await asyncio.gather(outcome(world, first), outcome(world, second)))
            elif way == "failing":
                outcomes = [await retried(world, first)]
            else:
                outcomes = [await outcome(world, {"1": first, "2": second}[each]) for each in way]
        await world.host.log.flush()
    finally:
        await world.close()
    return Left(world, sorted(outcomes), after)


async def retried(world: World, command: c.Command) -> str:
    """How the command ends when its first read fails, and the caller sends it again."""
    log, failed = world.host.log, False

    def failing(read: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **more: Any) -> Any:
            nonlocal failed
            if not failed:
                failed = True
                raise LogUnavailable("once")
            return await read(*args, **more)

        return wrapped

    for name in _READS:
        setattr(log, name, failing(getattr(log, name)))
    first = await outcome(world, command)
    for name in _READS:
        delattr(log, name)
    assert failed or first != "log_unavailable"
    return await outcome(world, command) if first == "log_unavailable" else first


def test_every_command_with_a_handler_has_a_case() -> None:
    assert {*CASES} == {c.COMMANDS[name] for name in HANDLED}


@pytest.mark.parametrize("name", HANDLED)
async def test_two_concurrent_commands_leave_what_one_after_the_other_leaves(name: str, tmp_path: Path) -> None:
    kind = c.COMMANDS[name]
    got = await run(CASES[kind], tmp_path / "host", "concurrent")
    orders = ["1", "2"] if kind in REFUSED else ["1"] if kind in JOINED else ["12", "21"]
    expected = [await run(CASES[kind], tmp_path / "host", order) for order in orders]
    for each in expected:
        if kind in REFUSED:
            each.outcomes = sorted([*each.outcomes, REFUSED[kind]])
        elif kind in JOINED:
            each.outcomes *= 2
    assert vars(got) in [vars(each) for each in expected]


@pytest.mark.parametrize("name", HANDLED)
async def test_a_failed_read_loses_nothing(name: str, tmp_path: Path) -> None:
    """The command fails, and sent again it does what it would have done: nothing is written from what was not read."""
    setup = CASES[c.COMMANDS[name]]
    assert vars(await run(setup, tmp_path / "host", "failing")) == vars(await run(setup, tmp_path / "host", "1"))


# -- as they were found ----------------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = await fresh(tmp_path / "host").open()
    yield world
    await world.close()


async def test_concurrent_readers_of_the_push_key_get_one_key(world: World) -> None:
    """Three requests of `GET /v1/push` returned three keys, and one was kept."""
    subscriptions = feature(world.host, Notices).subscriptions
    keys = await asyncio.gather(*(subscriptions.public_key() for _ in range(3)))
    assert {*keys} == {await feature(world.host, Notices).subscriptions.public_key()}
    await world.open()
    assert {*keys} == {await feature(world.host, Notices).subscriptions.public_key()}


async def test_five_concurrent_subscriptions_are_all_kept_and_all_removed(world: World) -> None:
    """One of five was stored; of five removals, three or four browsers stayed."""
    world.send_nothing()
    urls = [f"https://push.example/{number}" for number in range(5)]
    named = await asyncio.gather(*(world.host.do(subscription(url), ME) for url in urls))
    await world.open()
    world.send_nothing()
    subscriptions = feature(world.host, Notices).subscriptions
    await subscriptions.load()
    assert {each.endpoint for each in subscriptions.targets.values()} == {*urls}
    await asyncio.gather(*(world.host.do(UnsubscribePush(push=each.push), ME) for each in named))
    await subscriptions.load()
    assert subscriptions.targets == {}


async def test_two_automations_do_not_get_one_name(world: World) -> None:
    """Both renames succeeded."""
    idents = [await _automation(world, name) for name in ("first", "second")]
    edits = [ac.EditAutomation(automation=each, name="same") for each in idents]
    assert sorted(await asyncio.gather(*(outcome(world, each) for each in edits))) == ["already_exists", "done"]


async def test_projects_outlive_a_failed_first_read(world: World) -> None:
    """After a failed first read the list counted as empty, and the next project that was added replaced all others."""
    await world.do(AddProject(path=world.made("old")))
    await world.open()
    assert await retried(world, AddProject(path=world.made("new"))) == "done"
    await world.open()
    names = [each.name for each in (await world.projects.ready()).all()]
    assert names == [world.folder.name, "old", "new"]
