"""`automations.toml`: what is written there is there; a mistake names its place and changes nothing."""

from pathlib import Path

import pytest

from portico.features.automations import commands as ac
from portico.features.automations.events import Schedule
from portico.features.automations.source import apply, read
from portico.kernel.errors import BadRequest, Conflict
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened
from tests.doors.standing import standing

GOOD = """
[nightly]
schedule = { cron = "@daily", zone = "Europe/Berlin" }
prompt = { text = "Review what changed.", agent = "scripted" }

[after-it]
after = { automation = "nightly", outcomes = ["failed"] }
prompt = { text = "What went wrong?", agent = "scripted" }
stop_after_failures = 3
"""


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("[x]\noverlpa = 'skip'", "x.overlpa", "Did you mean 'overlap'?"),
        ("[x]\nschedule = { corn = 'x' }", "x.schedule.corn", "Did you mean 'cron'?"),
        ("[x]\nprompt = { }", "x.prompt", "text"),
        ("[x]\nmissed = 'never'", "x.missed", "never"),
        ("[x]\nparallel = 'two'", "x.parallel", "int"),
        ("x = 1", "x", "table"),
        ("['Big Name']\n", "name", "Big Name"),
        ("[x", None, "table declaration"),
        ("[x]\nbudget = { dolars = 2 }", "x.budget.dolars", "Did you mean 'dollars'?"),
        ("[x]\nbudget = { dollars = inf }", "x.budget.dollars", "float"),
        ("[x]\nhook = { filter = [{ point = '/x' }] }", "x.hook.filter[0].point", "pointer"),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, text: str, field: str | None, words: str) -> None:
    path = tmp_path / "automations.toml"
    path.write_text(text)
    with pytest.raises(BadRequest) as refused:
        read(path)
    assert refused.value.field == field
    assert words in refused.value.message


async def test_the_file_is_what_there_is(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    path = tmp_path / "automations.toml"

    async def written(text: str) -> dict[str, str]:
        path.write_text(text)
        await apply(path, automations)
        return {state.name: state.id for state in automations.store.automations.values()}

    first = await written(GOOD)
    assert set(first) == {"nightly", "after-it"}
    assert await written(GOOD) == first
    assert await written(GOOD.replace("@daily", "@weekly")) == first
    schedule = automations.store.get("nightly").plan.schedule
    assert schedule is not None
    assert schedule.cron == "@weekly"
    assert await written(GOOD.replace("@daily", "@fortnightly")) == first
    assert automations.file_error.startswith("nightly.schedule.cron: '@fortnightly' is none of")
    assert await written(GOOD.split("[after-it]", maxsplit=1)[0]) == {"nightly": first["nightly"]}
    assert automations.file_error == ""
    for command in (ac.EditAutomation(automation="nightly", name="x"), ac.DeleteAutomation(automation="nightly")):
        with pytest.raises(Conflict, match=r"automations\.toml"):
            await automations.host.do(command, ME)
    await made(automations, "mine")
    await written(GOOD.replace("[nightly]", "[mine]"))
    assert "made elsewhere" in automations.file_error


async def test_the_host_reads_it_at_its_start_and_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "home" / "automations.toml"
    path.parent.mkdir()
    path.write_text(GOOD)
    async with standing(tmp_path) as here:
        names = [each["name"] for each in (await here.http.get("/v1/automations")).json()["automations"]]
        assert names == ["nightly", "after-it"]
        path.write_text(GOOD.replace("[nightly]", "[weekly]"))
        async for _ in here.server.host.log.follow(after=0):
            if here.server.automations.store.find("weekly") is not None:
                break
        path.write_text("[broken")
    assert here.server.automations.store.find("weekly") is not None


@pytest.mark.parametrize("between", [None, ""], ids=["no file", "an empty file"])
async def test_a_file_that_is_being_saved_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str | None
) -> None:
    """Editors move the old file away, or empty it, before they write the new one: a look in between deleted all
    automations of the file, with their histories."""
    monkeypatch.setattr("portico.server.server._WATCH_SECONDS", 3600.0)  # this test looks
    path = tmp_path / "home" / "automations.toml"
    path.parent.mkdir()
    path.write_text(GOOD)
    async with standing(tmp_path) as here:
        store = here.server.automations.store
        before = store.get("nightly").id
        path.unlink()
        if between is not None:
            path.write_text(between)
        await here.server.automations.poll()
        path.unlink(missing_ok=True)
        path.write_text(GOOD.replace("@daily", "@weekly"))
        await here.server.automations.poll()
        assert store.get("nightly").id == before
        await here.server.automations.poll()
        assert (store.get("nightly").id, store.get("nightly").plan.schedule) == (
            before,
            Schedule(cron="@weekly", zone="Europe/Berlin"),
        )
        path.unlink()
        for _ in range(2):
            await here.server.automations.poll()
        assert store.find("nightly") is None
