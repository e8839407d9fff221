"""Decides which calls need no approval: reads and edits inside the working directory, and harmless commands.

The attack: a call that looks harmless and is not. A path that leads out through a link; an edit of `.git/hooks` or of
`.env`; a command line that runs more than it shows (`commandline`). So paths are compared after links are resolved,
some files always need approval, and a command line passes only if all its sub-commands are on a list. Everything that
is not understood needs approval. Only the `Action` of the call is judged: the same `Action` is shown and run.

Rules come from three sources: the settings, the clients (`root/configChanged`) and the session's own config. A call
passes if a rule of one source allows it and no rule of any source disagrees. Only the settings can refuse a call
without asking, and their refusal overrides everything. Calls that always need approval (`must_ask`) override everything
that allows a call: rules, grants, a session's `approvals = allow`, an editor's "approve everything".
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from portico.features.approvals import (
    commandline,
    grants,  # noqa: F401  # sets the rules of its commands
    shell_syntax,
)
from portico.features.approvals.commands import AddGrant, ConfigureHost, RevokeGrant
from portico.features.approvals.coverage import coverage, covered, programs, subcommands, widened
from portico.features.approvals.regex_timeout import RegexTimeout, regex_timeout
from portico.kernel.action import Action
from portico.kernel.approval import Request, Ruling
from portico.kernel.commands import Caller
from portico.kernel.component import Judge
from portico.kernel.errors import NotFound
from portico.kernel.events import Breadth, Json
from portico.kernel.feature import Feature
from portico.kernel.folders import below
from portico.server.settings import ApprovalSettings
from portico.workspace.glob import Glob
from portico.workspace.jail import is_closed

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.session import Session

PROTECTED = (
    "**/.git/**",
    "**/.git",
    "**/.env",
    "**/.env.*",
    "**/.envrc",
    "**/*.lock",
    "**/*.lock.*",
    "**/*.lockb",
    "**/*.lockfile",
    "**/package-lock.json",
    "**/pnpm-lock.yaml",
    "**/npm-shrinkwrap.json",
    "**/go.sum",
)
"""Edits of these always need approval: hooks, secrets, and files that determine which code is installed."""

COMMANDS = {
    "ls": True,
    "pwd": True,
    "whoami": True,
    "git status": True,
    "git diff --stat": True,
    "git log --oneline": True,
    "git branch --show-current": True,
    "rm": False,
    "curl": False,
    "wget": False,
    "sudo": False,
    "doas": False,
    "pkexec": False,
    "su": False,
}
"""Other commands need approval. False: also if another rule, a grant or a setting of the session would allow it."""

ACCOUNTS = ("sudo", "doas", "pkexec", "su")
"""Those of `COMMANDS` that act under another account."""

LEAVES = "leaves"
"""In the data of a request to leave the sandbox: what it asks for (`host:example.com:443`, `read:/data`)."""
_PATTERN_CHARS = 500
RULE_SECONDS = 0.1
"""CPU time for all rules about one call. It usually takes a millisecond, and it blocks the host."""


class Rules(Struct, frozen=True):
    """The rules of one source."""

    origin: str = "client rule"
    """Its name in the log."""
    everything: bool = False
    reads: bool = True
    edits: Mapping[str, bool] = {}
    """Globs below the working directory; the last match applies. No match: ask."""
    commands: Mapping[str, bool] = {}
    """The first words of a command, or `/a regular expression/` over the whole sub-command. False: ask."""
    refused: tuple[str, ...] = ()
    """Commands that are refused without asking."""
    tools: Mapping[str, bool] = {}
    """Allowed or not, by tool name."""


def rules_of(values: Mapping[str, Any], origin: str = "client rule") -> Rules:
    """Read rules from editors: `globalAutoApproveEnabled`, `editAutoApprovePatterns`, `terminalAutoApproveRules`."""
    return Rules(
        origin,
        values.get("globalAutoApproveEnabled") is True,
        edits=_switches(values.get("editAutoApprovePatterns")),
        commands=_switches(values.get("terminalAutoApproveRules")),
        tools=_permissions(values.get("permissions")),
    )


def _switches(said: object) -> dict[str, bool]:
    """Read a map of switches; a switch may be `{"approve": true}`. Any other value counts as off."""
    if not isinstance(said, dict):
        return {}
    return {
        str(key): (value.get("approve") if isinstance(value, dict) else value) is True
        for key, value in said.items()
        if len(str(key)) <= _PATTERN_CHARS
    }


def _permissions(said: object) -> dict[str, bool]:
    """Read `{"allow": [tool, ...], "deny": [tool, ...]}`; a tool in both lists needs approval."""
    if not isinstance(said, dict):
        return {}
    switched = {"allow": True, "deny": False}
    return {
        name: passes
        for key, passes in switched.items()
        if isinstance(said.get(key), list)
        for name in said[key]
        if isinstance(name, str)
    }


def session_rules(config: Mapping[str, Any]) -> Rules:
    rules = rules_of({key: value for key, value in config.items() if key != "globalAutoApproveEnabled"}, "session rule")
    if config.get("autoApprove") == "autoApprove":
        return Rules(rules.origin, True, edits=rules.edits, commands=rules.commands, tools=rules.tools)
    return rules


def _leaves(request: Request) -> list[str] | None:
    """Return what a request to leave the sandbox asks for; None for any other call."""
    return request.meta.get(LEAVES) if request.meta is not None else None


def settings_rules(approvals: ApprovalSettings) -> Rules:
    """Convert the section `[approvals]` to rules."""
    return Rules(
        "setting",
        reads=approvals.reads,
        edits={pattern.removeprefix("!"): not pattern.startswith("!") for pattern in approvals.edits},
        commands=dict.fromkeys(approvals.allow_commands, True) | dict.fromkeys(approvals.ask_commands, False),
        refused=tuple(approvals.deny_commands),
    )


class WorkspacePolicy(Judge):
    """The host's `Judge`: `refuse` is called before all policies, `allow` after them. The rules may change at any time;
    changes apply immediately."""

    def __init__(self) -> None:
        self.settings = Rules("setting")
        self.clients = Rules()

    def push(self, values: Json) -> None:
        self.clients = rules_of(values)

    def coverage(self, request: Request, breadth: Breadth = "shown") -> list[str] | None:
        if (leaves := _leaves(request)) is not None:
            return leaves if breadth == "shown" else None
        shown = coverage(request.action, request.paths, _whole_input(request), request.home)
        return widened(request.action, shown, breadth, request.home)

    def covered(self, covers: Iterable[str], request: Request, *, allow: bool = True) -> bool:
        return covered(covers, request.action, request.paths, _whole_input(request), request.home, allow=allow)

    def refuse(self, session: "Session", request: Request) -> Ruling | None:
        if request.action.text is None or not self.settings.refused:
            return None
        try:
            with _bounded([self.settings]):
                return _refused(self.settings.refused, request.action)
        except RegexTimeout:
            return None  # `allow` does not allow it either: a person is asked

    def must_ask(self, session: "Session", request: Request) -> str | None:
        """Return the rule that requires approval even if something else allows the call. The owner's settings can
        disable the built-in rules (`agent.require_approval`). In a job, where no person can be asked, they apply only
        to calls that reach beyond its folders."""
        if request.result:
            return None
        if _leaves(request) is not None:
            return "it leaves the sandbox"
        job = unattended(session) and not request.passing
        owned = bool(request.passing) or job
        sources = [self.settings] if owned else [self.settings, self.clients, session_rules(session.state.config)]
        try:
            with _bounded(sources if request.action.text is not None else []):
                found = _always(sources, request, builtin=not owned)
                return found or (_beyond(session, request) if job else None if owned else self._kept(session, request))
        except RegexTimeout:
            return "a rule that takes too long"

    def _kept(self, session: "Session", request: Request) -> str | None:
        files = request.action.files if request.action.text is None else _written(request.action)
        if any(_hosts_own(session, path) for path in files):
            return "a file of the host itself"
        if request.action.text is not None:
            return "a protected file" if any(_protected(_real(session, path)) for path in files) else None
        return "a protected file" if self.protects(session, request) else None

    def allow(self, session: "Session", request: Request) -> Ruling | None:
        sources = [self.settings, self.clients, session_rules(session.state.config)]
        try:
            with _bounded(sources if request.action.text is not None else []):
                return self._allow(sources, session, request)
        except RegexTimeout:
            return None

    def protects(self, session: "Session", request: Request) -> bool:
        """Return whether this is an edit that always needs approval."""
        if request.kind != "write":
            return False
        return any(_protected(_real(session, path)) for path in request.action.files)

    def _allow(self, sources: list[Rules], session: "Session", request: Request) -> Ruling | None:
        if request.action.text is not None and _doubtful(self.settings.refused, request.action):
            return None
        if request.passing:
            return Ruling(True, request.passing)
        for rules in sources:
            if rules.everything:
                return Ruling(True, f"{rules.origin}: everything passes")
        if request.result or request.action.unclear:
            return None
        switched = {rules.origin: rules.tools[request.tool] for rules in sources if request.tool in rules.tools}
        if switched:
            return Ruling(True, f"{next(iter(switched))}: tool {request.tool!r}") if all(switched.values()) else None
        return self._judge(sources, session, request)

    def _judge(self, sources: list[Rules], session: "Session", request: Request) -> Ruling | None:
        action = request.action
        if action.kind == "shell":
            folder = os.path.join(session.state.cwd, action.cwd)
            return _command(sources, folder, action, request.strict) if _inside(session, folder) is not None else None
        if not action.files or action.text is not None:
            return None
        inside = [_inside(session, path) for path in action.files]
        if action.kind == "read" and self.settings.reads and not request.strict:
            return Ruling(True, "read in the working directory") if None not in inside else None
        if action.kind == "write":
            rulings = [_edit(sources, path) for path in inside]
            return rulings[0] if None not in rulings else None
        return None


def _whole_input(request: Request) -> str:
    """Return the input with the shown diff, which an agent may send separately."""
    return request.input if request.diff is None else f"{request.input}\0{request.diff}"


def unattended(session: "Session") -> bool:
    """Return whether it is a session of a job. Only jobs start sessions with this name; no client can set it."""
    return session.state.by.startswith("task:") and session.state.config.get("approvals") == "allow"


def _hosts_own(session: "Session", path: str) -> bool:
    """Return whether it is a file of the host: its tokens and settings may be inside the folder of a session."""
    named, top = os.path.join(session.state.cwd, path), os.path.realpath(session.state.cwd)
    return "\0" not in named and is_closed(Path(os.path.realpath(named)), Path(top))


def _written(action: Action) -> tuple[str, ...]:
    """Return the files that a command writes, as far as it names them: `cat > .env`, `tee .git/config`."""
    return tuple(os.path.join(action.cwd, path) for path in shell_syntax.written(programs(action) or []))


def _real(session: "Session", path: str) -> str:
    """Return the absolute path with links resolved and without the first slash, as globs expect it."""
    return os.path.realpath(os.path.join(session.state.cwd, path)).lstrip("/") if "\0" not in path else ""


def _inside(session: "Session", path: str) -> str | None:
    """Return the path relative to the session folder that contains it. Relative names start at the session's cwd."""
    named = os.path.join(session.state.cwd, path)
    if _hosts_own(session, named):
        return None
    return next((found for each in session.folders.reach() if (found := below(each, named)) is not None), None)


