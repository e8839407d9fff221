"""Projects: folders with one conversation for each agent, and which of them is meant."""

import asyncio
from pathlib import Path

import pytest

from portico.features.projects.commands import AddProject, ClearProject, ForgetProject, OpenProject, Project
from portico.features.projects.projects import DEFAULT, PROJECTS_MAX, Projects
from portico.kernel import commands as c
from portico.kernel.commands import SCOPES, Caller
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound
from portico.kernel.events import Audited
from portico.kernel.host import Host
from portico.kernel.state import Summary
from portico.server.home import Home
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.git import git
from tests.host.plays import idle

ADA = Caller("t1", "ada", frozenset(SCOPES), person="ada")
BOB = Caller("t2", "bob", frozenset(SCOPES) - {"admin"}, person="bob")


def is_folder(path: str) -> bool:
    return Path(path).is_dir()


class World:
    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.folder = folder
        self.projects = Projects(host, Home(folder / "home"))

    def made(self, name: str) -> str:
        (self.folder / name).mkdir(exist_ok=True)
        return str(self.folder / name)

    async def add(self, name: str, *, worktree: bool = False, who: Caller = ADA) -> Project:
        found: Project = await self.host.do(AddProject(path=self.made(name), worktree=worktree), who)
        return found

    async def open(self, project: str, agent: str | None = None, who: Caller = ADA) -> Summary:
        found: Summary = await self.host.do(OpenProject(project=project, agent=agent), who)
        return found


@pytest.fixture
async def world(open_host: HostOpener, tmp_path: Path) -> World:
    host = await open_host(PlayAgent(idle), PlayAgent(idle, "other"))
    host.workspaces[:] = []
    return World(host, tmp_path)


async def test_where_there_is_none_there_is_a_default(world: World) -> None:
    (project,) = world.projects.all()
    assert (project.id, project.name) == (DEFAULT, DEFAULT)
    assert is_folder(project.path)
    assert world.projects.get(None) == project


async def test_the_settings_own_come_first_and_a_folder_counts_once(world: World) -> None:
    ours = world.made("ours")
    world.host.workspaces[:] = [Path(ours), Path(ours + "/."), world.folder / "gone"]
    await world.add("added")
    await world.projects.ready()
    assert [each.name for each in world.projects.all()] == ["ours", "added"]


@pytest.mark.parametrize("by", ["id", "path", "another path"])
async def test_a_project_is_known_by_its_id_and_its_path(world: World, by: str) -> None:
    project = await world.add("api")
    names = {"id": project.id, "path": project.path, "another path": f"{project.path}/../api"}
    assert world.projects.get(names[by]) == project
    assert len(project.id) == 12, "a path would tell more than it should"


@pytest.mark.parametrize("name", ["nothing", "/nonexistent", "api", "", "a\0b", "/a\0b"], ids=repr)
async def test_what_is_no_project_is_answered_with_those_that_there_are(world: World, name: str) -> None:
    project = await world.add("api")
    with pytest.raises(NotFound) as refused:
        world.projects.get(name)
    assert project.id in refused.value.message


