"""`portico sandbox`: run a command under the policy of a folder, and try to leave a sandbox."""

import asyncio
import json
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, run
from portico.features.sandboxes.agent import AgentProcess
from portico.features.sandboxes.build import build_policy, rules_of
from portico.features.sandboxes.grants import SandboxGrants
from portico.features.sandboxes.running import RunningSandbox
from portico.kernel.errors import BadRequest
from portico.kernel.folders import check_folder
from portico.sandbox import attempts
from portico.sandbox.network import Destination, Verdict
from portico.sandbox.policy import Policy
from portico.sandbox.seccomp import FILTER
from portico.server.home import Home
from portico.server.settings_load import load
from portico.workspace import adoption
from portico.workspace.child import command_environment, exit_code
from portico.workspace.jail import closed
from portico.workspace.process import run as run_command

Confined = Literal["project", "strict"]
app = typer.Typer(no_args_is_help=True, help="Run commands in a sandbox, and check that it holds.")

ModeOption = Annotated[str, typer.Option("--mode", "-m", help="project or strict.")]
CwdOption = Annotated[str | None, typer.Option(help="The working directory. [current]")]


class PrintedGate:
    """Refuses hosts that the policy does not name, and prints them: nobody is asked."""

    async def decide(self, target: Destination) -> Verdict:
        return Verdict(False, "policy", f"The sandbox does not allow {target}. Add it to sandbox.hosts.")

    def opened(self, target: Destination, by: str) -> None: ...

    def moved(self, target: Destination, sent: int, received: int) -> None: ...

    def refused(self, target: Destination, by: str) -> None:
        print(f"portico: refused {target}", file=sys.stderr)


@app.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run_in_sandbox(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after --.")],
    mode: ModeOption = "project",
    cwd: CwdOption = None,
    home: HomeOption = None,
) -> None:
    """Run a command under the policy of a folder. The exit code is that of the command.

    Example: portico sandbox run -- npm test
    """
    raise typer.Exit(run(_run(command, _mode(mode), os.path.abspath(cwd or os.curdir), Home.default(home))))


@app.command("check")
def check_sandbox(
    mode: ModeOption = "project", cwd: CwdOption = None, as_json: JsonFlag = False, home: HomeOption = None
) -> None:
    """Try to leave a sandbox in every known way, and print a table. Exit code 1 if one of them succeeds.

    Example: portico sandbox check
    """
    found = run(_check(_mode(mode), os.path.abspath(cwd or os.curdir), Home.default(home)))
    escaped = [name for name, result in found.items() if result == attempts.ESCAPED]
    if as_json:
        print_json([{"attempt": name, "escaped": name in escaped, "reason": result} for name, result in found.items()])
    else:
        width = max(map(len, found))
        for name, result in found.items():
            print(f"{'ESCAPED' if name in escaped else 'refused'}  {name:{width}}  {'' if name in escaped else result}")
        print(f"{len(found)} attempts, {len(escaped)} escaped.")
    raise typer.Exit(1 if escaped else 0)


def _mode(given: str) -> Confined:
    if given not in get_args(Confined):
        raise BadRequest(f"--mode is 'project' or 'strict', not {given!r}.", field="mode")
    return cast(Confined, given)


async def _opened(policy: Policy) -> tuple[RunningSandbox, Policy]:
    sandbox = await RunningSandbox.open(policy.network, PrintedGate(), policy.limits)
    return sandbox, sandbox.applied(policy)


def _policy(mode: Confined, cwd: str, home: Home) -> Policy:
    settings = load(home.settings_path).settings.sandbox
    cwd = check_folder(cwd, "--cwd")
    return build_policy(cwd, (), SandboxGrants(), AgentProcess(), rules_of(settings, ""), mode)


async def _run(command: list[str], mode: Confined, cwd: str, home: Home) -> int:
    with closed(home.path):
        sandbox, policy = await _opened(_policy(mode, cwd, home))
    try:
        # Its terminal is the user's: without the filter of system calls it could type into it.
        process = adoption.spawn(command, policy=policy, cwd=Path(cwd), env=command_environment(), tty=bool(FILTER))
        with process:
            return exit_code(await asyncio.to_thread(process.wait))
    except FileNotFoundError:
        raise BadRequest(f"There is no program {command[0]!r}.", field="command") from None
    finally:
        await sandbox.close()


async def _check(mode: Confined, cwd: str, home: Home) -> dict[str, str]:
    with ExitStack() as stack:
        stack.enter_context(closed(home.path))
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        command = _attempts(cwd, home, listening.getsockname()[1])
        sandbox, policy = await _opened(_policy(mode, cwd, home))
        try:
            env = command_environment()
            done = await run_command(command, policy=policy, cwd=Path(cwd), env=env, head=1 << 20)
        finally:
            await sandbox.close()
    if done.code != 0:
        raise BadRequest(f"The attempts could not be made: {done.output[-500:]}")
    found: dict[str, str] = json.loads(done.output)
    return found


def _attempts(cwd: str, home: Home, port: int) -> list[str]:
    sockets = ("/var/run/docker.sock", "/run/dbus/system_bus_socket")
    facts = {
        "folder": cwd,
        "secrets": _secrets(home),
        "pid": os.getpid(),
        "ports": [port],
        "sockets": [path for path in sockets if os.path.exists(path)],
        "abstract": [],
    }
    return [sys.executable, "-I", "-c", Path(attempts.__file__).read_text(), json.dumps(facts)]


def _secrets(home: Home) -> list[str]:
    names = (".ssh", ".aws", ".gnupg", ".netrc", ".docker", ".kube", ".bash_history")
    found = [os.path.join(os.path.expanduser("~"), name) for name in names]
    return [path for path in (*found, str(home.path), "/etc/shadow") if os.path.exists(path)]
