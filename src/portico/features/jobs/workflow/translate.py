"""Translate a workflow to the tree of works that the executor runs, and check what the structs cannot express: ids,
names in templates, and keys that depend on each other."""

import re
from datetime import datetime
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import portico.features.jobs.step as t
from portico.features.jobs.entry import (
    Again,
    Branches,
    Check,
    Criteria,
    Entry,
    FailureAction,
    FilesCheck,
    If,
    Job,
    Model,
    ModelCheck,
    Over,
    PersonCheck,
    SchemaCheck,
    Seq,
    Task,
    Work,
    rebuilt,
)
from portico.features.jobs.workflow import file as f
from portico.features.jobs.workflow.inputs import default_error, secrets_of, variable_of
from portico.features.jobs.workflow.names import Names, Scope
from portico.features.jobs.workflow.problem import Path, Problems, did_you_mean
from portico.features.jobs.workflow.schema import full_schema
from portico.features.jobs.workflow.template import is_template
from portico.kernel.events import Budget

DEFAULT_RETRIES = 2
"""Of a prompt whose checks failed, unless `retry` is set: the agent reads what failed and tries again."""
CHECKS_FAILED = "These checks failed:\n{{ check_output }}"
JUDGE = "\n\nReport your verdict with the tool job_boolean_true or job_boolean_false; its argument is the reason."
FITS = "\n\nEnd your answer with JSON that fits this JSON Schema, in a fenced block:\n"
_ID = re.compile(r"[A-Za-z_]\w*")
_HOOK = re.compile(r"[\w-]{1,100}", re.ASCII)
_NAME_CHARS = 60
_OF_SESSION = ("agent", "model", "budget", "label", "sandbox")
"""Settings of a session: steps that share it have the same."""
_PASSED_ON = re.compile(r"\s*\{\{\s*inputs(\.\w+|\[['\"][\w-]+['\"]\])\s*\}\}\s*")


def translate(workflow: f.Workflow, name: str, file: str, source: str, problems: Problems) -> Entry:
    """The entry with the one job of the workflow. Raises all mistakes."""
    return _Translation(workflow, problems).entry(name, file, source)


class _Settings(Struct, frozen=True):
    """The settings of a step after those around it."""

    agent: str = ""
    model: str = ""
    timeout: float | None = None
    budget: Budget = Budget()
    env: dict[str, str] = {}
    label: str = ""
    sandbox: str = ""

    def within(self, near: f.SettingKeys) -> "_Settings":
        """The nearest setting applies. A new agent does not keep the model of another one."""
        return _Settings(
            agent=near.agent or self.agent,
            model=near.model or ("" if near.agent else self.model),
            timeout=self.timeout if near.timeout is None else near.timeout,
            budget=self.budget if near.budget is None else near.budget,
            env={**self.env, **near.env},
            label=near.label or self.label,
            sandbox=near.sandbox or self.sandbox,
        )

    @property
    def ident(self) -> str:
        return f"{self.agent}/{self.model}" if self.agent and self.model else self.agent or self.model


class _Prompt(Struct, frozen=True):
    """A prompt whose session later steps can continue."""

    id: str
    shared: str
    """The step that begins its session."""
    settings: _Settings
    at: str


