"""What people write for agents: rules at the root and near the file, of the user, includes, commands and skills."""

from pathlib import Path
from typing import Any

import pytest

from portico.agents.loop.rule_files import of_user
from portico.testing.model import ModelRule, Script, ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls


@pytest.fixture
def native(desk: Desk) -> Desk:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    return desk


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def reads(*files: str) -> Step:
    return Step(calls=[ScriptedCall(name="readFiles", args={"files": list(files)})])


def system(desk: Desk) -> str:
    return str(desk.server.requests[-1].body["messages"][0]["content"])


def user_texts(desk: Desk) -> str:
    messages = desk.server.requests[-1].body["messages"]
    return "\n".join(str(each["content"]) for each in messages if each["role"] == "user")


NESTED = {"AGENTS.md": "@1.md"} | {f"{level}.md": f"Level {level}. @{level + 1}.md" for level in range(1, 9)}


# -- rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        ({"AGENTS.md": "Use tabs."}, {"Use tabs.": 1}),
        ({"AGENTS.md": "Use tabs.", "CLAUDE.md": "No mocks."}, {"Use tabs.": 1, "No mocks.": 1}),
        ({"AGENTS.md": "Use tabs.", "CLAUDE.md": "Use tabs."}, {"Use tabs.": 1}),
        ({"AGENTS.md": "Use tabs.", "CLAUDE.md": "@AGENTS.md\nNo mocks."}, {"Use tabs.": 1, "No mocks.": 1}),
        ({"AGENTS.md": "See @docs/a.md first.", "docs/a.md": "And @b.md", "docs/b.md": "Deep."}, {"Deep.": 1}),
        ({"AGENTS.md": "@a.md", "a.md": "@AGENTS.md\nAgain."}, {"Again.": 1}),
        ({"AGENTS.md": "@a.md @a.md", "a.md": "Once."}, {"Once.": 1}),
        ({"AGENTS.md": "`@a.md`\n```\n@a.md\n```\nme@a.md", "a.md": "Code."}, {"Code.": 0}),
        ({"AGENTS.md": "@missing.md stays"}, {"@missing.md stays": 1}),
        ({"AGENTS.md": "@../secret"}, {"not yours": 0}),
        ({"AGENTS.md": "@/etc/hostname"}, {"@/etc/hostname": 1}),
        (
            {f"{n}.md": f"Level {n}. @{n + 1}.md" for n in range(1, 9)} | {"AGENTS.md": "@1.md"},
            {"Level 4": 1, "Level 5": 0},
        ),
        ({"AGENTS.md": "@big.md\nEnd.", "big.md": "word " * 20_000}, {"End.": 1, "[cut: read big.md for the rest]": 1}),
    ],
)
async def test_rules_of_the_project_and_what_they_include(
    native: Desk, files: dict[str, str], counts: dict[str, int]
) -> None:
    write(native.project, files)
    (native.project.parent / "secret").write_text("not yours")
    native.says(Step(say="Done."))
    await native.run()
    assert {text: system(native).count(text) for text in counts} == counts
    assert len(system(native)) < 40_000


async def test_an_include_through_a_link_that_leads_out_is_not_read(native: Desk) -> None:
    (native.project.parent / "secret").write_text("not yours")
    (native.project / "link.md").symlink_to(native.project.parent / "secret")
    write(native.project, {"AGENTS.md": "@link.md"})
    native.says(Step(say="Done."))
    await native.run()
    assert "not yours" not in system(native)


async def test_rules_of_the_user_count_in_all_projects(native: Desk) -> None:
    write(native.home, {"rules/AGENTS.md": "Answer in Welsh. @more.md @../settings.toml", "rules/more.md": "Politely."})
    native.says(Step(say="Done."))
    await native.run()
    assert "Instructions of the person, for all projects (~/AGENTS.md):\nAnswer in Welsh." in system(native)
    assert "Politely." in system(native)
    assert "[agents.loop]" not in system(native)


