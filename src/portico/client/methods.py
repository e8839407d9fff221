"""One method for each command. Written by `python -m tools.client_methods` from the table; do not edit.

`request` is your own id of the command: the host does the same one once, and answers alike.
"""

# mypy: disable-error-code="no-any-return"
# ruff: noqa: B006, B008
from typing import Any, Protocol

from portico import commands as c
from portico import limits
from portico.commands import (
    Answered,
    AutomationMade,
    AutomationNamed,
    Busy,
    Committed,
    Decided,
    Deleted,
    Discarded,
    Done,
    Drafted,
    DraftText,
    Encoding,
    GivenUp,
    HookSecret,
    Isolation,
    JobNamed,
    Member,
    NoticeNamed,
    Offered,
    OwnTokenMade,
    PersonShown,
    Project,
    PushNamed,
    Queued,
    RetentionDone,
    RunNamed,
    ServerOperation,
    ServerReply,
    Steered,
    TaskNamed,
    TokenMade,
    TurnBegun,
    WriteMode,
)
from portico.events import (
    AutomationPlan,
    Breadth,
    ErrorInfo,
    Grant,
    Json,
    Message,
    PendingKind,
    QuestionResponse,
    Right,
    ToolSpec,
)
from portico.host.state import Summary


class Methods(Protocol):
    async def do(self, command: c.Command, *, request: str = "") -> Any: ...

    async def start_session(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str = "",
        config: Json = {},
        worktree: bool | Isolation = False,
        place: str = "",
        label: str = "",
        request: str = "",
    ) -> Summary:
        """Start a session."""
        return await self.do(
            c.StartSession(
                agent=agent,
                model=model,
                cwd=cwd,
                title=title,
                config=config,
                worktree=worktree,
                place=place,
                label=label,
            ),
            request=request,
        )

    async def fork_session(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """A new session from this one's turns."""
        return await self.do(c.ForkSession(session=session, turn=turn), request=request)

    async def rename_session(self, session: str, title: str, *, request: str = "") -> Summary:
        """Give a session another title."""
        return await self.do(c.RenameSession(session=session, title=title), request=request)

    async def set_model(self, session: str, model: str, *, config: Json = {}, request: str = "") -> Summary:
        """Change the model, from the next turn on."""
        return await self.do(c.SetModel(session=session, model=model, config=config), request=request)

    async def configure_session(
        self, session: str, values: Json, *, replace: bool = False, keeps: list[str] = [], request: str = ""
    ) -> Summary:
        """Change a session's settings. What loosens approval needs the scope approve."""
        return await self.do(
            c.ConfigureSession(session=session, values=values, replace=replace, keeps=keeps), request=request
        )

    async def archive_session(self, session: str, archived: bool, *, request: str = "") -> Summary:
        """Archive a session, or take it back."""
        return await self.do(c.ArchiveSession(session=session, archived=archived), request=request)

    async def mark_read(self, session: str, read: bool, *, request: str = "") -> Summary:
        """Mark a session as read or unread."""
        return await self.do(c.MarkRead(session=session, read=read), request=request)

    async def move_chat(
        self, session: str, *, to: str | None = None, after: str | None = None, request: str = ""
    ) -> Summary:
        """Move a conversation within its session, into another one, or out of it; only who owns them may."""
        return await self.do(c.MoveChat(session=session, to=to, after=after), request=request)

    async def close_session(self, session: str, *, request: str = "") -> Summary:
        """Release the agent; the history stays."""
        return await self.do(c.CloseSession(session=session), request=request)

    async def reopen_session(self, session: str, *, request: str = "") -> Summary:
        """Take a closed session up again."""
        return await self.do(c.ReopenSession(session=session), request=request)

    async def delete_session(self, session: str, *, request: str = "") -> Deleted:
        """Delete a session, its history and its children."""
        return await self.do(c.DeleteSession(session=session), request=request)

    async def truncate_session(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """Forget the turns after one."""
        return await self.do(c.TruncateSession(session=session, turn=turn), request=request)

    async def add_folder(self, session: str, folder: str, *, request: str = "") -> Summary:
        """Give a session one more folder: what is inside passes as in its own, so this needs the scope approve."""
        return await self.do(c.AddFolder(session=session, folder=folder), request=request)

    async def remove_folder(
        self, session: str, folder: str, *, replacement: str | None = None, request: str = ""
    ) -> Summary:
        """Take a folder from a session. With a replacement (which needs the scope approve), that takes its place."""
        return await self.do(c.RemoveFolder(session=session, folder=folder, replacement=replacement), request=request)

    async def choose_folder(self, session: str, folder: str, *, chosen: bool = True, request: str = "") -> Summary:
        """One of its session's folders that a conversation is to have, or not to have any more."""
        return await self.do(c.ChooseFolder(session=session, folder=folder, chosen=chosen), request=request)

    async def set_draft(self, session: str, text: str, *, typed: bool = False, request: str = "") -> DraftText:
        """Put a text into every page's and editor's input, without sending it; an empty one takes it away."""
        return await self.do(c.SetDraft(session=session, text=text, typed=typed), request=request)

    async def share_session(
        self, session: str, person: str, *, rights: list[Right] | None = None, request: str = ""
    ) -> Summary:
        """Let another person, or everybody, read, drive or (with that scope) approve in a session of one's own."""
        return await self.do(c.ShareSession(session=session, person=person, rights=rights), request=request)

    async def unshare_session(self, session: str, person: str, *, request: str = "") -> Summary:
        """Take back what a person, or everybody, was allowed in a session."""
        return await self.do(c.UnshareSession(session=session, person=person), request=request)

    async def send_message(
        self,
        session: str,
        text: str,
        *,
        attachments: list[Json] = [],
        model: str | None = None,
        busy: Busy = "queue",
        request: str = "",
    ) -> TurnBegun | Queued | Steered:
        """Send a message."""
        return await self.do(
            c.SendMessage(session=session, text=text, attachments=attachments, model=model, busy=busy), request=request
        )

    async def run_command(self, session: str, line: str, *, request: str = "") -> TurnBegun:
        """Run a command line in the session's folder, as a turn without the agent."""
        return await self.do(c.RunCommand(session=session, line=line), request=request)

    async def cancel_turn(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """Stop the running turn."""
        return await self.do(c.CancelTurn(session=session, turn=turn), request=request)

    async def resume_turn(self, session: str, *, turn: str | None = None, request: str = "") -> TurnBegun:
        """Go on with the last turn."""
        return await self.do(c.ResumeTurn(session=session, turn=turn), request=request)

    async def queue_message(
        self,
        session: str,
        message: Message,
        *,
        kind: PendingKind = "queue",
        pending: str | None = None,
        request: str = "",
    ) -> Queued:
        """Queue a message, or hold it ready for steering, without starting anything."""
        return await self.do(
            c.QueueMessage(session=session, message=message, kind=kind, pending=pending), request=request
        )

    async def edit_queued(
        self,
        session: str,
        pending: str,
        text: str,
        *,
        attachments: list[Json] = [],
        model: str | None = None,
        request: str = "",
    ) -> Json:
        """Edit a waiting message."""
        return await self.do(
            c.EditQueued(session=session, pending=pending, text=text, attachments=attachments, model=model),
            request=request,
        )

    async def reorder_queue(self, session: str, order: list[str], *, request: str = "") -> Json:
        """Put the waiting messages into another order."""
        return await self.do(c.ReorderQueue(session=session, order=order), request=request)

    async def remove_queued(self, session: str, pending: str, *, request: str = "") -> Json:
        """Remove a waiting message."""
        return await self.do(c.RemoveQueued(session=session, pending=pending), request=request)

    async def steer_queued(self, session: str, pending: str, *, request: str = "") -> Offered:
        """Offer a waiting message to the running agent now."""
        return await self.do(c.SteerQueued(session=session, pending=pending), request=request)

    async def release_queue(self, session: str, *, request: str = "") -> Json:
        """Let a held queue go on."""
        return await self.do(c.ReleaseQueue(session=session), request=request)

    async def decline_sign_in(self, session: str, call: str, *, request: str = "") -> Summary:
        """Let a call fail that waits for a sign-in."""
        return await self.do(c.DeclineSignIn(session=session, call=call), request=request)

    async def answer_approval(
        self,
        approval: str,
        *,
        allow: bool | None = None,
        option: str | None = None,
        reason: str = "",
        input: str | None = None,
        covers: Breadth = "shown",
        request: str = "",
    ) -> Decided:
        """Answer an approval; the first valid answer wins."""
        return await self.do(
            c.AnswerApproval(approval=approval, allow=allow, option=option, reason=reason, input=input, covers=covers),
            request=request,
        )

    async def answer_question(
        self,
        question: str,
        *,
        response: QuestionResponse = "accept",
        answers: Json = {},
        text: str | None = None,
        request: str = "",
    ) -> Answered:
        """Answer, decline or cancel a question."""
        return await self.do(
            c.AnswerQuestion(question=question, response=response, answers=answers, text=text), request=request
        )

    async def draft_answer(
        self, question: str, field: str, *, answer: Json | None = None, request: str = ""
    ) -> Drafted:
        """Keep a draft of an answer."""
        return await self.do(c.DraftAnswer(question=question, field=field, answer=answer), request=request)

    async def add_grant(
        self,
        agent: str,
        tool: str,
        allow: bool,
        *,
        session: str | None = None,
        project: str | None = None,
        pattern: str = "*",
        seconds: float = limits.GRANT_SECONDS,
        request: str = "",
    ) -> Grant:
        """Remember an answer in advance."""
        return await self.do(
            c.AddGrant(
                agent=agent, tool=tool, allow=allow, session=session, project=project, pattern=pattern, seconds=seconds
            ),
            request=request,
        )

    async def revoke_grant(self, grant: str, *, request: str = "") -> Done:
        """Forget a remembered answer."""
        return await self.do(c.RevokeGrant(grant=grant), request=request)

    async def join_session(
        self,
        session: str,
        client: str,
        *,
        name: str = "",
        tools: list[ToolSpec] = [],
        meta: Json = {},
        request: str = "",
    ) -> Summary:
        """Lend a client's tools to a session."""
        return await self.do(
            c.JoinSession(session=session, client=client, name=name, tools=tools, meta=meta), request=request
        )

    async def leave_session(self, session: str, client: str, *, abandon: bool = False, request: str = "") -> Summary:
        """Take a client's tools back."""
        return await self.do(c.LeaveSession(session=session, client=client, abandon=abandon), request=request)

    async def share_data(
        self, session: str, key: str, *, value: Json | None = None, action: Json = {}, request: str = ""
    ) -> Summary:
        """Keep something that only clients understand beside a session, for all of them."""
        return await self.do(c.ShareData(session=session, key=key, value=value, action=action), request=request)

    async def report_content(
        self, session: str, call: str, client: str, content: list[Json], *, request: str = ""
    ) -> Done:
        """What a call that a client runs shows so far."""
        return await self.do(
            c.ReportContent(session=session, call=call, client=client, content=content), request=request
        )

    async def complete_call(
        self,
        session: str,
        call: str,
        client: str,
        ok: bool,
        *,
        output: str = "",
        error: ErrorInfo | None = None,
        content: list[Json] = [],
        title: str = "",
        result: Json | None = None,
        confirm: bool = False,
        request: str = "",
    ) -> Done:
        """The result of a call that a client has run."""
        return await self.do(
            c.CompleteCall(
                session=session,
                call=call,
                client=client,
                ok=ok,
                output=output,
                error=error,
                content=content,
                title=title,
                result=result,
                confirm=confirm,
            ),
            request=request,
        )

    async def ask_server(
        self,
        session: str,
        server: str,
        *,
        operation: ServerOperation = "tools/list",
        params: Json = {},
        request: str = "",
    ) -> ServerReply:
        """Ask an MCP server of a session directly, as its own page in an editor does. Nobody else is asked first."""
        return await self.do(
            c.AskServer(session=session, server=server, operation=operation, params=params), request=request
        )

    async def configure_host(
        self, values: Json, *, replace: bool = False, action: Json = {}, request: str = ""
    ) -> Done:
        """Settings that editors share through the host. What loosens approval needs the scope approve."""
        return await self.do(c.ConfigureHost(values=values, replace=replace, action=action), request=request)

    async def identify_client(self, client: str, *, request: str = "") -> Done:
        """Take an id for a client; it belongs to the token that used it first."""
        return await self.do(c.IdentifyClient(client=client), request=request)

    async def open_terminal(
        self,
        *,
        cwd: str | None = None,
        session: str | None = None,
        title: str = "",
        cols: int = 80,
        rows: int = 24,
        request: str = "",
    ) -> Json:
        """Open a terminal."""
        return await self.do(
            c.OpenTerminal(cwd=cwd, session=session, title=title, cols=cols, rows=rows), request=request
        )

    async def type_input(self, terminal: str, data: str, *, request: str = "") -> Done:
        """Type into a terminal."""
        return await self.do(c.TypeInput(terminal=terminal, data=data), request=request)

    async def resize_terminal(self, terminal: str, cols: int, rows: int, *, request: str = "") -> Json:
        """Change a terminal's size."""
        return await self.do(c.ResizeTerminal(terminal=terminal, cols=cols, rows=rows), request=request)

    async def claim_terminal(
        self, terminal: str, claim: Json, *, session: str | None = None, request: str = ""
    ) -> Json:
        """Hand a terminal to a client or a session."""
        return await self.do(c.ClaimTerminal(terminal=terminal, claim=claim, session=session), request=request)

    async def rename_terminal(self, terminal: str, title: str, *, request: str = "") -> Json:
        """Give a terminal another title."""
        return await self.do(c.RenameTerminal(terminal=terminal, title=title), request=request)

    async def clear_terminal(self, terminal: str, *, request: str = "") -> Json:
        """Forget what a terminal has shown."""
        return await self.do(c.ClearTerminal(terminal=terminal), request=request)

    async def close_terminal(self, terminal: str, *, request: str = "") -> Done:
        """End the shell and all it started."""
        return await self.do(c.CloseTerminal(terminal=terminal), request=request)

    async def run_job(
        self,
        job: str,
        cwd: str,
        *,
        input: str = "",
        entry: dict[str, Any] | None = None,
        place: str = "",
        label: str = "",
        request: str = "",
    ) -> JobNamed:
        """Start a job."""
        return await self.do(
            c.StartJob(job=job, cwd=cwd, input=input, entry=entry, place=place, label=label), request=request
        )

    async def stop_job(self, job: str, *, request: str = "") -> Done:
        """Cancel a job."""
        return await self.do(c.StopJob(job=job), request=request)

    async def resume_job(self, job: str, *, request: str = "") -> JobNamed:
        """Go on with a waiting, failed or canceled job."""
        return await self.do(c.ResumeJob(job=job), request=request)

    async def retry_job(self, job: str, *, request: str = "") -> JobNamed:
        """The same job from the beginning."""
        return await self.do(c.RetryJob(job=job), request=request)

    async def call_hook(self, job: str, hook: str, *, request: str = "") -> Done:
        """Call a hook that a job waits for, now or later."""
        return await self.do(c.CallHook(job=job, hook=hook), request=request)

    async def start_task(self, session: str, name: str, *, input: str = "", request: str = "") -> TaskNamed:
        """Run a task inside a session; the session stays when the task is over."""
        return await self.do(c.StartTask(session=session, name=name, input=input), request=request)

    async def stop_task(self, task: str, *, request: str = "") -> Done:
        """Stop a task."""
        return await self.do(c.StopTask(task=task), request=request)

    async def commit_changes(
        self, session: str, message: str, state: str | None, *, paths: list[str] = [], request: str = ""
    ) -> Committed:
        """Commit changed files."""
        return await self.do(
            c.CommitChanges(session=session, message=message, state=state, paths=paths), request=request
        )

    async def discard_changes(
        self, session: str, state: str | None, *, paths: list[str] = [], request: str = ""
    ) -> Discarded:
        """Throw changes away."""
        return await self.do(c.DiscardChanges(session=session, state=state, paths=paths), request=request)

    async def restore_changes(self, session: str, undo: str, paths: list[str], *, request: str = "") -> Done:
        """Take the last discard back."""
        return await self.do(c.RestoreChanges(session=session, undo=undo, paths=paths), request=request)

    async def write_file(
        self,
        path: str,
        data: str,
        *,
        encoding: Encoding = "utf-8",
        mode: WriteMode = "truncate",
        position: int = 0,
        if_match: str | None = None,
        create_only: bool = False,
        request: str = "",
    ) -> Done:
        """Write a file in a workspace or in a session's folder."""
        return await self.do(
            c.WriteFile(
                path=path,
                data=data,
                encoding=encoding,
                mode=mode,
                position=position,
                if_match=if_match,
                create_only=create_only,
            ),
            request=request,
        )

    async def copy_file(
        self, source: str, destination: str, *, fail_if_exists: bool = False, request: str = ""
    ) -> Done:
        """Copy a file or a folder."""
        return await self.do(
            c.CopyFile(source=source, destination=destination, fail_if_exists=fail_if_exists), request=request
        )

    async def move_file(
        self, source: str, destination: str, *, fail_if_exists: bool = False, request: str = ""
    ) -> Done:
        """Move a file or a folder."""
        return await self.do(
            c.MoveFile(source=source, destination=destination, fail_if_exists=fail_if_exists), request=request
        )

    async def delete_file(self, path: str, *, recursive: bool = False, request: str = "") -> Done:
        """Delete a file or a folder."""
        return await self.do(c.DeleteFile(path=path, recursive=recursive), request=request)

    async def make_folder(self, path: str, *, request: str = "") -> Done:
        """Make a folder, and those above it."""
        return await self.do(c.MakeFolder(path=path), request=request)

    async def add_project(self, path: str, *, worktree: bool = False, request: str = "") -> Project:
        """Add a project."""
        return await self.do(c.AddProject(path=path, worktree=worktree), request=request)

    async def forget_project(self, project: str, *, request: str = "") -> Done:
        """Forget a project; its folder and its conversations stay."""
        return await self.do(c.ForgetProject(project=project), request=request)

    async def open_project(self, project: str, *, agent: str | None = None, request: str = "") -> Summary:
        """The project's conversation with an agent, begun if need be."""
        return await self.do(c.OpenProject(project=project, agent=agent), request=request)

    async def clear_project(self, project: str, *, request: str = "") -> Done:
        """Let fresh conversations take the place of a project's; the old ones stay stored."""
        return await self.do(c.ClearProject(project=project), request=request)

    async def import_archive(
        self, archive: Json, *, agent: str | None = None, cwd: str | None = None, request: str = ""
    ) -> Summary:
        """A session of another host."""
        return await self.do(c.ImportSession(archive=archive, agent=agent, cwd=cwd), request=request)

    async def add_token(
        self, name: str, *, scopes: list[str] | None = None, days: float | None = None, request: str = ""
    ) -> TokenMade:
        """Make a token."""
        return await self.do(c.AddToken(name=name, scopes=scopes, days=days), request=request)

    async def revoke_token(self, token: str, *, request: str = "") -> Done:
        """End a token."""
        return await self.do(c.RevokeToken(token=token), request=request)

    async def sign_in(self, resource: str, *, token: str = "", seconds: float | None = None, request: str = "") -> Done:
        """Give the agents that ask for it a token of a resource, or take it back with an empty one."""
        return await self.do(c.SignIn(resource=resource, token=token, seconds=seconds), request=request)

    async def add_own_token(
        self, name: str, *, scopes: list[str] | None = None, days: float | None = None, request: str = ""
    ) -> OwnTokenMade:
        """Make a token of your own."""
        return await self.do(c.AddOwnToken(name=name, scopes=scopes, days=days), request=request)

    async def revoke_own_token(self, name: str, *, request: str = "") -> Done:
        """End one of your tokens."""
        return await self.do(c.RevokeOwnToken(name=name), request=request)

    async def add_person(self, name: str, *, scopes: list[str] = [], request: str = "") -> PersonShown:
        """Add a person."""
        return await self.do(c.AddPerson(name=name, scopes=scopes), request=request)

    async def remove_person(self, name: str, *, request: str = "") -> Done:
        """Remove a person; their tokens end."""
        return await self.do(c.RemovePerson(name=name), request=request)

    async def erase_person(self, name: str, *, dry_run: bool = False, request: str = "") -> RetentionDone:
        """Delete all sessions of a person."""
        return await self.do(c.ErasePerson(name=name, dry_run=dry_run), request=request)

    async def apply_retention(self, *, dry_run: bool = False, request: str = "") -> RetentionDone:
        """Archive and delete old sessions by rule."""
        return await self.do(c.ApplyRetention(dry_run=dry_run), request=request)

    async def drain_host(self, name: str, *, request: str = "") -> Member:
        """Hand a host's sessions over: idle ones at once, busy ones after their turn."""
        return await self.do(c.DrainHost(name=name), request=request)

    async def give_up_host(self, name: str, *, request: str = "") -> GivenUp:
        """End what a host had that never comes back."""
        return await self.do(c.GiveUpHost(name=name), request=request)

    async def create_automation(
        self, name: str, *, plan: AutomationPlan = AutomationPlan(), enabled: bool = True, request: str = ""
    ) -> AutomationMade:
        """Make an automation: a trigger, what to start, and the rules."""
        return await self.do(c.CreateAutomation(name=name, plan=plan, enabled=enabled), request=request)

    async def edit_automation(
        self, automation: str, *, name: str | None = None, plan: AutomationPlan | None = None, request: str = ""
    ) -> AutomationNamed:
        """Change an automation; what is not named stays."""
        return await self.do(c.EditAutomation(automation=automation, name=name, plan=plan), request=request)

    async def pause_automation(self, automation: str, *, reason: str = "", request: str = "") -> AutomationNamed:
        """Let an automation start nothing by itself until it is resumed."""
        return await self.do(c.PauseAutomation(automation=automation, reason=reason), request=request)

    async def resume_automation(self, automation: str, *, request: str = "") -> AutomationNamed:
        """Let a paused automation go on, from now."""
        return await self.do(c.ResumeAutomation(automation=automation), request=request)

    async def run_automation(self, automation: str, *, input: str | None = None, request: str = "") -> RunNamed:
        """Start an automation now, also a paused one."""
        return await self.do(c.RunAutomation(automation=automation, input=input), request=request)

    async def cancel_run(self, run: str, *, request: str = "") -> Done:
        """Cancel a run, with what it has started."""
        return await self.do(c.CancelRun(run=run), request=request)

    async def rotate_secret(self, automation: str, *, request: str = "") -> HookSecret:
        """Give a hook another secret, which is shown this once; the old one is void."""
        return await self.do(c.RotateSecret(automation=automation), request=request)

    async def delete_automation(self, automation: str, *, request: str = "") -> Done:
        """Delete an automation and its history; what it has started goes on."""
        return await self.do(c.DeleteAutomation(automation=automation), request=request)

    async def redeliver_notice(self, notice: str, *, request: str = "") -> NoticeNamed:
        """Send a notice again, now: one that was given up, one that waits for its next attempt, or one that arrived."""
        return await self.do(c.RedeliverNotice(notice=notice), request=request)

    async def test_notice(self, target: str, *, request: str = "") -> NoticeNamed:
        """Send a test notice to a webhook or a program of the settings."""
        return await self.do(c.TestNotice(target=target), request=request)

    async def subscribe_push(
        self,
        endpoint: str,
        p256dh: str,
        auth: str,
        *,
        device: str = "",
        kinds: list[str] = [],
        sessions: str = "all",
        quiet: str = "",
        zone: str = "",
        request: str = "",
    ) -> PushNamed:
        """Let a browser be told by web push; the fields are those of its `PushSubscription`."""
        return await self.do(
            c.SubscribePush(
                endpoint=endpoint,
                p256dh=p256dh,
                auth=auth,
                device=device,
                kinds=kinds,
                sessions=sessions,
                quiet=quiet,
                zone=zone,
            ),
            request=request,
        )

    async def unsubscribe_push(self, push: str, *, request: str = "") -> Done:
        """Tell a browser nothing any more."""
        return await self.do(c.UnsubscribePush(push=push), request=request)