class _Translation:
    def __init__(self, workflow: f.Workflow, problems: Problems) -> None:
        self._workflow = workflow
        self._problems = problems
        self._names = Names(problems)
        self._numbers = count()
        self._tasks: dict[str, Task] = {}
        self._free = (f"step_{number}" for number in count(1))
        self._prompts: list[_Prompt] = []
        """Those before the step in its lane, in the order of the file."""
        self._shared: set[str] = set()
        """Steps whose session a later one continues."""

    def entry(self, name: str, file: str, source: str) -> Entry:
        workflow = self._workflow
        self._names.known = [each.id for each in _all(workflow.steps) if each.id]
        self._check_ids()
        self._check_inputs()
        inputs, secret = workflow.inputs, secrets_of(workflow.inputs)
        scope = Scope(inputs=tuple(inputs), env=frozenset(workflow.env), secret_inputs=secret)
        self._names.check(dict(workflow.env), ("env",), replace(scope, env=frozenset()))
        self._names.check(workflow.branch, ("branch",), scope)
        # The timeout and the budget of the file are those of the whole run.
        settings = replace(_Settings().within(workflow), timeout=None, budget=Budget())
        work, after = self._steps(workflow.steps, ("steps",), scope, settings)
        work = self._with_sessions(work)
        self._names.check(workflow.result, ("result",), replace(scope, ids=after))
        self._names.check(workflow.artifacts, ("artifacts",), replace(scope, ids=after))
        if workflow.branch and not _in_worktrees(workflow):
            self._problems.add(("branch",), "'branch' needs 'folder: worktree'.")
        self._problems.check()
        flow = t.Flow(
            about=workflow.about,
            inputs=workflow.inputs,
            result=workflow.result,
            artifacts=workflow.artifacts,
            folder="worktree" if _in_worktrees(workflow) else "shared",
            branch=workflow.branch,
            env=workflow.env,
            on=workflow.on if isinstance(workflow.on, list) else [workflow.on],
            file=file,
            source=source,
            ids=[each.id for each in _all(workflow.steps) if each.id],
        )
        job = Job(
            work=work,
            timeout=workflow.timeout,
            budget=workflow.budget or Budget(),
            label=workflow.label,
            require_user_input=any(each.needed for each in workflow.inputs.values()),
            flow=flow,
        )
        return Entry(models={"driving": settings.ident}, tasks=self._tasks, jobs={name: job}, grid=[])

    def _check_ids(self) -> None:
        seen: set[str] = set()
        for path, each in _placed(self._workflow.steps, ("steps",)):
            if not each.id:
                continue
            if not _ID.fullmatch(each.id):
                self._problems.add((*path, "id"), f"{each.id!r} should be letters, digits and _, as in a template.")
            if each.id in seen:
                self._problems.add((*path, "id"), f"The id {each.id!r} is used twice.")
            seen.add(each.id)

    def _check_inputs(self) -> None:
        for name, each in self._workflow.inputs.items():
            if not _ID.fullmatch(name.replace("-", "_")):
                self._problems.add(("inputs", name), "The name should be letters, digits and _.")
            if wrong := default_error(each):
                self._problems.add(("inputs", name), wrong)
            if each.pointer and not each.pointer.startswith("/"):
                self._problems.add(("inputs", name, "from"), "Should be a JSON pointer, such as /issue/title.")

    # -- control flow ------------------------------------------------------------------------------------------

    def _steps(
        self, steps: list[f.AnyStep], path: Path, scope: Scope, settings: _Settings
    ) -> tuple[Work, frozenset[str]]:
        """The steps one after the other, and the ids that are known after them."""
        works: list[Work] = []
        if not steps:
            self._problems.add(path, "There is no step.")
        for index, each in enumerate(steps):
            work, ids = self._step(each, (*path, index), scope, settings)
            works.append(work)
            scope = replace(scope, ids=ids)
        return works[0] if len(works) == 1 else Seq(works=works), scope.ids

    def _step(self, step: f.AnyStep, path: Path, scope: Scope, around: _Settings) -> tuple[Work, frozenset[str]]:
        settings = around.within(step)
        acts = isinstance(step, f.RunKeys | f.HttpKeys)
        self._names.check(dict(step.env), (*path, "env"), replace(scope, acts=acts))
        scope = replace(scope, env=frozenset(settings.env))
        when = self._condition(step.when, (*path, "if"), scope)
        work, ids = self._body(step, path, scope, settings)
        own = {step.id} if step.id else set[str]()
        if when is not None and not isinstance(step, f.StepsKeys):
            work = If(when=when, then=work, may_fail=step.may_fail)
        return work, scope.ids | ids | own

    def _body(self, step: f.AnyStep, path: Path, scope: Scope, settings: _Settings) -> tuple[Work, frozenset[str]]:
        match step:
            case f.EachKeys():
                return self._each(step, path, scope, settings)
            case f.ParallelKeys():
                return self._parallel(step, path, scope, settings)
            case f.LoopKeys():
                return self._loop(step, path, scope, settings)
            case f.StepsKeys():
                return self._group(step, path, scope, settings)
            case _:
                return self._leaf(step, path, scope, settings), frozenset()

    def _condition(self, when: str | bool | None, path: Path, scope: Scope) -> str | None:
        if when is None or isinstance(when, bool):
            return None if when in (None, True) else "{{ false }}"
        if not is_template(when):
            self._problems.add(path, f"Should be a template: {{{{ {when} }}}}.")
        self._names.check(when, path, scope)
        return when

    def _group(self, step: f.StepsKeys, path: Path, scope: Scope, settings: _Settings) -> tuple[Work, frozenset[str]]:
        before = list(self._prompts)
        body, ids = self._steps(step.steps, (*path, "steps"), scope, settings)
        otherwise: Work | None = None
        if step.otherwise:
            then, self._prompts = self._prompts, before
            otherwise, more = self._steps(step.otherwise, (*path, "else"), scope, settings)
            self._prompts = [*then, *self._prompts[len(before) :]]
            ids |= more
            if step.when is None:
                self._problems.add((*path, "else"), "'else' needs 'if'.")
        when = None if step.when is None else str(step.when)
        when = {"True": None, "False": "{{ false }}"}.get(when, when) if when is not None else None
        return If(id=step.id, when=when, then=body, otherwise=otherwise, may_fail=step.may_fail), ids

    def _loop(self, step: f.LoopKeys, path: Path, scope: Scope, settings: _Settings) -> tuple[Work, frozenset[str]]:
        inside = frozenset(each.id for each in _all(step.steps, lanes=False) if each.id)
        scope = replace(scope, ids=scope.ids | inside)
        body, ids = self._steps(step.steps, (*path, "steps"), scope, settings)
        until = self._condition(step.loop.until, (*path, "loop", "until"), scope)
        return Again(id=step.id, most=step.loop.most, until=until, body=body, may_fail=step.may_fail), ids

    def _each(self, step: f.EachKeys, path: Path, scope: Scope, settings: _Settings) -> tuple[Work, frozenset[str]]:
        if isinstance(step.each, str) and not is_template(step.each) and not step.each.startswith("files:"):
            self._problems.add((*path, "each"), "Should be a list, a template that gives one, or files:GLOB.")
        self._names.check(step.each, (*path, "each"), scope)
        if not _ID.fullmatch(step.item):
            self._problems.add((*path, "as"), f"{step.item!r} should be letters, digits and _.")
        inner = replace(scope, items=(*scope.items, step.item))
        self._names.check(step.name, (*path, "name"), inner)
        ident = step.id or next(self._free)
        self._names.lanes |= {each.id: ident for each in _all(step.steps) if each.id}
        before, self._prompts = self._prompts, []
        body, _ = self._steps(step.steps, (*path, "steps"), inner, settings)
        self._prompts = before
        self._names.lanes = {key: value for key, value in self._names.lanes.items() if value != ident or step.id}
        over = Over(
            id=ident,
            each=step.each,
            item=step.item,
            name=step.name,
            parallel=step.parallel,
            at_once=step.fail == "at_once",
            folder=step.folder,
            merge=self._merge(step, step.steps, path, ident, settings),
            body=body,
            may_fail=step.may_fail,
        )
        return over, frozenset()

    def _parallel(
        self, step: f.ParallelKeys, path: Path, scope: Scope, settings: _Settings
    ) -> tuple[Work, frozenset[str]]:
        works: list[Work] = []
        ids: frozenset[str] = frozenset()
        before = self._prompts
        for index, each in enumerate(step.parallel):
            self._prompts = []
            work, known = self._step(each, (*path, "parallel", index), scope, settings)
            works.append(work)
            ids |= known
        self._prompts = before
        if not works:
            self._problems.add((*path, "parallel"), "There is no branch.")
        ident = step.id or next(self._free)
        fork = Branches(
            id=ident,
            names=[each.name or each.id or _short(each) for each in step.parallel],
            at_once=step.fail == "at_once",
            folder=step.folder,
            merge=self._merge(step, step.parallel, path, ident, settings),
            works=works,
            may_fail=step.may_fail,
        )
        return fork, ids

    def _merge(
        self, step: f.LaneKeys, inner: list[f.AnyStep], path: Path, ident: str, settings: _Settings
    ) -> t.FlowStep | None:
        """The merge of the lanes. An agent that resolves a conflict has to pass the commands that check the lanes."""
        if step.folder != "worktree":
            if step.merge != "fail":
                self._problems.add((*path, "merge"), "'merge' needs 'folder: worktree'.")
            return None
        task = ""
        if step.merge == "agent":
            task = f"{ident}_merge"
            model = Model(id=settings.ident)
            prompt = "Resolve the conflicts of this merge in the working directory:\n{{ conflict }}"
            lines = [check.run for each in _all(inner) if isinstance(each, f.PromptKeys) for check in each.check]
            checks = [Check(command=line) for line in dict.fromkeys(lines) if line is not None]
            action = FailureAction(retry_times=DEFAULT_RETRIES, additional_prompt=[CHECKS_FAILED])
            criteria = Criteria(checks=checks, failure_action=action) if checks else None
            self._tasks[task] = Task(model=model, prompt=[prompt], criteria=criteria, timeout=settings.timeout)
        do = t.MergeDo(how=step.merge, task=task)
        number = next(self._numbers)
        return t.FlowStep(
            work_id_in_job=number,
            id=f"{ident}_merge",
            name="merge",
            do=do,
            label=settings.label,
            budget=settings.budget,
            env=settings.env,
            sandbox=settings.sandbox,
        )

    # -- steps without children --------------------------------------------------------------------------------

    def _leaf(self, step: f.AnyStep, path: Path, scope: Scope, settings: _Settings) -> t.FlowStep:
        assert isinstance(step, f.LeafKeys)
        ident = step.id or next(self._free)
        self._names.check(step.name, (*path, "name"), scope)
        schema = self._schema(getattr(step, "output", "text"), (*path, "output"))
        leaf = t.FlowStep(
            work_id_in_job=next(self._numbers),
            id=ident,
            name=step.name or _short(step),
            do=self._do(step, ident, path, scope, settings, schema),
            output="text" if getattr(step, "output", "text") == "text" else "json",
            schema=schema,
            retry=step.retry,
            timeout=settings.timeout,
            budget=settings.budget,
            env=settings.env,
            secrets=step.secrets,
            secret_inputs=sorted(self._secret_inputs(step, scope)),
            label=settings.label,
            sandbox=settings.sandbox,
            may_fail=step.may_fail,
            on_interrupt=step.on_interrupt,
            at=self._at(step, path, scope),
        )
        if step.secrets and not isinstance(step, f.RunKeys | f.HttpKeys):
            self._problems.add((*path, "secrets"), "Only 'run' and 'http' steps get secrets, never an agent.")
        return leaf

    def _at(self, step: f.LeafKeys, path: Path, scope: Scope) -> str:
        at: str = getattr(step, "at", "")
        self._names.check(at, (*path, "at"), scope)
        if "steps." in at and not _in_worktrees(self._workflow):
            self._problems.add((*path, "at"), "Only steps in a worktree leave a commit: set 'folder: worktree'.")
        return at

    def _session(self, step: f.PromptKeys, ident: str, path: Path, settings: _Settings) -> str:
        """The step that begins the session of this one."""
        wanted, path = step.session, (*path, "session")
        if wanted != "new" and step.fallback:
            self._problems.add((*path[:-1], "fallback"), "Another agent cannot continue a session: remove 'fallback'.")
        near = [each for each in self._prompts if wanted in ("same", each.id)]
        fitting = [each for each in near if not _different(each, settings, step.at)]
        if wanted == "new" or fitting:
            return fitting[-1].shared if fitting else ident
        if near:
            words = ", ".join(_different(near[-1], settings, step.at))
            hint = f"A prompt that continues a session has the same settings as the one before it; different: {words}."
        elif wanted != "same" and wanted not in self._names.known:
            hint = f"Should be 'new', 'same' or the id of a prompt.{did_you_mean(wanted, self._prompt_ids())}"
        else:
            hint = "There is no such prompt before it. Items and branches cannot continue a session from outside."
        self._problems.add(path, hint)
        return ident

    def _prompt_ids(self) -> list[str]:
        return ["same", *(each.id for each in self._prompts)]

    def _with_sessions(self, work: Work) -> Work:
        """Mark the prompts that begin a session that is continued; they are known when all steps are."""
        if isinstance(work, t.FlowStep) and isinstance(work.do, t.PromptDo) and work.id in self._shared:
            return replace(work, do=replace(work.do, session=work.id))
        return rebuilt(work, lambda child, _: self._with_sessions(child))

    def _secret_inputs(self, step: f.LeafKeys, scope: Scope) -> set[str]:
        """The secret inputs that the step uses: in templates, or as variables of its command."""
        match step:
            case f.RunKeys():
                line = step.run if isinstance(step.run, str) else " ".join(step.run)
                named = {each for each in scope.secret_inputs if re.search(rf"\b{variable_of(each)}\b", line)}
                return named | self._names.secret_inputs([step.run, step.stdin, dict(step.env)], scope)
            case f.HttpKeys():
                http = step.http
                return self._names.secret_inputs([http.url, http.headers, http.json, http.body, dict(step.env)], scope)
            case f.CallKeys():
                return self._names.secret_inputs(step.inputs, scope)
        return set()

    def _schema(self, output: str | f.OutputSchema, path: Path) -> dict[str, Any] | None:
        if isinstance(output, str):
            return None
        try:
            return full_schema(output.schema)
        except ValueError as error:
            self._problems.add((*path, "schema"), str(error))
            return None

    def _do(
        self, step: f.LeafKeys, ident: str, path: Path, scope: Scope, settings: _Settings, schema: dict[str, Any] | None
    ) -> t.Do:
        match step:
            case f.PromptKeys():
                self._tasks[ident] = self._task(step, ident, path, scope, settings, schema)
                shared = self._session(step, ident, path, settings)
                self._prompts.append(_Prompt(ident, shared, settings, step.at))
                if shared == ident:
                    return t.PromptDo(task=ident)
                self._shared.add(shared)
                return t.PromptDo(task=ident, session=shared, same=True)
            case f.RunKeys():
                scope = replace(scope, acts=True)
                self._names.check(step.run, (*path, "run"), scope)
                self._names.check(step.stdin, (*path, "stdin"), scope)
                return t.RunDo(command=step.run, exit=step.exit, stdin=step.stdin)
            case f.HttpKeys():
                return self._http(step, path, replace(scope, secrets=tuple(step.secrets), acts=True))
            case f.AskKeys():
                self._names.check(step.ask, (*path, "ask"), scope)
                self._names.check(step.show, (*path, "show"), scope)
                self._names.check(step.choices, (*path, "choices"), scope)
                given = (step.ask, step.choices, step.people, step.expires, step.show)
                return t.AskDo(question=given[0], choices=given[1], people=given[2], expires=given[3], show=given[4])
            case f.WaitKeys():
                return self._wait(step, path, scope)
            case f.CallKeys():
                self._names.check(step.call, (*path, "call"), scope)
                for key, value in step.inputs.items():
                    passed_on = isinstance(value, str) and _PASSED_ON.fullmatch(value) is not None
                    self._names.check(value, (*path, "inputs", key), replace(scope, acts=passed_on))
                return t.CallDo(job=step.call, inputs=step.inputs)
        raise AssertionError(step)

    def _http(self, step: f.HttpKeys, path: Path, scope: Scope) -> t.HttpDo:
        http = step.http
        for key in ("url", "headers", "json", "body"):
            self._names.check(getattr(http, key), (*path, "http", key), scope)
        if not is_template(http.url) and not re.match(r"https?://", http.url):
            self._problems.add((*path, "http", "url"), "Should begin with https:// or http://.")
        return t.HttpDo(method=http.method, url=http.url, headers=http.headers, json=http.json, body=http.body)

    def _wait(self, step: f.WaitKeys, path: Path, scope: Scope) -> t.WaitDo:
        given = step.wait if isinstance(step.wait, f.WaitTime) else f.WaitTime(seconds=step.wait)
        self._names.check([given.seconds, given.until], (*path, "wait"), scope)
        if isinstance(given.seconds, str) and not is_template(given.seconds):
            self._problems.add((*path, "wait"), "Should be seconds, {until: TIME} or {hook: NAME}.")
        if given.until is not None and not is_template(given.until) and not _has_zone(given.until):
            self._problems.add((*path, "wait", "until"), "Should be a time such as 2027-01-31T09:00:00+01:00.")
        if given.hook is not None and not _HOOK.fullmatch(given.hook):
            self._problems.add((*path, "wait", "hook"), "Should be letters, digits, - and _, at most 100.")
        return t.WaitDo(seconds=given.seconds, until=given.until, hook=given.hook)

    # -- prompts -----------------------------------------------------------------------------------------------

    def _task(
        self,
        step: f.PromptKeys,
        ident: str,
        path: Path,
        scope: Scope,
        settings: _Settings,
        schema: dict[str, Any] | None,
    ) -> Task:
        self._names.check(step.prompt, (*path, "prompt"), scope)
        checks = [self._check(each, (*path, "check", i), scope) for i, each in enumerate(step.check)]
        if step.output == "json":
            checks.append(Check(schema=SchemaCheck(schema={})))
        elif schema is not None:
            checks.append(Check(schema=SchemaCheck(schema=schema)))
        retry = step.retry or t.Retry(times=DEFAULT_RETRIES)
        action = FailureAction(retry_times=retry.times if "check" in retry.on else 0, additional_prompt=[CHECKS_FAILED])
        return Task(
            model=Model(id=settings.ident),
            fallback=[Model(id=each) for each in step.fallback],
            prompt=[step.prompt],
            criteria=Criteria(checks=checks, failure_action=action) if checks else None,
            on_interrupt=step.on_interrupt,
            timeout=settings.timeout,
            label=settings.label,
        )

    def _check(self, check: f.CheckKeys, path: Path, scope: Scope) -> Check:
        scope = replace(scope, more=("check_output",))
        if check.run is not None:
            self._names.check(check.run, (*path, "run"), scope)
            return Check(command=check.run)
        if check.files is not None:
            globs = check.files
            for key in ("exist", "absent", "changed_only"):
                for index, glob in enumerate(getattr(globs, key)):
                    self._names.check(glob, (*path, "files", key, index), scope)
            return Check(
                files=FilesCheck(
                    exist=globs.exist,
                    absent=globs.absent,
                    changed_only=globs.changed_only,
                    max_changed_lines=globs.max_changed_lines,
                )
            )
        if check.schema is not None:
            schema = self._schema(f.OutputSchema(schema=check.schema.schema), path) or {}
            return Check(schema=SchemaCheck(schema=schema, file=check.schema.file))
        if check.model is not None:
            model = f.ModelKeys(prompt=check.model) if isinstance(check.model, str) else check.model
            self._names.check(model.prompt, (*path, "model"), scope)
            judges = [Model(id=each) for each in model.judges]
            return Check(model=ModelCheck(condition=[model.prompt + JUDGE], judges=judges, quorum=model.quorum))
        person = f.PersonKeys(question=check.person) if isinstance(check.person, str) else check.person
        if person is None:  # the mistake is reported already
            return Check()
        self._names.check(person.question, (*path, "person"), scope)
        return Check(
            person=PersonCheck(
                question=[person.question], people=person.people, expires=person.expires, on_expiry=person.on_expiry
            )
        )


