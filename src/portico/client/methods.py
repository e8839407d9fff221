"""One method for each command. Written by `python -m tools.client_methods` from the table; do not edit.

`request` is your own id of the command: the host does the same one once, and answers alike.
"""

# mypy: disable-error-code="empty-body"
# ruff: noqa: B006, B008
from typing import Any

import portico.features.automations.commands as automations
import portico.features.automations.events as automation_events
import portico.features.changes.commands as changes
import portico.features.chats.commands as chats
import portico.features.client_servers.commands as client_servers
import portico.features.configuration.commands as configuration
import portico.features.drafts.commands as drafts
import portico.features.files.commands as files
import portico.features.hosts.commands as hosts
import portico.features.jobs.commands as jobs
import portico.features.native.commands as native
import portico.features.notices.commands as notices
import portico.features.pairing.commands as pairing
import portico.features.people.commands as people
import portico.features.projects.commands as projects
import portico.features.sandboxes.commands as sandboxes
import portico.features.secrets.commands as secrets
from portico.client.call import calls
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.state import Summary


@calls
class Methods:
    """Each has the parameters and the answer of its command; `calls` makes it send the command."""

    async def start_session(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str = "",
        config: e.Json = {},
        worktree: bool | c.Isolation = False,
        folders: list[str] = [],
        draft: bool = False,
        place: str = "",
        label: str = "",
        request: str = "",
    ) -> Summary:
        """Start a session."""

    async def fork_session(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """A new session from this one's turns."""

    async def rename_session(self, session: str, title: str, *, request: str = "") -> Summary:
        """Give a session another title."""

    async def change_session(
        self,
        session: str,
        *,
        title: str | None = None,
        model: str | None = None,
        archived: bool | None = None,
        read: bool | None = None,
        config: e.Json | None = None,
        request: str = "",
    ) -> Summary:
        """Rename, change the model, archive, mark as read, configure: all that is named, or nothing."""

    async def set_model(self, session: str, model: str, *, config: e.Json = {}, request: str = "") -> Summary:
        """Change the model, from the next turn on."""

    async def configure_session(
        self, session: str, values: e.Json, *, replace: bool = False, keeps: list[str] = [], request: str = ""
    ) -> Summary:
        """Change a session's settings. What loosens approval needs the scope approve."""

    async def archive_session(self, session: str, archived: bool, *, request: str = "") -> Summary:
        """Archive a session, or take it back."""

    async def mark_read(self, session: str, read: bool, *, request: str = "") -> Summary:
        """Mark a session as read or unread."""

    async def close_session(self, session: str, *, request: str = "") -> Summary:
        """Release the agent; the history stays."""

    async def reopen_session(self, session: str, *, request: str = "") -> Summary:
        """Take a closed session up again."""

    async def delete_session(self, session: str, *, request: str = "") -> c.Deleted:
        """Delete a session, its history and its children."""

    async def truncate_session(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """Forget the turns after one."""

    async def send_message(
        self,
        session: str,
        text: str,
        *,
        attachments: list[e.Json] = [],
        model: str | None = None,
        busy: c.Busy = "queue",
        request: str = "",
    ) -> c.TurnBegun | c.Queued | c.Steered:
        """Send a message."""

    async def run_command(self, session: str, line: str, *, request: str = "") -> c.TurnBegun:
        """Run a command line in the session's folder, as a turn without the agent."""

    async def cancel_turn(self, session: str, *, turn: str | None = None, request: str = "") -> Summary:
        """Stop the running turn."""

    async def resume_turn(self, session: str, *, turn: str | None = None, request: str = "") -> c.TurnBegun:
        """Resume the last turn."""

    async def queue_message(
        self,
        session: str,
        message: e.Message,
        *,
        kind: e.PendingKind = "queue",
        pending: str | None = None,
        request: str = "",
    ) -> c.Queued:
        """Queue a message, or hold it ready for steering, without starting anything."""

    async def edit_queued(
        self,
        session: str,
        pending: str,
        text: str,
        *,
        attachments: list[e.Json] = [],
        model: str | None = None,
        request: str = "",
    ) -> e.Json:
        """Edit a waiting message."""

    async def reorder_queue(self, session: str, order: list[str], *, request: str = "") -> e.Json:
        """Put the waiting messages into another order."""

    async def remove_queued(self, session: str, pending: str, *, request: str = "") -> e.Json:
        """Remove a waiting message."""

    async def steer_queued(self, session: str, pending: str, *, request: str = "") -> c.Offered:
        """Offer a waiting message to the running agent now."""

    async def release_queue(self, session: str, *, request: str = "") -> e.Json:
        """Release a held queue."""

    async def decline_sign_in(self, session: str, call: str, *, request: str = "") -> Summary:
        """Let a call fail that waits for a sign-in."""

    async def answer_approval(
        self,
        approval: str,
        *,
        allow: bool | None = None,
        option: str | None = None,
        reason: str = "",
        input: str | None = None,
        covers: e.Breadth = "shown",
        request: str = "",
    ) -> c.Decided:
        """Answer an approval; the first valid answer wins."""

    async def answer_question(
        self,
        question: str,
        *,
        response: e.QuestionResponse = "accept",
        answers: e.Json = {},
        text: str | None = None,
        request: str = "",
    ) -> c.Answered:
        """Answer, decline or cancel a question."""

    async def draft_answer(
        self, question: str, field: str, *, answer: e.Json | None = None, request: str = ""
    ) -> c.Drafted:
        """Keep a draft of an answer."""

    async def join_session(
        self,
        session: str,
        client: str,
        *,
        name: str = "",
        tools: list[e.ToolSpec] = [],
        meta: e.Json = {},
        request: str = "",
    ) -> Summary:
        """Lend a client's tools to a session."""

    async def leave_session(self, session: str, client: str, *, abandon: bool = False, request: str = "") -> Summary:
        """Take a client's tools back."""

    async def share_data(
        self, session: str, key: str, *, value: e.Json | None = None, action: e.Json = {}, request: str = ""
    ) -> Summary:
        """Keep something that only clients understand beside a session, for all of them."""

    async def report_content(
        self, session: str, call: str, client: str, content: list[e.Json], *, request: str = ""
    ) -> c.Done:
        """What a call that a client runs shows so far."""

    async def complete_call(
        self,
        session: str,
        call: str,
        client: str,
        ok: bool,
        *,
        output: str = "",
        error: e.ErrorInfo | None = None,
        content: list[e.Json] = [],
        title: str = "",
        result: e.Json | None = None,
        confirm: bool = False,
        request: str = "",
    ) -> c.Done:
        """The result of a call that a client has run."""

    async def identify_client(self, client: str, *, request: str = "") -> c.Done:
        """Take an id for a client; it belongs to the token that used it first."""

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
    ) -> e.Grant:
        """Remember an answer in advance."""

    async def revoke_grant(self, grant: str, *, request: str = "") -> c.Done:
        """Forget a remembered answer."""

    async def configure_host(
        self, values: e.Json, *, replace: bool = False, action: e.Json = {}, request: str = ""
    ) -> c.Done:
        """Settings that editors share through the host. What loosens approval needs the scope approve."""

    async def create_automation(
        self,
        name: str,
        *,
        plan: automation_events.AutomationPlan = automation_events.AutomationPlan(),
        enabled: bool = True,
        request: str = "",
    ) -> automations.AutomationMade:
        """Make an automation: a trigger, what to start, and the rules."""

    async def edit_automation(
        self,
        automation: str,
        *,
        name: str | None = None,
        plan: automation_events.AutomationPlan | None = None,
        request: str = "",
    ) -> automations.AutomationNamed:
        """Change an automation; what is not named stays."""

    async def pause_automation(
        self, automation: str, *, reason: str = "", request: str = ""
    ) -> automations.AutomationNamed:
        """Pause an automation: it starts nothing until it is resumed."""

    async def resume_automation(self, automation: str, *, request: str = "") -> automations.AutomationNamed:
        """Resume a paused automation from now on."""

    async def run_automation(
        self, automation: str, *, input: str | None = None, at: str = "", request: str = ""
    ) -> automations.RunNamed:
        """Start an automation now, also a paused one."""

    async def cancel_run(self, run: str, *, request: str = "") -> c.Done:
        """Cancel a run, with what it has started."""

    async def rotate_secret(self, automation: str, *, request: str = "") -> automations.HookSecret:
        """Give a hook another secret, which is shown this once; the old one is void."""

    async def delete_automation(self, automation: str, *, request: str = "") -> c.Done:
        """Delete an automation and its history. Running sessions and jobs continue."""

    async def answer_budget(self, budget: str, answer: str, *, request: str = "") -> c.Done:
        """Answer the question about an exhausted budget, also if no turn shows it."""

    async def commit_changes(
        self, session: str, message: str, state: str | None, *, paths: list[str] = [], request: str = ""
    ) -> changes.Committed:
        """Commit changed files."""

    async def discard_changes(
        self, session: str, state: str | None, *, paths: list[str] = [], request: str = ""
    ) -> changes.Discarded:
        """Throw changes away."""

    async def restore_changes(self, session: str, undo: str, paths: list[str], *, request: str = "") -> c.Done:
        """Take the last discard back."""

    async def move_chat(
        self, session: str, *, to: str | None = None, after: str | None = None, request: str = ""
    ) -> Summary:
        """Move a conversation within its session, into another one, or out of it; only who owns them may."""

    async def pin_session(self, session: str, *, pinned: bool = True, request: str = "") -> Summary:
        """Pin a session, so that lists show it first, or unpin it."""

    async def choose_agent(self, session: str, agent: str, *, model: str | None = None, request: str = "") -> Summary:
        """Let another agent continue a session, from the next turn on. One that asks less needs the scope approve."""

    async def set_draft(self, session: str, text: str, *, typed: bool = False, request: str = "") -> chats.DraftText:
        """Put a text into every page's and editor's input, without sending it; an empty one takes it away."""

    async def set_servers(
        self, session: str, servers: list[client_servers.ClientServer], *, request: str = ""
    ) -> c.Done:
        """Give a session the MCP servers of a client, from the next turn on. They replace the earlier ones."""

    async def ask_server(
        self,
        session: str,
        server: str,
        *,
        operation: client_servers.ServerOperation = "tools/list",
        params: e.Json = {},
        request: str = "",
    ) -> client_servers.ServerReply:
        """Ask an MCP server of a session directly, as its own page in an editor does. No approval is requested."""

    async def set_setting(self, key: str, *, value: Any = None, request: str = "") -> configuration.SettingSaved:
        """Change one setting in the settings file, or remove it from the file. Comments and all other lines stay."""

    async def connect_model(self, base_url: str, *, api_key: str = "", request: str = "") -> configuration.Check:
        """Connect the built-in agent to a model: write address and key to the settings file, and check the agent."""

    async def plan_workflow(
        self, name: str, *, cwd: str = "", text: str = "", inputs: dict[str, Any] = {}, request: str = ""
    ) -> drafts.PlannedWorkflow:
        """Check a workflow and return its chart and its plan. Nothing starts."""

    async def save_workflow(
        self, cwd: str, name: str, text: str, *, replace: bool = False, request: str = ""
    ) -> drafts.SavedWorkflow:
        """Write a valid workflow into `.portico/jobs` of a folder. Nothing starts."""

    async def draft_workflow(
        self, description: str, cwd: str, *, agent: str | None = None, model: str | None = None, request: str = ""
    ) -> drafts.DraftStarted:
        """Let an agent write a workflow from a description, in a session that changes no files."""

    async def write_file(
        self,
        path: str,
        data: str,
        *,
        encoding: files.Encoding = "utf-8",
        mode: files.WriteMode = "truncate",
        position: int = 0,
        if_match: str | None = None,
        create_only: bool = False,
        request: str = "",
    ) -> c.Done:
        """Write a file in a workspace or in a session's folder."""

    async def copy_file(
        self, source: str, destination: str, *, fail_if_exists: bool = False, request: str = ""
    ) -> c.Done:
        """Copy a file or a folder."""

    async def move_file(
        self, source: str, destination: str, *, fail_if_exists: bool = False, request: str = ""
    ) -> c.Done:
        """Move a file or a folder."""

    async def delete_file(self, path: str, *, recursive: bool = False, request: str = "") -> c.Done:
        """Delete a file or a folder."""

    async def make_folder(self, path: str, *, request: str = "") -> c.Done:
        """Make a folder, and those above it."""

    async def add_folder(self, session: str, folder: str, *, request: str = "") -> Summary:
        """Give a session one more folder: what is inside passes as in its own, so this needs the scope approve."""

    async def remove_folder(
        self, session: str, folder: str, *, replacement: str | None = None, request: str = ""
    ) -> Summary:
        """Take a folder from a session. With a replacement (which needs the scope approve), that takes its place."""

    async def choose_folder(self, session: str, folder: str, *, chosen: bool = True, request: str = "") -> Summary:
        """One of its session's folders that a conversation is to have, or not to have any more."""

    async def drain_host(self, name: str, *, request: str = "") -> hosts.Member:
        """Hand over the sessions of a host: idle ones immediately, busy ones after their turn."""

    async def give_up_host(self, name: str, *, request: str = "") -> hosts.GivenUp:
        """Give up a host that is gone for good: its turns end as interrupted."""

    async def run_job(
        self,
        job: str,
        cwd: str,
        *,
        input: str = "",
        entry: dict[str, Any] | None = None,
        place: str = "",
        label: str = "",
        inputs: dict[str, Any] = {},
        trigger: dict[str, Any] = {},
        workflow: str = "",
        request: str = "",
    ) -> jobs.JobNamed:
        """Start a job."""

    async def stop_job(self, job: str, *, request: str = "") -> c.Done:
        """Cancel a job."""

    async def resume_job(self, job: str, *, request: str = "") -> jobs.JobNamed:
        """Resume a waiting, failed or canceled job."""

    async def retry_job(self, job: str, *, step: str = "", workflow: str = "", request: str = "") -> jobs.JobNamed:
        """Run a job again: from the beginning, or a workflow from one of its steps."""

    async def plan_retry(self, job: str, *, step: str = "", workflow: str = "", request: str = "") -> jobs.RetryPlanned:
        """Show what a retry of a workflow would run: how its file has changed, and what it keeps. Nothing starts."""

    async def call_hook(self, job: str, hook: str, *, request: str = "") -> c.Done:
        """Call a hook that a job waits for, now or later."""

    async def start_task(self, session: str, name: str, *, input: str = "", request: str = "") -> jobs.TaskNamed:
        """Run a task inside a session; the session stays when the task is over."""

    async def stop_task(self, task: str, *, request: str = "") -> c.Done:
        """Stop a task."""

    async def find_sessions(
        self,
        *,
        agent: str | None = None,
        cwd: str | None = None,
        cursor: str | None = None,
        start: bool = True,
        request: str = "",
    ) -> native.FoundSessions:
        """List sessions that were started in agents' own programs and are not adopted."""

    async def adopt_session(
        self, agent: str, native: str, *, cwd: str = "", confirm: bool = False, request: str = ""
    ) -> Summary:
        """Adopt a session that was started in an agent's own program, with its history."""

    async def continue_in_terminal(self, session: str, *, request: str = "") -> native.TerminalLine:
        """Return the command that continues a session in the agent's own program, and release the session here."""

    async def redeliver_notice(self, notice: str, *, request: str = "") -> notices.NoticeNamed:
        """Send a notice again, now: one that was given up, one that waits for its next attempt, or one that arrived."""

    async def test_notice(self, target: str, *, request: str = "") -> notices.NoticeNamed:
        """Send a test notice to a webhook or a program of the settings."""

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
    ) -> notices.PushNamed:
        """Subscribe a browser to web push; the fields are those of its `PushSubscription`."""

    async def unsubscribe_push(self, push: str, *, request: str = "") -> c.Done:
        """Unsubscribe a browser from web push."""

    async def pair_device(self, *, scopes: list[str] | None = None, request: str = "") -> pairing.PairingCode:
        """Create a code that logs in one device within five minutes."""

    async def share_session(
        self, session: str, person: str, *, rights: list[e.Right] | None = None, request: str = ""
    ) -> Summary:
        """Let another person, or everybody, read, drive or (with that scope) approve in a session of one's own."""

    async def unshare_session(self, session: str, person: str, *, request: str = "") -> Summary:
        """Take back what a person, or everybody, was allowed in a session."""

    async def add_token(
        self,
        name: str,
        *,
        scopes: list[str] | None = None,
        days: float | None = None,
        tools: list[str] = [],
        request: str = "",
    ) -> people.TokenMade:
        """Make a token."""

    async def revoke_token(self, token: str, *, request: str = "") -> c.Done:
        """End a token."""

    async def add_own_token(
        self,
        name: str,
        *,
        scopes: list[str] | None = None,
        days: float | None = None,
        tools: list[str] = [],
        request: str = "",
    ) -> people.OwnTokenMade:
        """Make a token of your own."""

    async def revoke_own_token(self, name: str, *, request: str = "") -> c.Done:
        """End one of your tokens."""

    async def add_person(self, name: str, *, scopes: list[str] = [], request: str = "") -> people.PersonShown:
        """Add a person."""

    async def remove_person(self, name: str, *, request: str = "") -> c.Done:
        """Remove a person; their tokens end."""

    async def erase_person(self, name: str, *, dry_run: bool = False, request: str = "") -> people.RetentionDone:
        """Delete all sessions of a person."""

    async def apply_retention(self, *, dry_run: bool = False, request: str = "") -> people.RetentionDone:
        """Archive and delete old sessions by rule."""

    async def add_project(self, path: str, *, worktree: bool = False, request: str = "") -> projects.Project:
        """Add a project."""

    async def forget_project(self, project: str, *, request: str = "") -> c.Done:
        """Forget a project; its folder and its conversations stay."""

    async def open_project(
        self, project: str, *, agent: str | None = None, clear: bool = False, request: str = ""
    ) -> Summary:
        """The project's conversation with an agent, begun if need be."""

    async def clear_project(self, project: str, *, request: str = "") -> c.Done:
        """Let fresh conversations take the place of a project's; the old ones stay stored."""

    async def sign_in(
        self, resource: str, *, token: str = "", seconds: float | None = None, request: str = ""
    ) -> c.Done:
        """Give the agents that ask for it a token of a resource, or take it back with an empty one."""

    async def choose_sandbox(self, folder: str, *, mode: str = "", request: str = "") -> sandboxes.FolderSandbox:
        """Set the sandbox of conversations that are started in a folder from now on."""

    async def set_secret(self, name: str, value: str, *, request: str = "") -> secrets.SecretNamed:
        """Set a secret, or replace its value. Jobs pass it to the steps that name it; no one can read it."""

    async def remove_secret(self, name: str, *, request: str = "") -> c.Done:
        """Remove a secret. Steps that name it fail until it is set again."""

    async def open_terminal(
        self,
        *,
        cwd: str | None = None,
        session: str | None = None,
        title: str = "",
        cols: int = 80,
        rows: int = 24,
        request: str = "",
    ) -> e.Json:
        """Open a terminal."""

    async def type_input(self, terminal: str, data: str, *, request: str = "") -> c.Done:
        """Type into a terminal."""

    async def resize_terminal(self, terminal: str, cols: int, rows: int, *, request: str = "") -> e.Json:
        """Change a terminal's size."""

    async def claim_terminal(
        self, terminal: str, claim: e.Json, *, session: str | None = None, request: str = ""
    ) -> e.Json:
        """Hand a terminal to a client or a session."""

    async def rename_terminal(self, terminal: str, title: str, *, request: str = "") -> e.Json:
        """Give a terminal another title."""

    async def clear_terminal(self, terminal: str, *, request: str = "") -> e.Json:
        """Forget what a terminal has shown."""

    async def close_terminal(self, terminal: str, *, request: str = "") -> c.Done:
        """End the shell and all it started."""

    async def import_archive(
        self, archive: e.Json, *, agent: str | None = None, cwd: str | None = None, request: str = ""
    ) -> Summary:
        """A session of another host."""