def _edit(sources: list[Rules], path: str | None) -> Ruling | None:
    if path is None or _protected(path):
        return None
    said = [found for rules in sources if (found := _last(rules, path)) is not None]
    if not said or not all(passes for _, passes in said):
        return None
    return Ruling(True, said[0][0])


def _protected(path: str) -> bool:
    return any(glob.matches(path.lower()) for glob in _protected_globs())


@cache
def _protected_globs() -> tuple[Glob, ...]:
    return tuple(map(Glob, PROTECTED))


def _last(rules: Rules, path: str) -> tuple[str, bool] | None:
    """Return the last pattern of one source that matches a path."""
    matching = [(pattern, passes) for pattern, passes in rules.edits.items() if Glob(pattern).matches(path)]
    return (f"{rules.origin} {matching[-1][0]!r} for edits", matching[-1][1]) if matching else None


def _bounded(sources: list[Rules]) -> AbstractContextManager[None]:
    """Limit the time of expressions, which may be slow by mistake or on purpose."""
    rules = (rule for each in sources for rule in (*each.refused, *each.commands))
    return regex_timeout(RULE_SECONDS) if any(map(commandline.is_expression, rules)) else nullcontext()


def _refused(refused: Sequence[str], action: Action) -> Ruling | None:
    """Find a refused command, also in substitutions and on further lines, so that a refusal cannot be bypassed. The
    text of a here-document may or may not be a command: there a person is asked (`_doubtful`)."""
    text = action.text or ""
    for words in (commandline.split(text) if "<<" in text else programs(action)) or []:
        for rule in refused:
            if commandline.forbids(rule, words):
                return Ruling(False, f"setting {rule!r} refuses the command")
    return None


