"""`_meta.git` of a session, from what `git status --porcelain=v2 --branch` says; and which settings a folder allows."""

import pytest

from portico.doors.ahp.view.config import session_schema, values
from portico.doors.ahp.view.git_meta import parse
from portico.kernel.agent import AgentInfo
from portico.kernel.events import Json

OID = "# branch.oid 1234\n"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("", {"uncommittedChanges": 0}),
        (OID + "# branch.head main\n", {"uncommittedChanges": 0, "branchName": "main"}),
        (
            OID + "# branch.head main\n# branch.upstream origin/main\n# branch.ab +2 -3\n",
            {
                "uncommittedChanges": 0,
                "branchName": "main",
                "upstreamBranchName": "origin/main",
                "outgoingChanges": 2,
                "incomingChanges": 3,
            },
        ),
        (OID + "# branch.head (detached)\n", {"uncommittedChanges": 0, "isDetachedHead": True}),
        (
            "# branch.head main\n1 .M N... a.py\n? new.py\nu UU N... b.py\n2 R. N... c d\n",
            {"uncommittedChanges": 4, "branchName": "main"},
        ),
        ("# branch.head feature/a b\n", {"uncommittedChanges": 0, "branchName": "feature/a b"}),
        (
            "# branch.head main\n# branch.ab +0 -0\n",
            {
                "uncommittedChanges": 0,
                "branchName": "main",
                "outgoingChanges": 0,
                "incomingChanges": 0,
            },
        ),
    ],
    ids=["nothing", "a branch", "with its upstream", "detached", "with changes", "an odd name", "up to date"],
)
def test_what_git_says(said: str, found: Json) -> None:
    assert parse(said) == found


OWN = {
    "properties": {"effort": {"enum": ["low", "high"], "default": "low"}, "mode": {"title": "Mode", "type": "boolean"}}
}


@pytest.mark.parametrize(
    ("is_git", "isolation", "where", "branch"),
    [
        (False, "folder", ["folder"], None),
        (False, "worktree", ["folder"], None),
        (True, "folder", ["folder", "worktree"], True),
        (True, "worktree", ["folder", "worktree"], False),
        (True, None, ["folder", "worktree"], True),
    ],
)
def test_only_a_repository_has_worktrees_and_branches(
    is_git: bool, isolation: object, where: list[str], branch: bool | None
) -> None:
    found = session_schema(None, {}, is_git=is_git, isolation=isolation)["properties"]
    assert found["isolation"]["enum"] == where
    assert len(found["isolation"]["enumLabels"]) == len(where)
    assert ("branch" in found) is is_git
    if is_git:
        assert found["branch"].get("readOnly", False) is branch, "the folder itself has the branch that it has"


def test_an_agents_own_settings_stand_beside_ours() -> None:
    found = session_schema(AgentInfo("a", "A", config=OWN), {}, is_git=False)["properties"]
    assert found["effort"] == {
        "type": "string",
        "title": "effort",
        "sessionMutable": True,
        "enum": ["low", "high"],
        "default": "low",
    }
    assert (found["mode"]["type"], found["mode"]["title"]) == ("boolean", "Mode")
    assert [name for name, each in found.items() if each["sessionMutable"] is False] == ["isolation"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"isolation": "folder", "autoApprove": "default", "effort": "low"}),
        ({"effort": "high"}, {"isolation": "folder", "autoApprove": "default", "effort": "high"}),
        ({"extra": 1}, {"isolation": "folder", "autoApprove": "default", "effort": "low", "extra": 1}),
        ({"autoApprove": None}, {"isolation": "folder", "autoApprove": None, "effort": "low"}),
    ],
)
def test_what_was_not_given_has_its_default(given: Json, found: Json) -> None:
    assert values(session_schema(AgentInfo("a", "A", config=OWN), {}, is_git=False), given) == found