async def test_a_folder_of_the_user_that_leads_elsewhere_is_its_own_jail(tmp_path: Path) -> None:
    write(tmp_path, {"real/AGENTS.md": "Mine.", "other": "not yours"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home/rules").symlink_to(tmp_path / "real")
    source = of_user(tmp_path / "home")
    assert source is not None
    assert [await source.read("AGENTS.md"), await source.read("../other")] == ["Mine.", ""]


async def test_rules_near_a_file_are_added_once_when_it_is_touched(native: Desk) -> None:
    rules = {"web/AGENTS.md": "Use signals.", "web/app/CLAUDE.md": "No classes.", "api/AGENTS.md": "Never seen."}
    write(native.project, {**rules, "web/app/a.ts": "1", "web/app/b.ts": "2", "c.md": "3"})
    native.says(reads("c.md"), reads("web/app/a.ts"), reads("web/app/b.ts"), Step(say="Done."))
    await native.run()
    assert "Use signals." not in system(native)
    heard = user_texts(native)
    assert [heard.count(text) for text in ("Use signals.", "No classes.", "Never seen.")] == [1, 1, 0]
    assert heard.index('<rules file="web/AGENTS.md">') < heard.index('<rules file="web/app/CLAUDE.md">')
    native.says(reads("web/app/b.ts"), Step(say="Again."))
    await native.run("agent: more")
    assert user_texts(native).count("Use signals.") == 1
    first, last = (desk_request(native, at) for at in (3, -1))
    assert last[: len(first)] == first  # only appended


def desk_request(desk: Desk, at: int) -> list[Any]:
    return list(desk.server.requests[at].body["messages"])


# -- commands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "said", "heard"),
    [
        (".agents/commands/fix.md", "Fix issue $ARGUMENTS now.", "/fix 12 and 13", "Fix issue 12 and 13 now."),
        (".claude/commands/fix.md", "---\ndescription: x\n---\nFix $1 in $2.", "/fix 'a b' c", "Fix a b in c."),
        (".opencode/command/fix.md", "Fix it.", "/fix please", "Fix it.\n\nplease"),
        (".github/prompts/fix.prompt.md", "Fix it.", "/fix", "Fix it."),
        (".claude/commands/git/commit.md", "Commit $1.", "/git:commit all", "Commit all."),
        (".agents/commands/fix.md", "See @rules.md", "/fix", "[.agents/commands/rules.md]\nBe quick."),
        (".agents/commands/fix.md", "Fix it.", "agent: /fix", "Fix it."),
        (".agents/commands/fix.md", "Fix it.", "please /fix", "please /fix"),
        (".agents/commands/fix.md", "Fix it.", "/other", "/other"),
        ("commands/fix.md", "Fix it.", "/fix", "/fix"),
    ],
)
async def test_a_command_stands_for_the_text_of_its_file(
    native: Desk, file: str, text: str, said: str, heard: str
) -> None:
    write(native.project, {file: text, ".agents/commands/rules.md": "Be quick."})
    native.says(Step(say="Done."))
    await native.run(said)
    assert heard in user_texts(native)


async def test_a_command_of_the_user(native: Desk) -> None:
    write(native.home, {"rules/commands/review.md": "Review $1."})
    native.says(Step(say="Done."))
    await native.run("/review main")
    assert user_texts(native) == "Review main."


# -- skills ----------------------------------------------------------------------------------------------------

SKILL = "---\nname: release\ndescription: How to release.\n---\nFirst, tag it.\n"


@pytest.mark.parametrize(
    ("said", "loaded"),
    [
        ("/release now", True),
        ("use $release", True),
        ("Follow the skill release.", True),
        ("Follow the release skill", True),
        ("prepare the release", False),
        ("/released", False),
        ("/pre-release", False),
    ],
)
async def test_a_skill_is_loaded_when_the_person_names_it(native: Desk, said: str, loaded: bool) -> None:
    write(native.project, {".agents/skills/release/SKILL.md": SKILL, ".agents/skills/release/steps.txt": "1"})
    native.says(Step(say="Done."))
    await native.run(said)
    assert ("First, tag it." in user_texts(native)) is loaded
    assert ("Files in .agents/skills/release: steps.txt" in user_texts(native)) is loaded


@pytest.mark.parametrize("of_user", [False, True])
async def test_the_model_loads_a_skill_by_its_name(native: Desk, of_user: bool) -> None:
    folder, name = (native.home, "rules/skills") if of_user else (native.project, ".claude/skills")
    write(folder, {f"{name}/release/SKILL.md": SKILL})
    native.says(
        Step(calls=[ScriptedCall(name="skill", args={"name": each}) for each in ("release", "nope")]),
        Step(say="Done."),
    )
    turn = await native.run("Do it")
    good, bad = calls(turn)
    assert "First, tag it." in good.output
    assert "There is no skill 'nope'. There are: release." in bad.output
    assert "- release (" in system(native)


async def test_without_skills_there_is_no_tool_for_them(native: Desk) -> None:
    native.server.script = Script(models=["alpha"], rules=[ModelRule(steps=[Step(say="Done.")])])
    await native.run()
    offered = [tool["function"]["name"] for tool in native.server.requests[-1].body["tools"]]
    assert "skill" not in offered
    assert "delegate" in offered
