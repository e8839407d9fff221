"""Real terminals with real shells."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, Conflict, NotFound, TooLarge
from portico.workspace import terminal as module
from portico.workspace.escapes import plain
from portico.workspace.process import environment
from portico.workspace.scrollback import Loose, Scrollback, ShellCommand
from portico.workspace.shell import Integration, integrate, unescape
from portico.workspace.terminal import (
    CommandFinished,
    CommandStarted,
    CwdChanged,
    Data,
    DetectionAvailable,
    Event,
    Exited,
    OutputParser,
    Terminal,
    TitleChanged,
)
from tests.free import FREE

from .living import alive, asleep, open_descriptors, pids_in

SHELLS = [
    "bash",
    pytest.param("zsh", marks=pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed here")),
]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both loops: they differ in how they watch descriptors and children."""
    return "asyncio", {"use_uvloop": request.param}


class Screen:
    """Collects what a terminal reports, and waits for what is expected."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Data))

    @property
    def prompts(self) -> int:
        """How often a shell with this prompt has asked for a line."""
        return plain(self.text).count("ready> ")

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, seen: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not seen():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def opened(
    folder: Path, *command: str, cols: int = 80, scrollback: int = 10_000, **extra: str
) -> AsyncIterator[tuple[Terminal, Screen]]:
    screen = Screen()
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = environment(HOME=str(home), PS1="$ ", **extra)
    terminal = Terminal(screen, command=command, policy=FREE, cwd=folder, env=env, cols=cols, scrollback=scrollback)
    await terminal.start()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(terminal.run())
        try:
            yield terminal, screen
        finally:
            await terminal.dispose()
            await running


async def say(terminal: Terminal, screen: Screen, line: str) -> tuple[CommandStarted, CommandFinished]:
    """Types a line at the prompt and waits until the shell says that it ended."""
    await screen.until(lambda: screen.of(DetectionAvailable))
    count = len(screen.of(CommandFinished))
    terminal.input(line + "\r")
    await screen.until(lambda: len(screen.of(CommandFinished)) > count)
    started, finished = screen.of(CommandStarted)[-1], screen.of(CommandFinished)[-1]
    assert isinstance(started, CommandStarted)
    assert isinstance(finished, CommandFinished)
    assert started.command_id == finished.command_id
    return started, finished


@pytest.mark.parametrize("shell", SHELLS)
async def test_commands_are_recognised(tmp_path: Path, shell: str) -> None:
    (tmp_path / "sub;dir").mkdir()
    async with opened(tmp_path, shell) as (terminal, screen):
        for line, code in (("echo a; false", 1), ("true", 0), (r"printf '%s\n' 'x;y\z'", 0), ("(exit 42)", 42)):
            started, finished = await say(terminal, screen, line)
            assert (started.line, finished.exit_code) == (line, code)
        await say(terminal, screen, "cd 'sub;dir'")
        await screen.until(lambda: screen.of(CwdChanged)[-1] == CwdChanged(str(tmp_path / "sub;dir")))
        assert terminal.cwd == str(tmp_path / "sub;dir")
        assert "x;y\\z\r\n" in screen.text
        assert "]633" not in screen.text
        commands = [part for part in terminal.scrollback.parts if isinstance(part, ShellCommand)]
        assert (commands[0].line, commands[0].exit_code) == ("echo a; false", 1)
        assert "a\r\n" in commands[0].output
        assert commands[0].complete


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_users_own_files_are_read_and_not_touched(tmp_path: Path, shell: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    own = home / f".{shell}rc"
    own.write_text("MINE=from-my-file\nPROMPT_COMMAND='echo own-prompt-$?'\nPS1='mine> '\n")
    before = (own.read_text(), own.stat().st_mtime_ns)
    async with opened(tmp_path, shell) as (terminal, screen):
        await say(terminal, screen, "echo $MINE")
        _, finished = await say(terminal, screen, "(exit 7)")
        assert finished.exit_code == 7
        assert "from-my-file\r\n" in screen.text
        if shell == "bash":
            await screen.until(lambda: "own-prompt-7" in screen.text)
        await screen.until(lambda: plain(screen.text).rstrip().endswith("mine>"))
    assert (own.read_text(), own.stat().st_mtime_ns) == before


async def test_lines_kept_out_of_the_history_are_taken_from_the_screen(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    # A short prompt: one with the folder's name may reach the edge of the screen, where a line is drawn in two pieces.
    (tmp_path / "home/.bashrc").write_text("HISTCONTROL=ignoreboth\nPS1='> '\n")
    async with opened(tmp_path, "bash") as (terminal, screen):
        for line in ("echo one", "echo one", " echo hidden"):
            started, _ = await say(terminal, screen, line)
            assert started.line == line.strip()


async def test_an_empty_line_and_ctrl_c_are_no_commands(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.bashrc").write_text("PS1='ready> '\n")
    async with opened(tmp_path, "bash") as (terminal, screen):
        await say(terminal, screen, "true")
        await screen.until(lambda: screen.prompts == 2)
        terminal.input("\r\r")
        await screen.until(lambda: screen.prompts == 4)
        terminal.input("typed and dropped")
        await screen.until(lambda: "typed and dropped" in screen.text)
        await asleep(terminal.pid)  # while bash draws the line, it takes an interrupt without a new prompt
        terminal.input("\x03")
        # The terminal drops what was typed before the interrupt was handled: wait for the next prompt.
        await screen.until(lambda: screen.prompts == 5)
        started, _ = await say(terminal, screen, "echo last")
        assert started.line == "echo last"
        assert len(screen.of(CommandStarted)) == 2


async def test_ctrl_c_ends_the_command_and_not_the_shell(tmp_path: Path) -> None:
    async with opened(tmp_path, "bash") as (terminal, screen):
        await screen.until(lambda: screen.of(DetectionAvailable))
        terminal.input("sh -c 'echo waiting; exec sleep 1000'\r")
        await screen.until(lambda: "waiting\r\n" in screen.text)
        terminal.input("\x03")
        await screen.until(lambda: screen.of(CommandFinished))
        finished = screen.of(CommandFinished)[0]
        assert isinstance(finished, CommandFinished)
        assert finished.exit_code == 130


async def test_a_program_cannot_forge_commands(tmp_path: Path) -> None:
    forged = r"printf '\033]633;E;rm -rf /\007\033]633;C;guess\007\033]633;D;0;guess\007\033]133;C\007done'"
    async with opened(tmp_path, "bash") as (terminal, screen):
        started, _ = await say(terminal, screen, forged)
        assert [event.line for event in screen.of(CommandStarted) if isinstance(event, CommandStarted)] == [
            started.line
        ]
        assert started.line == forged
        assert len(screen.of(CommandFinished)) == 1
        assert "]633;C" not in screen.text.replace(forged, "")


async def test_the_end_of_the_shell_ends_its_last_command(tmp_path: Path) -> None:
    async with opened(tmp_path, "bash") as (terminal, screen):
        await screen.until(lambda: screen.of(DetectionAvailable))
        terminal.input("exit 5\r")
        await screen.until(lambda: screen.of(Exited))
        assert screen.events[-1] == Exited(5)
        finished = screen.events[-2]
        assert isinstance(finished, CommandFinished)
        assert finished.exit_code == 5
        assert terminal.exit_code == 5
        with pytest.raises(Conflict):
            terminal.input("too late")


async def test_any_program_runs_in_a_terminal(tmp_path: Path) -> None:
    async with opened(tmp_path, "sh", "-c", "tty -s && stty size && printf '\\033]0;Hi\\007'; exit 3") as (_, screen):
        await screen.until(lambda: screen.of(Exited))
        assert "24 80\r\n" in screen.text
        assert screen.of(TitleChanged) == [TitleChanged("Hi")]
        assert screen.events[-1] == Exited(3)


async def test_a_program_that_is_missing_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, "no-such-shell") as (_, screen):
        await screen.until(lambda: screen.of(Exited))
        assert screen.events[-1] == Exited(127)
        assert "no-such-shell" in screen.text
    with pytest.raises(NotFound):
        await Terminal(Screen(), policy=FREE, cwd=tmp_path / "missing", env=environment()).start()


async def test_resizing_reaches_the_program(tmp_path: Path) -> None:
    async with opened(tmp_path, "bash", cols=90) as (terminal, screen):
        await say(terminal, screen, "stty size")
        terminal.resize(120, 40)
        await say(terminal, screen, "stty size")
        assert "24 90\r\n" in screen.text
        assert "40 120\r\n" in screen.text


@pytest.mark.parametrize(("cols", "rows"), [(0, 24), (80, 0), (module.SIDE_MAX + 1, 24), (80, -1)])
async def test_sizes_are_checked(tmp_path: Path, cols: int, rows: int) -> None:
    with pytest.raises(BadRequest):
        Terminal(Screen(), policy=FREE, cwd=tmp_path, env={}, cols=cols, rows=rows)
    terminal = Terminal(Screen(), policy=FREE, cwd=tmp_path, env={}, cols=module.SIDE_MAX, rows=module.SIDE_MAX)
    with pytest.raises(BadRequest):
        terminal.resize(cols, rows)
    with pytest.raises(Conflict):
        terminal.input("not started")


async def test_characters_cut_by_a_read_stay_whole(tmp_path: Path) -> None:
    async with opened(tmp_path, "sh", "-c", "printf '\\303'; sleep 0.1; printf '\\274ber\\n'") as (_, screen):
        await screen.until(lambda: screen.of(Exited))
        assert screen.text == "über\r\n"


async def test_the_scrollback_is_bounded(tmp_path: Path) -> None:
    command = ("sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done")
    async with opened(tmp_path, *command, scrollback=1000) as (terminal, screen):
        await screen.until(lambda: screen.of(Exited))
        kept = terminal.scrollback.text()
        assert kept.endswith("line-2999\r\n")
        assert len(kept) <= 1100
        terminal.clear()
        assert terminal.scrollback.parts == []


async def test_a_paused_terminal_holds_its_program_up(tmp_path: Path) -> None:
    async with opened(tmp_path, "sh", "-c", "yes | head -c 2000000; echo; touch done") as (terminal, screen):
        await screen.until(lambda: screen.text)
        terminal.pause()
        size = len(screen.text)
        await asyncio.sleep(0.2)  # long enough for all of it, were it not held up
        assert len(screen.text) == size
        assert not (tmp_path / "done").exists()
        terminal.resume()
        await screen.until(lambda: screen.of(Exited))
        assert (tmp_path / "done").exists()


async def test_a_large_paste_arrives_whole_and_waiting_input_is_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path, "sh", "-c", "stty raw -echo; echo go; head -c 300000 | wc -c") as (terminal, screen):
        await screen.until(lambda: "go" in screen.text)
        terminal.input("x" * 300_000)
        await screen.until(lambda: "300000" in screen.text)
    async with opened(tmp_path, "sh", "-c", "stty raw -echo; echo go; exec sleep 1000") as (terminal, screen):
        await screen.until(lambda: "go" in screen.text)
        terminal.input("x" * module.INPUT_MAX)
        with pytest.raises(TooLarge):
            terminal.input("x" * 100_000)


async def test_dispose_ends_every_process(tmp_path: Path) -> None:
    async with opened(tmp_path, "bash") as (terminal, screen):
        await screen.until(lambda: screen.of(DetectionAvailable))
        terminal.input("echo $$ >> pids; sleep 1000 & echo $! >> pids; (setsid sleep 1000 & echo $! >> pids)\r")
        terminal.input("trap '' HUP TERM; nohup sleep 1000 & echo $! >> pids\r")
        pids = await pids_in(tmp_path / "pids", 4)
        assert all(alive(pid) for pid in pids)
        async with asyncio.timeout(30):
            await terminal.dispose()
    assert [pid for pid in pids if alive(pid)] == []
    assert isinstance(screen.events[-1], Exited)


async def test_a_cancelled_run_ends_every_process(tmp_path: Path) -> None:
    screen = Screen()
    command = ["sh", "-c", "echo $$ > pids; exec sleep 1000"]
    terminal = Terminal(screen, command=command, policy=FREE, cwd=tmp_path, env=environment())
    before = open_descriptors()
    await terminal.start()
    (pid,) = await pids_in(tmp_path / "pids", 1)
    task = asyncio.create_task(terminal.run())
    await asyncio.sleep(0)  # it has begun
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)
    assert open_descriptors() == before


async def test_dispose_is_enough_when_nobody_has_waited(tmp_path: Path) -> None:
    screen = Screen()
    before = open_descriptors()
    terminal = Terminal(
        screen, command=["sh", "-c", "echo hi; exec sleep 1000"], policy=FREE, cwd=tmp_path, env=environment()
    )
    await terminal.start()
    await screen.until(lambda: screen.text)
    await asyncio.gather(terminal.dispose(), terminal.dispose(), terminal.run())
    assert not alive(terminal.pid)
    assert screen.of(Exited) == [Exited(129, "SIGHUP")]
    assert open_descriptors() == before


async def test_start_up_files_are_private_and_deleted(tmp_path: Path) -> None:
    integration = integrate(["bash"], {})
    assert integration.folder is not None
    assert integration.folder.stat().st_mode & 0o777 == 0o700
    integration.forget()
    assert not integration.folder.exists()
    assert integrate(["bash", "-c", "true"], {}).secret == integrate(["fish"], {}).secret == ""


def heard(*pieces: str, secret: str = "") -> list[Event]:
    events: list[Event] = []
    speech = OutputParser(events.append, Integration([], {}, secret), clock=lambda: 100.0)
    for piece in pieces:
        speech.hear(piece)
    return events


SESSION = "\x1b]133;A\x07$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07a b\r\n\x1b]133;D;2\x07"


def test_shells_with_their_own_integration_are_understood() -> None:
    """fish and others speak OSC 133 by themselves, without a secret and without the line."""
    assert heard(SESSION) == [
        DetectionAvailable(),
        Data("$ "),
        Data("ls\r\n"),
        CommandStarted("command-1", "ls", 100.0),
        Data("a b\r\n"),
        CommandFinished("command-1", 2, 0.0),
    ]


def test_titles_and_command_lines_are_bounded() -> None:
    """They go into every list, and a program can print any of them."""
    longest = module.LINE_MAX
    title, line, shown = "t" * (module.TITLE_MAX + 1), "l" * (longest + 1), "s" * (3 * longest)
    assert heard(f"\x1b]0;{title}\x07")[-1] == TitleChanged(title[:-1])
    told = heard(f"\x1b]633;E;{line}\x07\x1b]633;C\x07")
    assert told[-1] == CommandStarted("command-1", line[:longest], 100.0)
    typed = heard(f"\x1b]133;B\x07{shown}", "\x1b]133;C\x07")
    assert typed[-1] == CommandStarted("command-1", shown[:longest], 100.0)


@given(st.lists(st.integers(0, len(SESSION))))
def test_where_the_stream_is_cut_does_not_matter(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(SESSION)})
    events = heard(*(SESSION[a:b] for a, b in pairwise(edges)))
    whole = heard(SESSION)
    assert [event for event in events if not isinstance(event, Data)] == [e for e in whole if not isinstance(e, Data)]
    assert "".join(e.text for e in events if isinstance(e, Data)) == "".join(
        e.text for e in whole if isinstance(e, Data)
    )


@given(st.text(max_size=200))
def test_any_output_is_survived(text: str) -> None:
    heard(text, "\x1b]633;" + text + "\x07", "\x1b]633;P;Cwd=" + text, "\x1b]133;D;" + text + "\x07")


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=30))
def test_unescape_undoes_what_shells_do(text: str) -> None:
    escaped = "".join(f"\\x{ord(c):02x}" if c == ";" or ord(c) < 32 else "\\\\" if c == "\\" else c for c in text)
    assert unescape(escaped) == text


@given(st.lists(st.tuples(st.sampled_from(["add", "start"]), st.text("ab", max_size=40)), max_size=40))
def test_the_scrollback_keeps_the_end(steps: list[tuple[str, str]]) -> None:
    scrollback = Scrollback(limit=50)
    whole = ""
    for step, text in steps:
        if step == "add":
            scrollback.add(text)
            whole += text
        else:
            scrollback.start(ShellCommand("id", text[:5], 0.0))
    assert whole.endswith(scrollback.text())
    assert scrollback.size == sum(
        len(p.value) if isinstance(p, Loose) else len(p.output + p.line) for p in scrollback.parts
    )
    assert scrollback.size <= 55