def _doubtful(refused: Sequence[str], action: Action) -> bool:
    """Return whether a line may contain a refused command. Such a line needs approval."""
    if not refused:
        return False
    parts = subcommands(action)
    return parts is None or any(commandline.mentions(rule, words) for rule in refused for words in parts)


def _always(sources: list[Rules], request: Request, *, builtin: bool) -> str | None:
    """Return the first rule that always requires approval and may match this call."""
    tool = next((each.origin for each in sources if each.tools.get(request.tool) is False), None)
    if tool is not None:
        return f"{tool}: tool {request.tool!r}"
    if request.action.text is None and request.kind != "shell":
        return None
    rules = {rule: each.origin for each in sources for rule, passes in each.commands.items() if not passes}
    rules |= {rule: each.origin for each in sources for rule in each.refused}  # `nice mkfs` is no plain `mkfs`
    if builtin:
        rules |= {rule: "built-in rule" for rule, passes in COMMANDS.items() if not passes}
    started = programs(request.action) if request.action.text is not None else _claimed(request)
    if started is None:
        return "a command that is only known when it runs" if rules else None
    return next((f"{rules[rule]} {rule!r}" for rule in _mentioned(rules, started)), None)


def _mentioned(rules: Iterable[str], started: list[list[str]]) -> Iterator[str]:
    """Return the rules that may match one of these commands."""
    looked = [each for words in started for each in (words, list(shell_syntax.pieces(_looked_into(words))))]
    names = {commandline.program(word) for words in looked for word in words}
    for rule in rules:
        if commandline.may_mention(rule, names) and any(commandline.mentions(rule, words) for words in looked):
            yield rule


