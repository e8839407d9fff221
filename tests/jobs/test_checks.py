"""Criteria as a list of checks: commands, files, schemas, judges and people, each with its evidence."""

import asyncio
import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import EntryError, Jobs
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import Forbidden
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import NO, YES, Data, make, opened, play, prompts, story, task

ACTION = {"retryTimes": 0}
RULES = """
rules:
  - match: ^change (?P<file>\\S+)
    steps: [{do: write, path: "{file}", text: "one\\ntwo\\n", ask: false}, {do: say, text: done}]
  - match: ^draw
    steps:
      - {do: write, path: src/a.txt, text: "one\\ntwo\\n", ask: false}
      - {do: write, path: shot.png, text: png, ask: false}
  - match: ^answer
    steps: [{do: say, text: "Here it is:\\n```json\\n{\\"n\\": 3}\\n```\\n"}]
"""


def checked(*checks: Data, **more: object) -> Data:
    return {"criteria": {"checks": list(checks), "failureAction": ACTION}, **more}


async def decisions(jobs: Jobs, cwd: Path) -> list[str]:
    """What was decided about the criteria."""
    async with asyncio.timeout(60):
        await play(jobs, cwd)
    return [word for word in await story(jobs.host.log, "task-1") if word.startswith(("[CRITERIA]", "task"))]