@pytest.mark.parametrize("path", ["relative", "/nonexistent/folder", ""])
async def test_what_cannot_be_a_project(world: World, path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await world.host.do(AddProject(path=path), ADA)
    assert refused.value.field == "path"


async def test_a_folder_is_added_once(world: World) -> None:
    project = await world.add("api")
    with pytest.raises(AlreadyExists):
        await world.add("api")
    link = world.folder / "link"
    link.symlink_to(project.path)
    with pytest.raises(AlreadyExists):
        await world.host.do(AddProject(path=str(link)), ADA)


async def test_at_most_so_many(world: World) -> None:
    await world.projects.ready()
    world.projects._kept.added.update({f"/x{number}": 0 for number in range(PROJECTS_MAX)})
    with pytest.raises(Conflict, match="forget some"):
        await world.add("one-more")


async def test_worktrees_need_git_when_the_project_is_added(world: World) -> None:
    """Or the first message would be the one to fail."""
    with pytest.raises(NotFound, match="no git repository"):
        await world.add("plain", worktree=True)
    await git(Path(world.made("repo")), "init", "-q")
    assert (await world.add("repo", worktree=True)).worktree is True


async def test_what_was_added_is_there_after_a_restart_and_what_was_forgotten_is_not(
    world: World, open_host: HostOpener
) -> None:
    kept, gone = await world.add("kept"), await world.add("gone")
    await world.host.do(ForgetProject(project=gone.id), ADA)
    host = await open_host(PlayAgent(idle))
    host.workspaces[:] = []
    after = await World(host, world.folder).projects.ready()
    assert [each.id for each in after.all()] == [kept.id]
    assert is_folder(gone.path), "the folder stays"


async def test_a_project_of_the_settings_can_be_forgotten_and_added_again(world: World) -> None:
    world.host.workspaces[:] = [Path(world.made("ours")), Path(world.made("theirs"))]
    ours, theirs = world.projects.all()
    await world.host.do(ForgetProject(project=ours.id), ADA)
    assert world.projects.all() == [theirs]
    await world.add("ours")
    assert [each.id for each in world.projects.all()] == [ours.id, theirs.id]


async def test_the_default_stays(world: World) -> None:
    with pytest.raises(Conflict, match="stays until there is another"):
        await world.host.do(ForgetProject(project=DEFAULT), ADA)


async def test_adding_and_forgetting_is_on_record(world: World) -> None:
    project = await world.add("api")
    await world.host.do(ForgetProject(project=project.id), ADA)
    events = [record.event for record in await world.host.log.read("host", 0)]
    audited = [(each.action, each.by) for each in events if isinstance(each, Audited) and "project" in each.action]
    assert audited == [("project.added", "person:ada"), ("project.forgotten", "person:ada")]


# -- conversations ---------------------------------------------------------------------------------------------


async def test_a_project_has_one_conversation_with_an_agent(world: World) -> None:
    project = await world.add("api")
    first = await world.open(project.id, "play")
    assert (first.agent, first.cwd, first.title) == ("play", project.path, "api")
    assert (await world.open(project.id, "play")).id == first.id
    assert (await world.open(project.id)).id == first.id, "without a name it is the one that there is"
    other = await world.open(project.id, "other")
    assert other.id != first.id
    assert world.projects.of_session(first.id) == world.projects.of_session(other.id) == project.id
    assert world.projects.of_session("session-99") is None


async def test_two_who_open_it_at_once_get_the_same(world: World) -> None:
    project = await world.add("api")
    found = await asyncio.gather(*(world.open(project.id, "play") for _ in range(4)))
    assert len({each.id for each in found}) == 1


async def test_each_person_has_their_own(world: World) -> None:
    project = await world.add("api")
    mine, theirs = await world.open(project.id, who=ADA), await world.open(project.id, who=BOB)
    assert mine.id != theirs.id
    assert (await world.open(project.id, who=BOB)).id == theirs.id


async def test_a_persons_messages_are_stored_in_their_own_conversation(world: World) -> None:
    """Bug: on a host that one person used before people were added, a new person's message was stored in the old
    conversation. It has no owner, so everyone could read the message."""
    alone = Caller("t0", "owner", frozenset(SCOPES))
    project = await world.add("api", who=alone)
    old = await world.open(project.id, who=alone)
    world.host.ownership.team = lambda: True
    owners = {}
    for who in (ADA, BOB, alone):
        found = await world.open(project.id, who=who)
        owners[who.name] = (found.owner, found.id == old.id, (await world.open(project.id, who=who)).id == found.id)
    assert owners == {"ada": ("ada", False, True), "bob": ("bob", False, True), "owner": ("owner", False, True)}


async def test_of_people_only_an_admin_adds_and_forgets_projects(world: World) -> None:
    """Bug: a person with `drive` removed the configured workspace for everyone, or added a folder in which another
    person's next message started."""
    world.host.workspaces[:] = [Path(world.made("ours"))]
    (ours,) = world.projects.all()
    for command in (AddProject(path=world.made("more")), ForgetProject(project=ours.id)):
        with pytest.raises(Forbidden, match="admin"):
            await world.host.do(command, BOB)
    assert world.projects.all() == [ours]
    for caller in (ADA, Caller("t0", "owner", frozenset({"drive"}))):
        added = await world.add("more", who=caller)
        await world.host.do(ForgetProject(project=added.id), caller)
    assert world.projects.all() == [ours]


async def test_a_cleared_one_gives_way_to_a_fresh_one_and_stays_stored(world: World) -> None:
    project = await world.add("api")
    first = await world.open(project.id)
    await world.host.do(ClearProject(project=project.id), ADA)
    second = await world.open(project.id)
    assert second.id != first.id
    assert world.projects.sessions(project.id, lambda ident: True) == [second.id]
    assert world.projects.sessions(project.id, lambda ident: True, cleared=True) == [first.id, second.id]
    assert world.projects.sessions(project.id, lambda ident: ident == first.id, cleared=True) == [first.id]
    assert world.host.has(first.id)


async def test_what_somebody_else_clears_is_their_own(world: World) -> None:
    project = await world.add("api")
    mine = await world.open(project.id, who=ADA)
    await world.open(project.id, who=BOB)
    await world.host.do(ClearProject(project=project.id), BOB)
    assert (await world.open(project.id, who=ADA)).id == mine.id


async def test_one_that_was_closed_elsewhere_gives_way(world: World) -> None:
    project = await world.add("api")
    first = await world.open(project.id)
    await world.host.do(c.CloseSession(session=first.id), ADA)
    assert (await world.open(project.id)).id != first.id


async def test_a_deleted_one_is_known_while_its_last_events_are_on_the_way(world: World) -> None:
    project = await world.add("api")
    first = await world.open(project.id)
    await world.host.delete(first.id, by="ada")
    assert world.projects.of_session(first.id) == project.id
    assert world.projects.sessions(project.id, lambda ident: True, cleared=True) == []


async def test_conversations_are_found_again_after_a_restart(world: World, open_host: HostOpener) -> None:
    project = await world.add("api")
    first = await world.open(project.id)
    host = await open_host(PlayAgent(idle), PlayAgent(idle, "other"))
    host.workspaces[:] = []
    after = World(host, world.folder)
    assert (await after.open(project.id)).id == first.id


async def test_a_reader_follows_the_conversations_that_will_begin(world: World) -> None:
    one, two = await world.add("one"), await world.add("two")
    of_one, of_all = world.projects.follower(one.id), world.projects.follower(None)
    first, second = await world.open(one.id), await world.open(two.id)
    assert set(of_one.channels or ()) == {f"session/{first.id}"}
    assert set(of_all.channels or ()) == {f"session/{first.id}", f"session/{second.id}"}


async def test_a_host_without_an_agent_says_so(world: World) -> None:
    project = await world.add("api")
    world.host.agents.clear()
    with pytest.raises(Conflict, match="no agent"):
        await world.open(project.id)