def _beyond(session: "Session", request: Request) -> str | None:
    """Return the rule for a call that the policy of a job does not cover because it reaches beyond the folders of the
    job. A line whose programs are only known at run time is covered."""
    action = request.action
    if any(_hosts_own(session, path) for path in (action.files if action.text is None else _written(action))):
        return "a file of the host itself"
    started = (programs(action) if action.text is not None else None) or []
    account = next(_mentioned(ACCOUNTS, started), None)
    if account is not None:
        return f"built-in rule {account!r}"
    return (
        "built-in rule 'rm', of what is not known to be in its folders" if _deletes(session, action, started) else None
    )


_MOVES = ("cd", "pushd", "popd")
_STARTERS = shell_syntax.RUNNERS | {"busybox"}


def _deletes(session: "Session", action: Action, started: list[list[str]]) -> bool:
    """Return whether an `rm` names a path that may be outside the folders of the session and the temporary files."""
    if any(commandline.program(words[0]) in _STARTERS and commandline.mentions("rm", words) for words in started):
        return True  # `xargs rm`, `find / -exec rm`
    deleted = [words[1:] for words in started if commandline.program(words[0]) == "rm"]
    entered = [words[1:] or ["-"] for words in started if words[0] in _MOVES] if deleted else []
    paths = [path for each in deleted for path in each if not path.startswith("-")]
    paths += [path for each in entered for path in each]
    return not all(_is_near(session, action, path, moves=bool(entered)) for path in paths)