@pytest.fixture
async def writing(open_host: HostOpener, tmp_path: Path) -> tuple[Host, Path]:
    """A host whose agent writes, and a git work tree."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.txt").write_text("old\n")
    make_repository(work)
    return await open_host(rules=RULES), work


def make_repository(folder: Path) -> None:
    for line in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"]):
        subprocess.run(["git", *line], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"exist": ["src/*.txt", "old.txt"]}, "Files check passed"),
        ({"exist": ["src/*.py"]}, "Files check failed\nmissing: src/*.py"),
        ({"absent": ["*.tmp"]}, "Files check passed"),
        ({"absent": ["src/**"]}, "Files check failed\nshould not be there: src/a.txt"),
        ({"changedOnly": ["src/**"]}, "Files check passed"),
        ({"changedOnly": ["docs/**"]}, "Files check failed\nshould not have been changed: src/a.txt"),
        ({"maxChangedLines": 2}, "Files check passed"),
        ({"maxChangedLines": 1}, "Files check failed\n2 lines were changed; 1 is the limit"),
    ],
)
async def test_files(writing: tuple[Host, Path], files: Data, reason: str) -> None:
    host, work = writing
    jobs = await opened(host, make({"it": task("change src/a.txt", **checked({"files": files}))}))
    found = await decisions(jobs, work)
    assert found[0].splitlines()[0] == f"[CRITERIA] {reason.splitlines()[0]}"
    assert sorted(found[0].splitlines()[1:]) == sorted(reason.splitlines()[1:])
    assert found[-1] == ("taskSucceeded" if "passed" in reason else "taskFailed")


async def test_without_git_nothing_is_known_of_changes(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"it": task(**checked({"files": {"changedOnly": ["*"]}}))}))
    assert "no git work tree" in (await decisions(jobs, tmp_path))[0]


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("check", "content", "reason"),
    [
        ({"schema": SCHEMA}, None, "The JSON in the answer fits its schema"),
        ({"schema": {"required": ["m"]}}, None, "'m' is a required property"),
        ({"schema": SCHEMA, "file": "out.json"}, '{"n": 1}', "The JSON file 'out.json' fits its schema"),
        ({"schema": SCHEMA, "file": "out.json"}, '{"n": 9}', "$.n: 9 is greater than the maximum of 5"),
        ({"schema": SCHEMA, "file": "out.json"}, "no json", "malformed"),
        ({"schema": SCHEMA, "file": "out.json"}, None, "No such file"),
        ({"schema": {"$ref": "http://127.0.0.1:1/x"}}, None, "the schema cannot be used"),
    ],
)
async def test_schema(open_host: HostOpener, tmp_path: Path, check: Data, content: str | None, reason: str) -> None:
    host = await open_host(rules=RULES)
    if content is not None:
        (tmp_path / "out.json").write_text(content)
    jobs = await opened(host, make({"it": task("answer", **checked({"schema": check}))}))
    assert reason in (await decisions(jobs, tmp_path))[0]


JUDGES = [{"category": "driving"}, {"id": "gpt-4.1"}, {"id": "gpt-5.4"}]


@pytest.mark.parametrize(
    ("condition", "quorum", "reason", "ended"),
    [
        (YES, None, "Model check passed: 3 of 3 judges said yes, 3 needed", "taskSucceeded"),
        (NO, 1, "Model check failed: 0 of 3 judges said yes, 1 needed", "taskFailed"),
        ("[[before:judge|2|job_boolean_true|ok]]", 2, "Model check passed: 2 of 3", "taskSucceeded"),
        ("[[before:judge|1|job_boolean_true|ok]]", 2, "Model check failed: 1 of 3", "taskFailed"),
        (f"[[crashn:once|1]] {YES}", 2, "Model check passed: 2 of 3", "taskSucceeded"),
    ],
)
async def test_judges_and_their_quorum(
    host: Host, tmp_path: Path, condition: str, quorum: int | None, reason: str, ended: str
) -> None:
    model: Data = {"condition": [f"job_boolean_true? {condition}"], "judges": JUDGES}
    check = {"model": model | ({"quorum": quorum} if quorum else {})}
    found = await decisions(await opened(host, make({"it": task(**checked(check))})), tmp_path)
    assert found[-2].startswith(f"[CRITERIA] {reason}") or found[-1] == ended, found
    assert any(word.startswith(f"[CRITERIA] {reason}") for word in found), found
    assert found[-1] == ended


async def test_the_judge_is_another_model_than_the_worker(host: Host, tmp_path: Path) -> None:
    check = {"model": {"condition": [f"job_boolean_true? {YES}"]}}
    jobs = await opened(host, make({"it": task(model={"category": "driving"}, **checked(check))}))
    await play(jobs, tmp_path)
    words = await story(host.log, "task-1")
    assert "[SESSION STARTED] driving session started with model gpt-5.2" in words, "not gpt-5-mini, which worked"


async def answering(host: Host, *answers: tuple[str, Data]) -> None:
    """People who answer one question after the other."""
    left = list(answers)
    async with asyncio.timeout(60):
        async for records in host.log.follow():
            for event in (record.event for record in records):
                if isinstance(event, e.QuestionAsked) and left:
                    by, answer = left.pop(0)
                    session = await host.get(host.session_of(event.question))
                    await session.questions.answer(event.question, "accept", answer, by=by)
            if not left:
                return


PERSON = {"question": ["Is $user-input good?"]}


@pytest.mark.parametrize(
    ("answer", "reason", "ended"),
    [
        ({"answer": "yes"}, "[CRITERIA] Person check passed: ann said yes", "taskSucceeded"),
        (
            {"answer": "no", "reason": "too long"},
            "[CRITERIA] Person check failed: ann said no: too long",
            "taskFailed",
        ),
        (
            {"answer": {"state": "submitted", "value": {"kind": "selected", "value": "yes"}}},
            "[CRITERIA] Person check passed: ann said yes",
            "taskSucceeded",
        ),
    ],
)
async def test_a_person(host: Host, tmp_path: Path, answer: Data, reason: str, ended: str) -> None:
    jobs = await opened(host, make({"it": task("[[say:$user-input]]", **checked({"person": PERSON}))}))
    person = asyncio.ensure_future(answering(host, ("token:ann", answer)))
    await play(jobs, tmp_path, "the text")
    await person
    found = [word for word in await story(host.log, "task-1") if word.startswith("[CRITERIA]")]
    assert found[0] == reason
    assert (await story(host.log, "task-1"))[-1] == ended


APPROVING = frozenset({"read", "approve"})
ANN = c.Caller("1", "ann", APPROVING)
PRETENDER = c.Caller("1", "ann", APPROVING, door="ahp", client="bob", label="client:bob")
BOB_IN_AN_EDITOR = c.Caller("2", "bob", APPROVING, door="ahp", client="vscode-7", label="client:vscode-7")
BOB = c.Caller("3", "phone", APPROVING, person="bob")
ADAS_TOKEN_CALLED_BOB = c.Caller("4", "bob", APPROVING, person="ada")


@pytest.mark.parametrize("who", [BOB_IN_AN_EDITOR, BOB])
@pytest.mark.parametrize("kind", ["person", "Ask"])
async def test_only_the_people_named_may_answer(host: Host, tmp_path: Path, kind: str, who: c.Caller) -> None:
    """The answer of an editor that called itself "bob" counted as Bob's, and Bob's own in an editor did not."""
    ask = {"kind": "Ask", "question": ["Go?"], "people": ["bob"]}
    checked_task = task("[[say:x]]", **checked({"person": {"question": ["Good?"], "people": ["bob"]}}))
    work = ask if kind == "Ask" else None
    jobs = await opened(host, make({"it": task("[[say:x]]") if work else checked_task}, work))
    running = asyncio.ensure_future(play(jobs, tmp_path))
    question = await asked(host)
    command = c.AnswerQuestion(question=question.question, answers={"answer": "yes"})
    for other in (ANN, PRETENDER, ADAS_TOKEN_CALLED_BOB):
        with pytest.raises(Forbidden, match="Only 'bob' may answer"):
            await host.do(command, other)
    await host.do(command, who)
    await running
    assert (await story(host.log, "task-1"))[-1] == "taskSucceeded"


async def asked(host: Host) -> e.QuestionAsked:
    async with asyncio.timeout(60):
        async for records in host.log.follow():
            for event in (record.event for record in records):
                if isinstance(event, e.QuestionAsked):
                    return event
    raise AssertionError("nobody was asked")


async def test_a_person_sees_the_diff_the_output_and_the_pictures(writing: tuple[Host, Path]) -> None:
    host, work = writing
    checks: list[Data] = [{"command": "echo 12 tests passed"}, {"person": {"question": ["Good?"]}}]
    jobs = await opened(host, make({"it": task("draw", **checked(*checks))}))
    running = asyncio.ensure_future(play(jobs, work))
    question = await asked(host)
    assert question.text == "Good?\n\nChanged files:\n- shot.png (1 lines)\n- src/a.txt (2 lines)"
    diff, output, shown = question.evidence
    assert "+++ b/src/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n" in diff["text"]
    assert output == {"type": "text", "title": "Command passed: echo 12 tests passed", "text": "12 tests passed"}
    data = base64.b64encode(b"png").decode()
    assert shown == {"type": "image", "title": "shot.png", "data": data, "mimeType": "image/png"}
    await host.do(c.AnswerQuestion(question=question.question, answers={"answer": "yes"}), ANN)
    await running


async def test_nobody_is_asked_while_the_command_fails(host: Host, tmp_path: Path) -> None:
    """A failed `criteria.command` beside the checks did not keep a person from being asked."""
    criteria = {"command": "exit 3", "checks": [{"person": {"question": ["Good?"]}}], "failureAction": ACTION}
    found = await decisions(await opened(host, make({"it": task(criteria=criteria)})), tmp_path)
    assert found == ["[CRITERIA] Command failed with exit code 3: exit 3", "taskFailed"]


@pytest.mark.parametrize(("then", "ended"), [("fail", "taskFailed"), ("pass", "taskSucceeded")])
async def test_nobody_answers(host: Host, tmp_path: Path, then: str, ended: str) -> None:
    check = {"person": {"question": ["Good?"], "expires": 0.05, "onExpiry": then}}
    found = await decisions(await opened(host, make({"it": task(**checked(check))})), tmp_path)
    assert "Nobody answered within 0.05 seconds" in found[0]
    assert found[-1] == ended
    assert all(each.closed for each in host.list()), "nothing is left waiting"


async def test_a_plain_list_says_in_the_retry_what_failed(host: Host, tmp_path: Path) -> None:
    """All of them are evaluated, and nobody is bothered while something else is wrong."""
    command = "test -e once && exit 0; touch once; echo no such luck; exit 1"
    criteria: list[Any] = [{"command": command}, {"files": {"exist": ["once"]}}, {"person": {"question": ["Good?"]}}]
    jobs = await opened(host, make({"it": task("[[say:go]]", criteria=criteria)}))
    person = asyncio.ensure_future(answering(host, ("token:ann", {"answer": "yes"})))
    await play(jobs, tmp_path)
    await person
    assert (await prompts(host, "task-1"))[:2] == [
        "[[say:go]]",
        "[[say:go]]\n## You accidentally Stopped\nThese checks failed:\nno such luck",
    ]
    assert (await story(host.log, "task-1"))[-1] == "taskSucceeded"


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({}, "[0]: Should have exactly one of command, files, schema, model, person."),
        ({"command": "x", "person": PERSON}, "[0]: Should have exactly one of"),
        ({"command": ""}, "[0].command: Should name a program."),
        ({"files": {}}, "[0].files: Should check something."),
        ({"files": {"exist": ["../x"]}}, '[0].files.exist[0]: "../x" should be a path or glob below'),
        ({"files": {"absent": ["/etc/passwd"]}}, '[0].files.absent[0]: "/etc/passwd" should be'),
        ({"schema": {"schema": {"type": 3}}}, "[0].schema.schema: Is not a JSON Schema"),
        ({"schema": {"schema": {}, "file": "../x"}}, "[0].schema.file:"),
        ({"model": {"condition": ["Good?"]}}, "[0].model.condition: Boolean tool"),
        (
            {"model": {"condition": [YES], "judges": [{"category": "no"}]}},
            '[0].model.judges[0].category: "no" is not a valid model key.',
        ),
        ({"model": {"condition": [YES], "quorum": 2}}, "[0].model.quorum: Should be at most 1, the number of judges"),
        ({"person": {"question": ["$no"]}}, "[0].person.question: Cannot find prompt variable: $no."),
        ({"person": {"question": ["?"], "onExpiry": "x"}}, '[0].person.onExpiry: Should be one of "fail", "pass".'),
        ({"colour": 1}, "[0].colour: Unknown key."),
    ],
)
def test_mistakes_are_named(check: Data, expected: str) -> None:
    for criteria in ([check], {"checks": [check], "failureAction": ACTION}):
        with pytest.raises(EntryError) as caught:
            make({"it": task("$user-input", criteria=criteria)})
        assert str(caught.value).startswith(f'entry.tasks["it"].criteria.checks{expected}')