def _different(before: _Prompt, settings: _Settings, at: str) -> list[str]:
    """The settings in which a prompt differs from one whose session it continues."""
    names = [name for name in _OF_SESSION if getattr(before.settings, name) != getattr(settings, name)]
    return [*names, *(["at"] if before.at or at else [])]


def _in_worktrees(workflow: f.Workflow) -> bool:
    """Lanes with worktrees are merged, so their run has one, too: the user's checkout is never changed."""
    groups = [each for each in _all(workflow.steps) if isinstance(each, f.LaneKeys)]
    return workflow.folder == "worktree" or any(each.folder == "worktree" for each in groups)


def _short(step: f.StepKeys) -> str:
    """The name of a step that has none: the beginning of what it does. Templates in it are not rendered."""
    match step:
        case f.PromptKeys():
            text = step.prompt
        case f.RunKeys():
            text = step.run if isinstance(step.run, str) else " ".join(step.run)
        case f.HttpKeys():
            text = f"{step.http.method} {step.http.url}"
        case f.AskKeys():
            text = step.ask
        case f.WaitKeys():
            text = "wait"
        case f.CallKeys():
            text = step.call
        case _:
            text = step.KEY
    line = text.strip().partition("\n")[0]
    if len(line) <= _NAME_CHARS:
        return line
    cut = line[: _NAME_CHARS - 1]
    if cut.count("{{") > cut.count("}}"):  # half of a template could not be rendered
        cut = cut[: cut.rindex("{{")]
    return f"{cut}…"


def _has_zone(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _children(step: f.AnyStep) -> list[tuple[str, list[f.AnyStep]]]:
    match step:
        case f.ParallelKeys():
            return [("parallel", step.parallel)]
        case f.StepsKeys():
            return [("steps", step.steps), ("else", step.otherwise)]
        case f.EachKeys() | f.LoopKeys():
            return [("steps", step.steps)]
    return []


def _placed(steps: list[f.AnyStep], path: Path) -> list[tuple[Path, f.AnyStep]]:
    """All steps with their places, in the order of the file."""
    found: list[tuple[Path, f.AnyStep]] = []
    for index, step in enumerate(steps):
        found.append(((*path, index), step))
        for key, children in _children(step):
            found += _placed(children, (*path, index, key))
    return found


def _all(steps: list[f.AnyStep], lanes: bool = True) -> list[f.AnyStep]:
    """All steps; without `lanes` not those inside of an `each`."""
    found: list[f.AnyStep] = []
    for step in steps:
        found.append(step)
        if lanes or not isinstance(step, f.EachKeys):
            for _, children in _children(step):
                found += _all(children, lanes)
    return found