def _is_near(session: "Session", action: Action, path: str, *, moves: bool) -> bool:
    dynamic = shell_syntax.DYNAMIC in path  # a wildcard or, after a `$`, anything
    if path.startswith("~") or (dynamic and set(action.text or "") & set("$`{")):
        return False
    if (moves or dynamic) and (path.startswith(("/", "-")) or ".." in path.split("/")):
        return False
    named = os.path.join(session.state.cwd, action.cwd, path.partition(shell_syntax.DYNAMIC)[0])
    return _inside(session, named) is not None or below(tempfile.gettempdir(), named) not in (None, ".")


def _claimed(request: Request) -> list[list[str]] | None:
    """Read a command that the agent does not report from its title. That can require approval, but never allow."""
    words = [word for word in shell_syntax.pieces([request.title]) if word]
    return [words] if words and request.title != request.tool else None


def _looked_into(words: list[str]) -> list[str]:
    return words if commandline.starts_another(words) else shell_syntax.texts(words)


def _command(sources: list[Rules], folder: str, action: Action, strict: bool) -> Ruling | None:
    parts = subcommands(action)
    if not parts:
        return None
    at_top = os.path.lexists(os.path.join(folder, ".git"))
    used: list[str] = []
    for words in parts:
        if any(_leads_out(folder, word) for word in words):
            return None
        said = list(_said(sources, words, strict, at_top))
        if not said or not all(passes for _, passes in said):
            return None
        used.append(said[0][0])
    return Ruling(True, f"{', '.join(dict.fromkeys(used))} for commands")


def _leads_out(folder: str, word: str) -> bool:
    """Return whether a word names a link that leads out of the folder: a command that follows it does so too."""
    if not os.path.lexists(os.path.join(folder, word)):
        return False
    top = Path(os.path.realpath(folder))
    return below(folder, word) is None or is_closed(Path(os.path.realpath(top / word)), top)


def _said(sources: list[Rules], words: list[str], strict: bool, at_top: bool) -> Iterator[tuple[str, bool]]:
    """Yield the rules that match one sub-command. Built-in rules are overridden only by a refusal; `strict`: they only
    refuse. Those for git apply at the top of a repository: below it, git treats a folder that looks like a bare
    repository as one, and runs commands from its config."""
    for rules in sources:
        for rule in rules.refused:
            if commandline.mentions(rule, words):
                yield f"{rules.origin} {rule!r}", False
        for rule, passes in rules.commands.items():
            if commandline.allows(rule, words) if passes else commandline.mentions(rule, words):
                yield f"{rules.origin} {rule!r}", passes
    for rule, passes in COMMANDS.items():
        if passes and (strict or (rule.startswith("git ") and not at_top)):
            continue
        if commandline.allows(rule, words, options=rule == "ls") if passes else commandline.mentions(rule, words):
            yield f"built-in rule {rule!r}", passes


class ApprovalRules(Feature):
    """Gives the host its `Judge`, with the rules of the settings, and takes the commands about remembered answers."""

    name = "approvals"
    commands = (AddGrant, RevokeGrant, ConfigureHost)
    settings = ApprovalSettings

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self.policy = host.rules = WorkspacePolicy()

    def configure(self, settings: ApprovalSettings) -> None:
        self.policy.settings = settings_rules(settings)

    async def sweep(self) -> None:
        """Delete expired grants permanently: a restart with a clock that was set back does not restore them."""
        for ident in set(self.host.grants) - set(self.host.grants.live()):
            with suppress(NotFound):
                await self.host.do(RevokeGrant(grant=ident), Caller.inside("expired"))
