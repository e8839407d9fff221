/** Types of the REST API and of events. Written by `python -m tools.page_types`; do not edit. */

export interface Routes {
  "GET /automations": { body: undefined; answer: Listing };
  "POST /automations": { body: CreateAutomationBody; answer: AutomationMade };
  "POST /automations/check": { body: AutomationPlan; answer: CheckedPlan };
  "GET /automations/{id}": { body: undefined; answer: AutomationInfo };
  "PATCH /automations/{id}": { body: EditAutomationBody; answer: AutomationNamed };
  "DELETE /automations/{id}": { body: undefined; answer: undefined };
  "GET /automations/{id}/runs": { body: undefined; answer: History };
  "GET /runs": { body: undefined; answer: History };
  "GET /runs/{id}": { body: undefined; answer: RunSummary };
  "POST /automations/{id}/pause": { body: PauseAutomationBody; answer: AutomationNamed };
  "POST /automations/{id}/resume": { body: EmptyBody; answer: AutomationNamed };
  "POST /automations/{id}/run": { body: RunAutomationBody; answer: RunNamed };
  "POST /runs/{id}/cancel": { body: EmptyBody; answer: Done };
  "POST /automations/{id}/secret": { body: EmptyBody; answer: HookSecret };
  "GET /entry": { body: undefined; answer: CurrentEntry };
  "POST /entry/check": { body: CheckBody; answer: EntryChecked };
  "GET /jobs": { body: undefined; answer: JobHistory };
  "POST /jobs": { body: StartJobBody; answer: JobNamed };
  "GET /jobs/{id}": { body: undefined; answer: JobWithEntry };
  "GET /jobs/{id}/result": { body: undefined; answer: JobResult };
  "POST /jobs/{id}/stop": { body: EmptyBody; answer: Done };
  "POST /jobs/{id}/resume": { body: EmptyBody; answer: JobNamed };
  "POST /jobs/{id}/retry": { body: RetryJobBody; answer: JobNamed };
  "POST /jobs/{id}/retry/plan": { body: PlanRetryBody; answer: RetryPlanned };
  "POST /jobs/{id}/hooks/{hook}": { body: EmptyBody; answer: Done };
  "POST /sessions": { body: StartSessionBody; answer: Summary };
  "GET /sessions": { body: undefined; answer: SessionList };
  "POST /sessions/{id}/fork": { body: ForkSessionBody; answer: Summary };
  "PATCH /sessions/{id}": { body: ChangeSessionBody; answer: Summary };
  "DELETE /sessions/{id}": { body: undefined; answer: Deleted };
  "GET /sessions/{id}": { body: undefined; answer: SessionState };
  "POST /sessions/{id}/close": { body: EmptyBody; answer: Summary };
  "POST /sessions/{id}/reopen": { body: EmptyBody; answer: Summary };
  "POST /sessions/{id}/truncate": { body: TruncateSessionBody; answer: Summary };
  "POST /sessions/{id}/messages": { body: SendMessageBody; answer: TurnBegun | QueuedAnswer | SteeredAnswer };
  "POST /sessions/{id}/cancel": { body: CancelTurnBody; answer: Summary };
  "POST /sessions/{id}/resume": { body: ResumeTurnBody; answer: TurnBegun };
  "PATCH /sessions/{id}/queue/{pending}": { body: EditQueuedBody; answer: QueueShown };
  "DELETE /sessions/{id}/queue/{pending}": { body: undefined; answer: QueueShown };
  "POST /sessions/{id}/queue/order": { body: ReorderQueueBody; answer: QueueShown };
  "POST /sessions/{id}/queue/{pending}/steer": { body: EmptyBody; answer: Offered };
  "POST /sessions/{id}/queue/release": { body: EmptyBody; answer: QueueShown };
  "POST /approvals/{id}": { body: AnswerApprovalBody; answer: Decided };
  "POST /questions/{id}": { body: AnswerQuestionBody; answer: Answered };
  "PATCH /questions/{id}": { body: DraftAnswerBody; answer: Drafted };
  "POST /grants": { body: AddGrantBody; answer: Grant };
  "GET /grants": { body: undefined; answer: GrantList };
  "DELETE /grants/{id}": { body: undefined; answer: undefined };
  "POST /budgets/answer": { body: AnswerBudgetBody; answer: Done };
  "POST /sessions/{id}/commit": { body: CommitChangesBody; answer: Committed };
  "POST /sessions/{id}/discard": { body: DiscardChangesBody; answer: Discarded };
  "POST /sessions/{id}/discard/undo": { body: RestoreChangesBody; answer: undefined };
  "POST /sessions/{id}/move": { body: MoveChatBody; answer: Summary };
  "PUT /sessions/{id}/pin": { body: PinSessionBody; answer: Summary };
  "PUT /sessions/{id}/agent": { body: ChooseAgentBody; answer: Summary };
  "PUT /sessions/{id}/draft": { body: SetDraftBody; answer: DraftText };
  "PUT /sessions/{id}/servers": { body: SetServersBody; answer: Done };
  "PATCH /settings": { body: SetSettingBody; answer: SettingSaved };
  "GET /settings": { body: undefined; answer: SettingList };
  "POST /agents/loop/model": { body: ConnectModelBody; answer: AgentCheck };
  "POST /workflows/plan": { body: PlanWorkflowBody; answer: PlannedWorkflow };
  "POST /workflows": { body: SaveWorkflowBody; answer: SavedWorkflow };
  "GET /workflows": { body: undefined; answer: WorkflowsAnswer };
  "POST /workflows/draft": { body: DraftWorkflowBody; answer: DraftStarted };
  "POST /hosts/{name}/drain": { body: EmptyBody; answer: Member };
  "POST /hosts/{name}/give-up": { body: EmptyBody; answer: GivenUp };
  "POST /sessions/adopt": { body: AdoptSessionBody; answer: Summary };
  "POST /sessions/{id}/native": { body: EmptyBody; answer: TerminalLine };
  "POST /notices/{notice}/redeliver": { body: EmptyBody; answer: NoticeNamed };
  "POST /notices/test": { body: TestNoticeBody; answer: NoticeNamed };
  "POST /push": { body: SubscribePushBody; answer: PushNamed };
  "GET /push": { body: undefined; answer: PushList };
  "DELETE /push/{push}": { body: undefined; answer: undefined };
  "POST /devices/pair": { body: PairDeviceBody; answer: PairingCode };
  "POST /sessions/{id}/share": { body: ShareSessionBody; answer: Summary };
  "POST /sessions/{id}/unshare": { body: UnshareSessionBody; answer: Summary };
  "POST /tokens": { body: AddTokenBody; answer: TokenMade };
  "GET /tokens": { body: undefined; answer: TokenList };
  "DELETE /tokens/{id}": { body: undefined; answer: undefined };
  "POST /people/me/tokens": { body: AddOwnTokenBody; answer: OwnTokenMade };
  "DELETE /people/me/tokens/{name}": { body: undefined; answer: undefined };
  "POST /people": { body: AddPersonBody; answer: PersonShown };
  "GET /people": { body: undefined; answer: PersonList };
  "DELETE /people/{name}": { body: undefined; answer: undefined };
  "POST /people/{name}/erase": { body: ErasePersonBody; answer: RetentionDone };
  "POST /retention": { body: ApplyRetentionBody; answer: RetentionDone };
  "PUT /sandbox": { body: ChooseSandboxBody; answer: FolderSandbox };
  "GET /sandbox": { body: undefined; answer: SandboxChoice };
  "PUT /secrets/{name}": { body: SetSecretBody; answer: SecretNamed };
  "DELETE /secrets/{name}": { body: undefined; answer: undefined };
  "POST /terminals": { body: OpenTerminalBody; answer: TerminalInfo };
  "GET /terminals": { body: undefined; answer: TerminalList };
  "POST /terminals/{id}/input": { body: TypeInputBody; answer: undefined };
  "POST /terminals/{id}/resize": { body: ResizeTerminalBody; answer: TerminalInfo };
  "DELETE /terminals/{id}": { body: undefined; answer: undefined };
  "GET /terminals/{id}": { body: undefined; answer: TerminalScreen };
  "POST /commands": { body: AnyCommandBody; answer: Record<string, unknown> };
  "GET /agents": { body: undefined; answer: AgentsAnswer };
  "POST /agents/{id}/check": { body: EmptyBody; answer: AgentCheck | Record<string, unknown> };
  "POST /agents/find": { body: EmptyBody; answer: FoundAgents };
  "GET ": { body: undefined; answer: About };
  "GET /sessions/{id}/export": { body: undefined; answer: undefined };
  "GET /sessions/{id}/queue": { body: undefined; answer: QueueShown };
  "GET /sessions/{id}/archive": { body: undefined; answer: Archive };
  "POST /sessions/import": { body: ImportBody; answer: Summary };
  "GET /people/me": { body: undefined; answer: Me };
  "GET /sessions/{id}/events": { body: undefined; answer: EventPage };
  "GET /events": { body: undefined; answer: EventPage };
  "GET /blobs/{digest}": { body: undefined; answer: undefined };
  "GET /audit": { body: undefined; answer: AuditPage };
  "GET /sessions/{id}/changes": { body: undefined; answer: ChangeList };
  "GET /sessions/{id}/changes/own": { body: undefined; answer: OwnChanges };
  "GET /sessions/{id}/changes/diff": { body: undefined; answer: undefined };
  "GET /sessions/{id}/uncommitted": { body: undefined; answer: Uncommitted };
  "GET /sessions/{id}/uncommitted/diff": { body: undefined; answer: undefined };
  "GET /sessions/{id}/uncommitted/file": { body: undefined; answer: undefined };
  "GET /sessions/{id}/changes/file": { body: undefined; answer: undefined };
  "GET /search": { body: undefined; answer: SearchHits };
  "GET /sessions/{id}/suggestions": { body: undefined; answer: Suggestions };
  "GET /sessions/{id}/reference": { body: undefined; answer: SessionReference };
  "GET /board": { body: undefined; answer: BoardPage };
  "GET /inbox": { body: undefined; answer: Inbox };
  "GET /inbox/answered": { body: undefined; answer: PastAnswers };
  "GET /approvals/{id}/covers": { body: undefined; answer: Coverage };
  "GET /usage": { body: undefined; answer: UsageAnswer };
  "GET /secrets": { body: undefined; answer: SecretList };
  "GET /hosts": { body: undefined; answer: HostList };
  "GET /notices": { body: undefined; answer: NoticeList };
  "GET /agents/{id}/native-sessions": { body: undefined; answer: FoundPage };
  "GET /native-sessions": { body: undefined; answer: FoundSessions };
  "GET /sessions/{id}/network": { body: undefined; answer: NetworkUse };
  "GET /pages": { body: undefined; answer: FeaturePages };
  "GET /recipes": { body: undefined; answer: RecipesAnswer };
  "GET /workflows/draft/{id}": { body: undefined; answer: WorkflowDraft };
}

export type Event = ApprovalAnswered | ApprovalAsked | Audited | AutomationCreated | AutomationDeleted | AutomationEdited | AutomationPaused | AutomationResumed | ChatMoved | ChatsOrdered | ChildStarted | ClientJoined | ClientKept | ClientLeft | FolderAdded | FolderRemoved | GrantAdded | GrantRevoked | HistoryCopied | HookRotated | HostStarted | HostStopped | JobDecided | JobEnded | JobResumed | JobStarted | JobStopping | JobSuspended | JobValue | JobWaiting | LogLost | NetworkReached | PartDelta | PartEnded | PartStarted | QuestionAnswered | QuestionAsked | QuestionDrafted | QueueAdded | QueueEdited | QueueHeld | QueueRemoved | QueueReordered | RunClaimed | RunEnded | RunReserved | RunSettled | RunSkipped | RunStarted | RunsMissed | SandboxChosen | SandboxEntered | SessionArchived | SessionClosed | SessionConfigured | SessionListed | SessionModel | SessionPinned | SessionRead | SessionRemoved | SessionRenamed | SessionReopened | SessionShared | SessionStarted | SessionTruncated | SessionVendor | SignInAsked | SignInSettled | TaskDecided | TaskEnded | TaskPrompted | TaskSessionEnded | TaskSessionStarted | TaskStarted | TerminalClaimed | TerminalCleared | TerminalCommand | TerminalCommandEnded | TerminalData | TerminalDetects | TerminalExited | TerminalMoved | TerminalRemoved | TerminalResized | TerminalShown | TerminalStarted | TerminalTitled | ToolContent | ToolDecided | ToolEnded | ToolInput | ToolOutput | ToolReady | ToolStarted | TurnEnded | TurnResumed | TurnStarted | TurnStep | Unreadable | UsageReported | WorkEnded | WorkStarted;

export interface About {
  name: string;
  version: string;
  sessions: number;
  running: number;
  log: LogHealth;
  workspaces: string[];
  you: string;
  doors: DoorInfo[];
}

export interface AddGrantBody {
  agent: string;
  tool: string;
  allow: boolean;
  session?: string;
  project?: string;
  pattern?: string;
  seconds?: number;
}

export interface AddOwnTokenBody {
  name: string;
  scopes?: string[];
  days?: number;
  tools?: string[];
}

export interface AddPersonBody {
  name: string;
  scopes?: string[];
}

export interface AddTokenBody {
  name: string;
  scopes?: string[];
  days?: number;
  tools?: string[];
}

export interface AdoptSessionBody {
  agent: string;
  native: string;
  cwd?: string;
  confirm?: boolean;
}

/** An automation's run or a job ends: exactly one of `automation` and `job`. */
export interface After {
  automation?: string;
  job?: string;
  outcomes?: ("canceled" | "failed" | "interrupted" | "succeeded")[];
}

/** Of a workflow: steps that are repeated until a template gives a true value; fails if it never does. */
export interface Again {
  kind: "Again";
  id?: string;
  most: number;
  until?: string;
  body: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  mayFail?: boolean;
}

/** The result of starting an agent to check it. */
export interface AgentCheck {
  agent: string;
  status: "failed" | "missing" | "not_acp" | "not_signed_in" | "ready" | "slow" | "wrong_node" | "wrong_version";
  detail: string;
}

export interface AgentInfo {
  id: string;
  name: string;
  description?: string;
  models?: AgentModel[];
  capabilities?: Capabilities;
  missing?: string;
  config?: Record<string, unknown>;
  label?: string;
  resources?: ResourceAnswer[];
  customizations?: Record<string, unknown>[];
}

export interface AgentModel {
  id: string;
  name: string;
  multiplier?: number;
  context?: number;
  vision?: boolean;
  meta?: Record<string, unknown>;
  config?: Record<string, unknown>;
}

export interface AgentsAnswer {
  agents: AgentInfo[];
  default: string | null;
  known: KnownAgent[];
}

/** The condition chooses the branch; a missing branch succeeds. */
export interface Alt {
  kind: "Alt";
  condition: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  trueWork?: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  falseWork?: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
}

export interface AnswerApprovalBody {
  allow?: boolean;
  option?: string;
  reason?: string;
  input?: string;
  covers?: "all" | "folder" | "shown";
}

export interface AnswerBudgetBody {
  budget: string;
  answer: string;
}

export interface AnswerQuestionBody {
  response?: "accept" | "cancel" | "decline";
  answers?: Record<string, unknown>;
  text?: string;
}

export interface Answered {
  question: string;
  response: "accept" | "cancel" | "decline";
}

export interface AnyCommandBody {
  command: string;
  arguments?: Record<string, unknown>;
}

export interface ApplyRetentionBody {
  dry_run?: boolean;
}

export interface Approval {
  id: string;
  kind: string;
  title: string;
  input: string;
  expires: number;
  options: Option[];
  path?: string;
  command?: string;
  diff?: string;
  editable?: boolean;
  result?: boolean;
  answered?: boolean;
  allowed?: boolean;
  by?: string;
  option?: string;
  reason?: string;
  meta?: Record<string, unknown>;
  proposed?: Record<string, unknown>;
  file?: string;
  files?: string[];
  why?: string;
  unclear?: string;
  grant?: string;
  covers?: string[];
}

export interface ApprovalAnswered {
  type: "approval.answered";
  turn: string;
  approval: string;
  allowed: boolean;
  by: string;
  option?: string;
  reason?: string;
  input?: string;
  meta?: Record<string, unknown>;
  grant?: string;
  covers?: string[];
}

export interface ApprovalAsked {
  type: "approval.asked";
  turn: string;
  approval: string;
  call: string;
  tool: string;
  title: string;
  kind: string;
  input: string;
  expires: number;
  options: Option[];
  path?: string;
  command?: string;
  files?: string[];
  diff?: string;
  editable?: boolean;
  result?: boolean;
  meta?: Record<string, unknown>;
  why?: string;
  unclear?: string;
}

export interface Archive {
  portico: number;
  session: string;
  agent: string;
  model?: string;
  title?: string;
  cwd?: string;
  turns?: Record<string, unknown>[];
  blobs?: Record<string, string>;
}

export interface Arrow {
  to: number;
  label?: string;
  loopBack: boolean;
}

/** A file that a job keeps. The log has its content. */
export interface Artifact {
  path: string;
  size: number;
  blob: string;
}

/** Asks a person. The answer is `$answer` from then on, and chooses a branch where there are choices. */
export interface Ask {
  kind: "Ask";
  workIdInJob?: number;
  question: string[];
  choices?: Choice[];
  people?: string[];
  expires?: number;
}

/** A question to a person. */
export interface AskDo {
  kind: "ask";
  question: string;
  choices?: string[];
  people?: string[];
  expires?: number;
  show?: string[];
}

export interface Attempt {
  time: number;
  error?: string;
}

export interface AuditPage {
  audit: Record<string, unknown>[];
  next: number | null;
}

/** Append-only record of what matters for security (SECURITY 26). Never carries a secret. */
export interface Audited {
  type: "audit";
  action: string;
  by: string;
  detail?: Record<string, unknown>;
}

export interface AutomationCreated {
  type: "automation.created";
  automation: string;
  name: string;
  plan: AutomationPlan;
  by: string;
  scopes: string[];
  source?: "door" | "file";
  uri?: string;
  meta?: Record<string, unknown>;
  enabled?: boolean;
}

export interface AutomationDeleted {
  type: "automation.deleted";
  by: string;
}

export interface AutomationEdited {
  type: "automation.edited";
  name: string;
  plan: AutomationPlan;
  by: string;
  scopes: string[];
  meta?: Record<string, unknown>;
}

export interface AutomationInfo {
  id: string;
  name: string;
  plan: AutomationPlan;
  trigger: string;
  enabled: boolean;
  by: string;
  source: string;
  created: number;
  modified: number;
  triggers?: string[];
  when?: string;
  reason?: string;
  stopped?: boolean;
  next?: number[];
  runs?: number;
  failures?: number;
  open?: string[];
  last?: RunSummary;
  uri?: string;
  meta?: Record<string, unknown>;
  scopes?: string[];
}

export interface AutomationMade {
  automation: string;
  secret?: string;
}

export interface AutomationNamed {
  automation: string;
}

export interface AutomationPaused {
  type: "automation.paused";
  by: string;
  reason?: string;
  failed?: boolean;
}

/** A trigger, or several in `on` (without any it starts by hand), what to start (exactly one) and the rules. */
export interface AutomationPlan {
  title?: string;
  on?: Trigger[];
  schedule?: Schedule;
  hook?: Hook;
  files?: FilesTrigger;
  after?: After;
  job?: JobAction;
  prompt?: PromptAction;
  missed?: "all" | "last" | "skip";
  missed_limit?: number;
  overlap?: "cancel" | "parallel" | "queue" | "skip";
  parallel?: number;
  stop_after_failures?: number;
  stop_after_runs?: number;
  stop_at?: string;
  budget?: Budget;
  keep_days?: number;
  keep_runs?: number;
}

/** Missed times are not repeated. */
export interface AutomationResumed {
  type: "automation.resumed";
  by: string;
}

/** When the task may start at all. */
export interface Availability {
  condition?: string[];
}

export interface BoardPage {
  version: number;
  rows: BoardRow[];
  older: number;
  before: number;
  days: number[];
  archived: number;
}

export interface BoardRow {
  session: Summary;
  activity?: string;
  since?: number;
  waiting?: Waiting[];
  queued?: boolean;
  after?: string;
  uncounted?: boolean;
}

/** Of a workflow: branches that run at the same time. */
export interface Branches {
  kind: "Branches";
  id: string;
  names?: string[];
  atOnce?: boolean;
  folder?: "shared" | "worktree";
  merge?: FlowStep;
  works: (Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches)[];
  mayFail?: boolean;
}

/** What is not set has no bound. */
export interface Budget {
  dollars?: number;
  tokens?: number;
  minutes?: number;
  turns?: number;
  calls?: number;
}

/** Another job. */
export interface CallDo {
  kind: "call";
  job: string;
  inputs?: Record<string, unknown>;
}

export interface CallPart {
  part: "call";
  id: string;
  tool: string;
  title?: string;
  kind?: string;
  owner?: string;
  parent?: string;
  meta?: Record<string, unknown>;
  input?: string;
  ready?: boolean;
  output?: string;
  left_out?: number;
  blob?: string;
  content?: Record<string, unknown>[];
  approvals?: Approval[];
  rule?: string;
  denied?: boolean;
  done?: boolean;
  ok?: boolean;
  error?: ErrorInfo;
  past?: string;
  detail?: string;
  outcome?: "cancelled" | "completed" | "failed" | "interrupted";
  server?: string;
  sign_in?: SignInAsked;
  result?: Record<string, unknown>;
  exit_code?: number;
  started?: number;
  took?: number;
}

export interface CancelTurnBody {
  turn?: string;
}

export interface Capabilities {
  tools?: boolean;
  steer?: boolean;
  resume?: boolean;
  fork?: boolean;
  attachments?: boolean;
  folders?: boolean;
  servers?: boolean;
}

export interface ChangeList {
  git: boolean;
  files?: FileChange[];
  cut?: boolean;
  note?: string;
}

export interface ChangeSessionBody {
  title?: string;
  model?: string;
  archived?: boolean;
  read?: boolean;
  config?: Record<string, unknown>;
}

export interface ChartGraph {
  nodes: ChartNode[];
}

export interface ChartNode {
  id: number;
  hint: ["CondNode" | "TaskNode", number] | "AltEnd" | "CondBegin" | "CondEnd" | "LoopEnd" | "ParBegin" | "ParEnd";
  label?: string;
  arrows?: Arrow[];
}

/** A conversation belongs to another session from now on, or becomes a separate session. Written to its own */
export interface ChatMoved {
  type: "chat.moved";
  session: string;
  source: string;
  by: string;
  to?: string;
  below?: string[];
  owner?: string;
}

/** The order in which lists show the conversations of a session, its own among them. New ones come last. */
export interface ChatsOrdered {
  type: "chats.ordered";
  order: string[];
  by: string;
}

export interface CheckBody {
  text: string;
  syntax?: "json" | "yaml";
}

/** The plan is right. */
export interface CheckedPlan {
  when: string;
  next?: number[];
}

export interface ChildStarted {
  type: "child.started";
  session: string;
  kind: "agent" | "fork" | "side";
  turn?: string;
  call?: string;
}

/** One of the answers of an Ask, and what follows it. */
export interface Choice {
  label: string;
  work?: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
}

export interface ChooseAgentBody {
  agent: string;
  model?: string;
}

export interface ChooseSandboxBody {
  folder: string;
  mode?: string;
}

/** A client offers its own tools to this session. */
export interface ClientJoined {
  type: "client.joined";
  client: string;
  name?: string;
  tools?: ToolSpec[];
  meta?: Record<string, unknown>;
}

/** Something that only clients know and share: a draft, an annotation, a reviewed file. None removes it. */
export interface ClientKept {
  type: "client.kept";
  key: string;
  by: string;
  value?: Record<string, unknown>;
  action?: Record<string, unknown>;
}

export interface ClientLeft {
  type: "client.left";
  client: string;
  by?: string;
  abandon?: boolean;
}

/** An MCP server: a program on standard input and output, or an address. */
export interface ClientServer {
  name: string;
  command?: string[];
  env?: Record<string, string>;
  url?: string;
  headers?: Record<string, string>;
}

export interface ClientState {
  id: string;
  name?: string;
  tools?: ToolSpec[];
  meta?: Record<string, unknown>;
}

export interface CommitChangesBody {
  message: string;
  state: string | null;
  paths?: string[];
}

export interface Committed {
  commit: string;
}

export interface ConnectModelBody {
  base_url: string;
  api_key?: string;
}

export interface Coverage {
  covers: Covered[];
}

export interface Covered {
  breadth: "all" | "folder" | "shown";
  covers: string[];
}

export interface CreateAutomationBody {
  name: string;
  plan?: AutomationPlan;
  enabled?: boolean;
}

/** When the task counts as done: tools that must have been called, a condition, a command that must succeed, and */
export interface Criteria {
  toolExecuted?: string[];
  condition?: string[];
  runConditionInSameSession?: boolean;
  command?: string | string[];
  checks?: EntryCheck[];
  failureAction: FailureAction;
}

export interface CurrentEntry {
  name: string;
  entry: Entry;
  chart: Record<string, ChartGraph>;
}

export interface Decided {
  approval: string;
  allowed: boolean;
  by: string;
}

export interface Deleted {
  kept: string;
}

/** One notice for one target. */
export interface Delivery {
  id: string;
  target: string;
  notice: Notice;
  state?: "delivered" | "failed" | "unneeded" | "waiting";
  next?: number;
  tries?: number;
  attempts?: Attempt[];
  by_hand?: boolean;
}

export interface DiscardChangesBody {
  state: string | null;
  paths?: string[];
}

export interface Discarded {
  undo: string;
}

/** It was done; there is no further result. */
export interface Done {
}

export interface DoorInfo {
  name: string;
  package: string;
  missing?: string;
  disabled?: boolean;
}

export interface DraftAnswerBody {
  field: string;
  answer?: Record<string, unknown>;
}

export interface DraftStarted {
  session: string;
}

export interface DraftText {
  text: string;
}

export interface DraftWorkflowBody {
  description: string;
  cwd: string;
  agent?: string;
  model?: string;
}

export interface Drafted {
  question: string;
}

/** How often a crashed driving session is tried again on this model. */
export interface DrivingRetry {
  modelId: string;
  retries: number;
}

/** The same work for every item, which is `$item` in its prompts; succeeds if all do. */
export interface Each {
  kind: "Each";
  files?: string;
  output?: string;
  items?: string[];
  body: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  concurrency?: number;
}

export interface EditAutomationBody {
  name?: string;
  plan?: AutomationPlan;
}

export interface EditQueuedBody {
  text: string;
  attachments?: Record<string, unknown>[];
  model?: string;
}

/** For commands that need nothing: an empty body or `{}`. */
export interface EmptyBody {
}

/** Everything a host can run for its users. */
export interface Entry {
  $schema?: string;
  models?: Record<string, string>;
  drivingSessionRetries?: DrivingRetry[];
  promptVariables?: Record<string, string[]>;
  tasks: Record<string, Task>;
  jobs?: Record<string, Job>;
  grid: GridRow[];
}

/** One thing that must hold; exactly one of these. */
export interface EntryCheck {
  command?: string | string[];
  files?: FilesCheck;
  schema?: SchemaCheck;
  model?: ModelCheck;
  person?: PersonCheck;
}

/** Either the charts of its jobs, or the first mistake and its place. */
export interface EntryChecked {
  chart?: Record<string, ChartGraph>;
  inputs?: string[];
  path?: string;
  mistake?: string;
}

/** A model, by its category in `models` or by its literal id; exactly one of the two. */
export interface EntryModel {
  category?: string;
  id?: string;
}

export interface ErasePersonBody {
  dry_run?: boolean;
}

export interface ErrorInfo {
  code: string;
  message: string;
  retry_after?: number;
}

/** Events of a channel. `head` is the last position: a cursor at the head has seen everything. `epoch` names the log: a cursor `POSITION.EPOCH` is refused by another one. */
export interface EventPage {
  events: EventRecord[];
  head: number;
  epoch: string;
}

/** An event in its place. */
export interface EventRecord {
  seq: number;
  channel: string;
  pos: number;
  time: number;
  event: HostStarted | LogLost | HostStopped | Audited | GrantAdded | GrantRevoked | SessionListed | SessionRemoved | SessionStarted | SessionShared | SessionRenamed | SessionModel | SessionConfigured | FolderAdded | FolderRemoved | SessionArchived | SessionRead | SessionVendor | SessionClosed | SessionReopened | SessionTruncated | ChatsOrdered | ChatMoved | HistoryCopied | ChildStarted | ClientJoined | ClientLeft | ClientKept | QueueAdded | QueueEdited | QueueReordered | QueueRemoved | QueueHeld | TurnStarted | TurnResumed | TurnEnded | TurnStep | PartStarted | PartDelta | ToolInput | ToolOutput | PartEnded | UsageReported | ToolStarted | ToolReady | ToolDecided | ToolContent | ToolEnded | ApprovalAsked | ApprovalAnswered | SignInAsked | SignInSettled | QuestionAsked | QuestionDrafted | QuestionAnswered | Unreadable | AutomationCreated | AutomationEdited | AutomationPaused | AutomationResumed | HookRotated | RunReserved | RunsMissed | RunSettled | AutomationDeleted | RunClaimed | RunSkipped | RunStarted | RunEnded | SessionPinned | TaskStarted | TaskSessionStarted | TaskSessionEnded | TaskPrompted | TaskDecided | TaskEnded | JobStarted | JobResumed | JobSuspended | JobWaiting | JobStopping | JobDecided | JobValue | WorkStarted | WorkEnded | JobEnded | TerminalStarted | TerminalData | TerminalShown | TerminalCommand | TerminalCommandEnded | TerminalDetects | TerminalResized | TerminalClaimed | TerminalTitled | TerminalMoved | TerminalCleared | TerminalExited | TerminalRemoved | NetworkReached | SandboxChosen | SandboxEntered;
}

/** What happens when the criteria are not met. */
export interface FailureAction {
  retryTimes: number;
  additionalPrompt?: string[];
}

export interface FeaturePage {
  name: string;
  title: string;
  icon: string;
  module: string;
}

export interface FeaturePages {
  pages: FeaturePage[];
}

/** A file that a turn changed, as git sees it. */
export interface FileChange {
  path: string;
  status: "added" | "deleted" | "modified" | "renamed";
  added: number;
  removed: number;
  binary: boolean;
  from?: string;
}

export interface FileProblem {
  line: number;
  column: number;
  place: string;
  message: string;
}

/** Globs below the working directory. What the task changed is known in a git work tree. */
export interface FilesCheck {
  exist?: string[];
  absent?: string[];
  changedOnly?: string[];
  maxChangedLines?: number;
}

/** Files in a folder change. */
export interface FilesTrigger {
  folder: string;
  globs?: string[];
  excludes?: string[];
  quiet?: number;
}

/** What a workflow adds to its job. */
export interface Flow {
  about?: string;
  inputs?: Record<string, JobInput>;
  result?: unknown;
  artifacts?: string[];
  folder?: "shared" | "worktree";
  branch?: string;
  env?: Record<string, string>;
  on?: Record<string, unknown>[];
  file?: string;
  source?: string;
  ids?: string[];
}

/** One step without children. Settings of the steps around it and of the file are already included. */
export interface FlowStep {
  kind: "Step";
  workIdInJob?: number;
  id: string;
  name: string;
  do: PromptDo | RunDo | HttpDo | AskDo | WaitDo | CallDo | MergeDo;
  output?: "json" | "text";
  schema?: Record<string, unknown>;
  retry?: Retry;
  timeout?: number;
  budget?: Budget;
  env?: Record<string, string>;
  secrets?: string[];
  secretInputs?: string[];
  label?: string;
  sandbox?: string;
  mayFail?: boolean;
  onInterrupt?: "ask" | "fail" | "retry";
  at?: string;
}

export interface FolderAdded {
  type: "folder.added";
  folder: string;
  by: string;
  chat?: boolean;
}

export interface FolderRemoved {
  type: "folder.removed";
  folder: string;
  by: string;
  chat?: boolean;
  replacement?: string;
}

export interface FolderSandbox {
  folder: string;
  mode: string;
}

export interface ForkSessionBody {
  turn?: string;
}

export interface FoundAgents {
  added: string[];
}

/** The sessions of one agent that were started in its own program and are not adopted. */
export interface FoundPage {
  agent: string;
  sessions?: FoundSession[];
  next?: string;
  problem?: string;
}

export interface FoundSession {
  agent: string;
  id: string;
  cwd?: string;
  title?: string;
  updated?: number;
  open?: boolean;
}

export interface FoundSessions {
  agents: FoundPage[];
}

export interface GivenUp {
  sessions: number;
}

/** A remembered answer. Deny beats allow; it never crosses agents; it always ends. */
export interface Grant {
  id: string;
  agent: string;
  tool: string;
  allow: boolean;
  expires: number;
  session?: string;
  project?: string;
  pattern?: string;
  covers?: string[];
  owner?: string;
}

export interface GrantAdded {
  type: "grant.added";
  grant: Grant;
  by: string;
}

export interface GrantList {
  grants: Grant[];
}

export interface GrantRevoked {
  type: "grant.revoked";
  grant: string;
  by: string;
}

/** A button: its text and the job it starts. */
export interface GridColumn {
  name: string;
  jobName: string;
}

/** A row of buttons; null leaves a gap. */
export interface GridRow {
  keyword: string;
  jobs: (GridColumn | null)[];
}

export interface History {
  runs: RunSummary[];
  missed?: MissedTimes[];
}

/** A forked or seeded session begins with these finished turns (each the state of one turn). */
export interface HistoryCopied {
  type: "history.copied";
  turns: Record<string, unknown>[];
}

export interface Hit {
  session: string;
  pos: number;
  time: number;
  excerpt: string;
  turn?: string;
}

/** Another system calls `POST /hooks/NAME`, signed with the hook's secret. */
export interface Hook {
  filter?: Match[];
  per_minute?: number;
}

/** The hook has another secret; the old one is void. */
export interface HookRotated {
  type: "automation.hook.rotated";
  by: string;
}

export interface HookSecret {
  secret: string;
}

export interface HostList {
  hosts: Member[];
}

export interface HostStarted {
  type: "host.started";
  version: string;
  pid: number;
}

export interface HostStopped {
  type: "host.stopped";
  reason?: string;
}

/** The connections to one host. */
export interface HostUse {
  host: string;
  port: number;
  count?: number;
  refused?: number;
  sent?: number;
  received?: number;
  first?: number;
  last?: number;
  allowed_by?: string[];
  refused_by?: string[];
}

/** One request. */
export interface HttpDo {
  kind: "http";
  method?: string;
  url: string;
  headers?: Record<string, string>;
  json?: unknown;
  body?: string;
}

/** Of a workflow: steps that run if a template gives a true value, and others if not. */
export interface If {
  kind: "If";
  id?: string;
  when?: string;
  then: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  otherwise?: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  mayFail?: boolean;
}

export interface ImportBody {
  archive: Archive;
  agent?: string;
  cwd?: string;
}

export interface Inbox {
  waiting: PendingRequest[];
  interrupted: InterruptedSession[];
  jobs?: WaitingJob[];
  budgets?: UnansweredBudget[];
}

/** A session whose turn ended with the host. It waits for a person to resume it. */
export interface InterruptedSession {
  session: string;
  title: string;
  agent: string;
  cwd: string;
  since: number;
  by?: string;
}

/** What a caller may choose about a session's own git worktree. */
export interface Isolation {
  name?: string;
  base?: string;
}

/** A tree of works. `requireUserInput` follows from its tasks and is filled in by validation. */
export interface Job {
  requireUserInput?: boolean;
  work: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  timeout?: number;
  retrySeconds?: number[];
  budget?: Budget;
  place?: string;
  label?: string;
  sandbox?: "off" | "project" | "strict";
  flow?: Flow;
}

/** A job of the host's entry. */
export interface JobAction {
  job: string;
  cwd?: string;
  input?: string;
  inputs?: Record<string, unknown>;
  place?: string;
  label?: string;
}

export interface JobDecided {
  type: "job.decided";
  path: string;
  reason: string;
}

export interface JobEnded {
  type: "job.ended";
  job: string;
  outcome: "canceled" | "failed" | "succeeded";
  by: string;
  error?: string;
  reason?: string;
  result?: unknown;
  artifacts?: Artifact[];
}

export interface JobHistory {
  jobs: JobSummary[];
}

/** A value that a job takes when it starts. */
export interface JobInput {
  type?: "boolean" | "choice" | "file" | "list" | "number" | "secret" | "text";
  about?: string;
  default?: unknown;
  required?: boolean;
  choices?: string[];
  from?: string;
}

export interface JobNamed {
  job: string;
}

export interface JobResult {
  id: string;
  status: "canceled" | "failed" | "running" | "succeeded" | "waiting";
  result: unknown;
  artifacts: Artifact[];
  error: string;
  network?: HostUse[];
}

export interface JobResumed {
  type: "job.resumed";
  by: string;
  path?: string;
}

export interface JobRow {
  path: string;
  work: number;
  step: string;
  name: string;
  kind: string;
  task: string;
  status: "failed" | "running" | "stopped" | "succeeded";
  started: number;
  ended?: number;
  attempt?: number;
  items?: string[];
  reason?: string;
}

/** On `job/ID`. Contains everything that is needed to continue: the entry may change or vanish. */
export interface JobStarted {
  type: "job.started";
  job: string;
  name: string;
  entry: Record<string, unknown>;
  cwd: string;
  by: string;
  input?: string;
  origin?: string;
  done?: Record<string, boolean>;
  values?: Record<string, Record<string, string>>;
  owner?: string;
  inputs?: Record<string, unknown>;
  trigger?: Record<string, unknown>;
}

/** It is canceled; `job.ended` follows when everything has stopped, also after a crash in between. */
export interface JobStopping {
  type: "job.stopping";
  by: string;
}

/** Kept for every job for ever, stored beside its channel. Times are milliseconds since the epoch. */
export interface JobSummary {
  id: string;
  name: string;
  status: "canceled" | "failed" | "running" | "succeeded" | "waiting";
  started: number;
  cwd: string;
  by: string;
  ended?: number;
  error?: string;
  reason?: string;
  waits_for?: "host" | "label" | "person";
  origin?: string;
  works?: WorkSummary[];
  pos?: number;
  owner?: string;
  result?: unknown;
  artifacts?: Artifact[];
  branch?: string;
}

/** The host was stopped. Running works did not end the job; it continues at the next start. */
export interface JobSuspended {
  type: "job.suspended";
}

/** Something that later works use: the output of a task, an answer, the items of an Each. */
export interface JobValue {
  type: "job.value";
  path: string;
  name: string;
  value: string;
}

/** A person resumes the job after `onInterrupt: ask`, or it continues when a host can run it. */
export interface JobWaiting {
  type: "job.waiting";
  reason: string;
  waits_for?: "host" | "label" | "person";
}

export interface JobWithEntry {
  id: string;
  name: string;
  status: "canceled" | "failed" | "running" | "succeeded" | "waiting";
  started: number;
  cwd: string;
  by: string;
  ended?: number;
  error?: string;
  reason?: string;
  waits_for?: "host" | "label" | "person";
  origin?: string;
  works?: WorkSummary[];
  pos?: number;
  owner?: string;
  result?: unknown;
  artifacts?: Artifact[];
  branch?: string;
  entry: Entry;
  chart: ChartGraph;
  network?: HostUse[];
  rows?: JobRow[];
  inputs?: Record<string, unknown>;
}

export interface KnownAgent {
  id: string;
  name: string;
  add: string;
  install: string;
}

export interface Listing {
  automations: AutomationInfo[];
  file_error?: string;
}

export interface LogHealth {
  seq: number;
  epoch: string;
  down: string | null;
}

/** A start found that the last numbers of the log are gone (a cut write-ahead log, an older copy of the file). None */
export interface LogLost {
  type: "log.lost";
  count: number;
  last: number;
}

/** Goes on while the conditions give the expected result. */
export interface Loop {
  kind: "Loop";
  preCondition?: [boolean, Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches];
  postCondition?: [boolean, Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches];
  body: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  maxIterations?: number;
}

/** A condition on a hook's payload: exactly one of `equals` and `matches`. */
export interface Match {
  pointer: string;
  equals?: string | number | boolean;
  matches?: string;
}

export interface Me {
  person: string;
  scopes: string[];
  admin: boolean;
  quotas: Quota[];
  tokens: OwnToken[];
}

/** One host, as lists show it. */
export interface Member {
  id: number;
  name: string;
  place: string;
  state: string;
  sessions?: number;
  running?: number;
  capacity?: number;
  labels?: string[];
  version?: string;
  url?: string;
  seen?: number;
  here?: boolean;
}

/** Merge the worktrees of the lanes at the path of this step into the folder around them, in their order. */
export interface MergeDo {
  kind: "merge";
  how?: "agent" | "ask" | "fail";
  task?: string;
}

/** What a person (or a job, or another agent) says to an agent. */
export interface Message {
  text: string;
  attachments?: Record<string, unknown>[];
  model?: string;
  origin?: string;
  meta?: Record<string, unknown>;
  model_config?: Record<string, unknown>;
}

/** Due times that got no run. */
export interface MissedTimes {
  count: number;
  first: number;
  last: number;
  reason: string;
  more?: boolean;
}

/** Judges answer a condition with the boolean tools, each in a session of its own; `quorum` of them say yes. */
export interface ModelCheck {
  condition: string[];
  judges?: EntryModel[];
  quorum?: number;
}

export interface MoveChatBody {
  to?: string;
  after?: string;
}

/** The connections of one turn, or of an `http` step of a job, to one host. A turn has one for */
export interface NetworkReached {
  type: "network.reached";
  turn: string;
  host: string;
  port: number;
  count?: number;
  refused?: number;
  sent?: number;
  received?: number;
  first?: number;
  last?: number;
  allowed_by?: string[];
  refused_by?: string[];
}

/** The hosts that a session or a job connected to, or tried to. */
export interface NetworkUse {
  hosts?: HostUse[];
}

export interface Notice {
  kind: "approval" | "automation_done" | "automation_failed" | "budget" | "job_done" | "job_failed" | "question" | "turn_done" | "turn_failed" | "test";
  text: string;
  time: number;
  session?: string;
  title?: string;
  agent?: string;
  folder?: string;
  job?: string;
  automation?: string;
  run?: string;
  ask?: string;
  link?: string;
}

export interface NoticeList {
  notices: Delivery[];
}

export interface NoticeNamed {
  notice: string;
}

export interface Offered {
  steered: boolean;
}

export interface OpenTerminalBody {
  cwd?: string;
  session?: string;
  title?: string;
  cols?: number;
  rows?: number;
}

/** One of the answers an approval offers. `grant` is what choosing it remembers. */
export interface Option {
  id: string;
  label: string;
  allow: boolean;
  grant?: "once" | "project" | "session";
}

/** Where a child session comes from. */
export interface Origin {
  kind: "agent" | "fork" | "side";
  session: string;
  turn?: string;
  call?: string;
  selection?: Record<string, unknown>;
  uri?: string;
}

/** What a task leaves for later prompts: its last answer as `$name`, or the JSON in it, which has to fit. */
export interface Output {
  name: string;
  schema?: Record<string, unknown>;
}

/** Of a workflow: the same steps for every item. */
export interface Over {
  kind: "Over";
  id: string;
  each: unknown;
  item?: string;
  name?: string;
  parallel?: number;
  atOnce?: boolean;
  folder?: "shared" | "worktree";
  merge?: FlowStep;
  body: Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches;
  mayFail?: boolean;
}

/** The changes that a session made itself, if other sessions work in the same folder. */
export interface OwnChanges {
  shared?: boolean;
  files?: string[];
}

export interface OwnToken {
  name: string;
  scopes: string[];
  created: number;
  expires?: number;
  used?: number;
  login?: boolean;
  tools?: string[];
}

export interface OwnTokenMade {
  name: string;
  scopes: string[];
  created: number;
  expires?: number;
  used?: number;
  login?: boolean;
  tools?: string[];
  token: string;
}

export interface PairDeviceBody {
  scopes?: string[];
}

export interface PairingCode {
  code: string;
  url: string;
  expires: number;
  scopes: string[];
  qr: string[];
  note?: string;
}

/** All at once, or at most `concurrency` at a time; succeeds if all do. */
export interface Par {
  kind: "Par";
  works: (Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches)[];
  concurrency?: number;
}

export interface PartDelta {
  type: "part.delta";
  turn: string;
  part: string;
  text: string;
}

/** Comes again for a part whose text turns out to be another: the last one counts. */
export interface PartEnded {
  type: "part.ended";
  turn: string;
  part: string;
  text: string;
  replaces?: number;
}

export interface PartStarted {
  type: "part.started";
  turn: string;
  part: string;
  kind: "notice" | "reasoning" | "text";
}

export interface PastAnswer {
  id: string;
  session: string;
  title: string;
  text: string;
  time: number;
  by: string;
  allowed?: boolean;
  question?: boolean;
  grant?: string;
  covers?: string[];
  tool?: string;
  cwd?: string;
}

export interface PastAnswers {
  answers: PastAnswer[];
  rules: number;
}

export interface PauseAutomationBody {
  reason?: string;
}

/** Something that waits for a person, with all that the answer needs. */
export interface PendingRequest {
  id: string;
  session: string;
  title: string;
  agent: string;
  cwd: string;
  turn: string;
  since: number;
  text: string;
  by?: string;
  call?: CallPart;
  approval?: Approval;
  question?: QuestionPart;
}

export interface PendingState {
  id: string;
  kind: "queue" | "steer";
  message: Message;
  by: string;
}

/** A person looks at what was done and says yes. */
export interface PersonCheck {
  question: string[];
  people?: string[];
  expires?: number;
  onExpiry?: "fail" | "pass";
}

export interface PersonList {
  people: PersonShown[];
}

export interface PersonShown {
  name: string;
  scopes: string[];
  created: number;
  login: string;
  quotas: Quota[];
}

export interface PinSessionBody {
  pinned?: boolean;
}

export interface PlanRetryBody {
  step?: string;
  workflow?: string;
}

export interface PlanWorkflowBody {
  name: string;
  cwd?: string;
  text?: string;
  inputs?: Record<string, unknown>;
}

export interface Planned {
  session: string;
  action: "archive" | "delete";
  owner: string;
  title: string;
  cwd: string;
  idle_days: number;
}

export interface PlannedJob {
  job: string;
  about: string;
  inputs: Record<string, unknown>;
  folder: string;
  branch: string;
  budget: Record<string, unknown>;
  agents: Record<string, number>;
  asks: string[];
  secrets: string[];
  timeout: number | null;
  steps: PlannedStep[];
}

export interface PlannedStep {
  id: string;
  name: string;
  kind: string;
  inside?: string[];
  text?: string;
  agent?: string;
  asks?: boolean;
  session?: string;
  at?: string;
  checks?: number;
  secrets?: string[];
  sandbox?: unknown;
  timeout?: number;
}

/** The plan of a workflow, or its mistakes. */
export interface PlannedWorkflow {
  name: string;
  text: string;
  inputs?: Record<string, JobInput>;
  chart?: ChartGraph;
  plan?: PlannedJob;
  missing?: string;
  mistakes?: FileProblem[];
}

/** A message to an agent, in a separate session. */
export interface PromptAction {
  text: string;
  agent?: string;
  model?: string;
  cwd?: string;
  title?: string;
  config?: Record<string, unknown>;
  worktree?: boolean;
  base?: string;
  model_config?: Record<string, unknown>;
  place?: string;
  label?: string;
}

/** An agent's turn. */
export interface PromptDo {
  kind: "prompt";
  task: string;
  session?: string;
  same?: boolean;
}

export interface PushList {
  key: string;
  subscriptions: PushShown[];
}

export interface PushNamed {
  push: string;
}

export interface PushShown {
  push: string;
  device: string;
  by: string;
  created: number;
  kinds?: ("approval" | "automation_done" | "automation_failed" | "budget" | "job_done" | "job_failed" | "question" | "turn_done" | "turn_failed")[];
  sessions?: string;
  quiet?: string;
}

export interface QuestionAnswered {
  type: "question.answered";
  turn: string;
  question: string;
  response: "accept" | "cancel" | "decline";
  by: string;
  answers?: Record<string, unknown>;
}

export interface QuestionAsked {
  type: "question.asked";
  turn: string;
  question: string;
  text: string;
  fields?: Record<string, unknown>[];
  url?: string;
  people?: string[];
  evidence?: Record<string, unknown>[];
  expires?: number;
  stays?: boolean;
}

export interface QuestionDrafted {
  type: "question.drafted";
  turn: string;
  question: string;
  field: string;
  by: string;
  answer?: Record<string, unknown>;
}

export interface QuestionPart {
  part: "question";
  id: string;
  text: string;
  fields?: Record<string, unknown>[];
  url?: string;
  answers?: Record<string, unknown>;
  response?: "accept" | "cancel" | "decline";
  by?: string;
  people?: string[];
  evidence?: Record<string, unknown>[];
  expires?: number;
  stays?: boolean;
}

export interface QueueAdded {
  type: "queue.added";
  pending: string;
  kind: "queue" | "steer";
  message: Message;
  by: string;
}

export interface QueueEdited {
  type: "queue.edited";
  pending: string;
  message: Message;
  by: string;
  kind?: "queue" | "steer";
}

/** After a crash the queue waits for a person; any message, resume or `release` releases it. */
export interface QueueHeld {
  type: "queue.held";
  held: boolean;
  by: string;
}

/** `steered`: the running agent took it; `removed`: a person did. A queued message that becomes a turn */
export interface QueueRemoved {
  type: "queue.removed";
  pending: string;
  by: string;
  reason?: "removed" | "steered";
  kind?: "queue" | "steer";
}

export interface QueueReordered {
  type: "queue.reordered";
  order: string[];
  by: string;
}

export interface QueueShown {
  queue: PendingState[];
  held: boolean;
}

export interface QueuedAnswer {
  queued: boolean;
  pending: string;
  position: number;
}

export interface Quota {
  name: string;
  used: number;
  bound: number;
}

export interface Recipe {
  name: string;
  about?: string;
  steps?: number;
  inputs?: Record<string, JobInput>;
  mistake?: string;
  text: string;
}

export interface RecipesAnswer {
  recipes: Recipe[];
}

/** Runs one task. The id is given by validation: -1 means not numbered yet. */
export interface Ref {
  kind: "Ref";
  workIdInJob?: number;
  taskId: string;
  modelOverride?: EntryModel;
}

export interface ReorderQueueBody {
  order: string[];
}

export interface ResizeTerminalBody {
  cols: number;
  rows: number;
}

/** A resource for which an agent needs a token, in the terms of RFC 9728. */
export interface ResourceAnswer {
  resource: string;
  name?: string;
  servers?: string[];
  scopes?: string[];
  documentation?: string;
  required?: boolean;
  state?: "expired" | "given" | "required";
}

export interface RestoreChangesBody {
  undo: string;
  paths: string[];
}

export interface ResumeTurnBody {
  turn?: string;
}

export interface RetentionDone {
  dry_run: boolean;
  sessions: Planned[];
}

/** How often a step is tried again, and after which wait. */
export interface Retry {
  times?: number;
  wait?: number;
  backoff?: number;
  most?: number;
  on?: ("agent" | "check" | "run")[];
}

export interface RetryJobBody {
  step?: string;
  workflow?: string;
}

/** What a retry would run. */
export interface RetryPlanned {
  text: string;
  differences: string;
  kept: string[];
}

export interface RunAutomationBody {
  input?: string;
  at?: string;
}

/** On `run/ID`, before anything starts. Carries what is started: the plan may change later. */
export interface RunClaimed {
  type: "run.claimed";
  run: string;
  automation: string;
  name: string;
  cause: "after" | "files" | "hook" | "person" | "schedule";
  due: number;
  by: string;
  job?: JobAction;
  prompt?: PromptAction;
  scopes?: string[];
  late?: boolean;
  depth?: number;
  ref?: string;
  delivery?: string;
  author?: string;
  budget?: Budget;
  payload?: unknown;
}

/** A command. */
export interface RunDo {
  kind: "run";
  command: string | string[];
  exit?: number[];
  stdin?: string;
}

export interface RunEnded {
  type: "run.ended";
  outcome: "canceled" | "failed" | "interrupted" | "succeeded";
  error?: string;
  input?: number;
  output?: number;
  cost?: number;
  estimated?: boolean;
  by?: string;
}

export interface RunNamed {
  run: string;
}

/** Together with `run.claimed`, in one commit: this due time, delivery or cause has its run. */
export interface RunReserved {
  type: "automation.run.claimed";
  run: string;
  cause: "after" | "files" | "hook" | "person" | "schedule";
  due: number;
  ref?: string;
}

/** Together with `run.ended` or `run.skipped`. */
export interface RunSettled {
  type: "automation.run.ended";
  run: string;
  outcome: "canceled" | "failed" | "interrupted" | "skipped" | "succeeded";
}

export interface RunSkipped {
  type: "run.skipped";
  reason: string;
}

export interface RunStarted {
  type: "run.started";
  session?: string;
  turn?: string;
  job?: string;
}

export interface RunSummary {
  id: string;
  automation: string;
  name: string;
  cause: "after" | "files" | "hook" | "person" | "schedule";
  due: number;
  claimed: number;
  by: string;
  status?: "canceled" | "failed" | "interrupted" | "pending" | "running" | "skipped" | "succeeded";
  started?: number;
  ended?: number;
  reason?: string;
  session?: string;
  turn?: string;
  job?: string;
  input?: number;
  output?: number;
  cost?: number;
  estimated?: boolean;
  late?: boolean;
  depth?: number;
  ref?: string;
  delivery?: string;
  pos?: number;
}

/** Due times that got no run. */
export interface RunsMissed {
  type: "automation.missed";
  count: number;
  first: number;
  last: number;
  reason: string;
  more?: boolean;
}

/** The sandboxes that can be chosen for a session or in a folder. */
export interface SandboxChoice {
  mode: "off" | "project" | "strict";
  modes: SandboxMode[];
  remembered?: string;
  required?: boolean;
  problem?: string;
}

/** The sandbox of conversations that are started in a folder from now on. */
export interface SandboxChosen {
  type: "sandbox.chosen";
  folder: string;
  mode: string;
  by: string;
}

/** Confined programs can write to a folder from now on. git of the host runs in a sandbox there. */
export interface SandboxEntered {
  type: "sandbox.entered";
  folder: string;
  git?: string[];
}

/** One choice, with the texts that forms show. */
export interface SandboxMode {
  id: "off" | "project" | "strict";
  name: string;
  description: string;
}

export interface SaveWorkflowBody {
  cwd: string;
  name: string;
  text: string;
  replace?: boolean;
}

export interface SavedWorkflow {
  name: string;
  file: string;
}

/** When: exactly one of `cron`, `every` and `at`. */
export interface Schedule {
  cron?: string;
  every?: string;
  at?: string;
  zone?: string;
}

/** A JSON file below the working directory, or the JSON in the agent's last answer, fits the JSON Schema. */
export interface SchemaCheck {
  schema: Record<string, unknown>;
  file?: string;
}

export interface SearchHits {
  hits: Hit[];
  complete: boolean;
}

/** A secret as it is listed: never its value. */
export interface Secret {
  name: string;
  place: "credential" | "file" | "keyring";
  changed?: number;
}

export interface SecretList {
  secrets: Secret[];
}

export interface SecretNamed {
  name: string;
  changed: number;
}

export interface SendMessageBody {
  text: string;
  attachments?: Record<string, unknown>[];
  model?: string;
  busy?: "queue" | "refuse" | "steer";
}

/** One after the other; the first failure ends it. */
export interface Seq {
  kind: "Seq";
  works: (Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches)[];
}

export interface SessionArchived {
  type: "session.archived";
  archived: boolean;
  by: string;
  only?: "chat" | "session";
}

export interface SessionClosed {
  type: "session.closed";
  by: string;
  reason?: string;
}

export interface SessionConfigured {
  type: "session.configured";
  values: Record<string, unknown>;
  by: string;
  replace?: boolean;
  keeps?: string[];
}

export interface SessionList {
  sessions: Summary[];
  total: number;
}

/** The catalogue has a new session; its own story is on its own channel. */
export interface SessionListed {
  type: "session.listed";
  session: string;
  agent: string;
  cwd: string;
  parent?: string;
}

export interface SessionModel {
  type: "session.model";
  model: string;
  by: string;
  agent?: string;
  reason?: string;
  config?: Record<string, unknown>;
}

export interface SessionPinned {
  type: "session.pinned";
  pinned: boolean;
  by: string;
}

export interface SessionRead {
  type: "session.read";
  read: boolean;
  by: string;
  only?: "chat" | "session";
}

/** A session as an attachment of a message in another one. */
export interface SessionReference {
  resource: string;
  label: string;
  modelRepresentation: string;
  type?: "chat";
}

/** A session and its history were deleted. Its id is never used again. */
export interface SessionRemoved {
  type: "session.removed";
  session: string;
  by: string;
}

export interface SessionRenamed {
  type: "session.renamed";
  title: string;
  by: string;
}

export interface SessionReopened {
  type: "session.reopened";
  by: string;
}

/** These are the rights of that person from now on; without any, it is not shared with them any more. */
export interface SessionShared {
  type: "session.shared";
  person: string;
  by: string;
  rights?: ("approve" | "drive" | "read")[];
}

export interface SessionStarted {
  type: "session.started";
  session: string;
  agent: string;
  model: string;
  cwd: string;
  by: string;
  title?: string;
  uri?: string;
  parent?: string;
  origin?: Origin;
  config?: Record<string, unknown>;
  worktree?: Record<string, unknown>;
  folders?: string[];
  model_config?: Record<string, unknown>;
  draft?: boolean;
  owner?: string;
}

export interface SessionState {
  id: string;
  agent?: string;
  model?: string;
  model_config?: Record<string, unknown>;
  cwd?: string;
  title?: string;
  named?: boolean;
  uri?: string;
  parent?: string;
  promoted?: boolean;
  origin?: Origin;
  config?: Record<string, unknown>;
  worktree?: Record<string, unknown>;
  folders?: string[];
  chosen?: string[];
  vendor?: string;
  by?: string;
  owner?: string;
  shares?: Record<string, ("approve" | "drive" | "read")[]>;
  created?: number;
  modified?: number;
  moved?: number;
  archived?: boolean;
  draft?: boolean;
  begun?: number;
  read?: boolean;
  chat_flags?: Record<string, boolean>;
  closed?: boolean;
  held?: boolean;
  turns?: TurnState[];
  queue?: PendingState[];
  clients?: ClientState[];
  chat_order?: string[];
  client_names?: Record<string, string>;
  children?: string[];
  kept?: Record<string, Record<string, unknown>>;
  rewound?: boolean;
  usage?: Usage;
  ids?: number;
  features?: Record<string, unknown>;
  unknown?: string[];
  pos?: number;
}

/** History after `turn` (everything, when absent) is forgotten by the conversation; the log keeps it. */
export interface SessionTruncated {
  type: "session.truncated";
  by: string;
  turn?: string;
}

/** The agent's own id of this conversation, written as soon as it is known. */
export interface SessionVendor {
  type: "session.vendor";
  id: string;
}

export interface SetDraftBody {
  text: string;
  typed?: boolean;
}

export interface SetSecretBody {
  value: string;
}

export interface SetServersBody {
  servers: ClientServer[];
}

export interface SetSettingBody {
  key: string;
  value?: unknown;
}

export interface SettingList {
  path: string;
  settings: SettingShown[];
}

export interface SettingSaved {
  key: string;
  value: unknown;
  origin: string;
  restart: boolean;
}

export interface SettingShown {
  key: string;
  value: unknown;
  default: unknown;
  origin: string;
  about: string;
  form: "boolean" | "choice" | "list" | "number" | "table" | "text";
  choices: string[];
  editable: boolean;
  restart: boolean;
}

export interface ShareSessionBody {
  person: string;
  rights?: ("approve" | "drive" | "read")[];
}

/** A running call needs somebody's token for the server that its tool belongs to. */
export interface SignInAsked {
  type: "sign_in.asked";
  turn: string;
  call: string;
  resource: Record<string, unknown>;
  reason?: "expired" | "insufficient_scope" | "required";
  scopes?: string[];
}

/** The call goes on with a token, or fails without. */
export interface SignInSettled {
  type: "sign_in.settled";
  turn: string;
  call: string;
  given: boolean;
  by: string;
}

export interface StartJobBody {
  job: string;
  cwd: string;
  input?: string;
  entry?: Record<string, unknown>;
  place?: string;
  label?: string;
  inputs?: Record<string, unknown>;
  trigger?: Record<string, unknown>;
  workflow?: string;
}

export interface StartSessionBody {
  agent?: string;
  model?: string;
  cwd?: string;
  title?: string;
  config?: Record<string, unknown>;
  worktree?: boolean | Isolation;
  folders?: string[];
  draft?: boolean;
  place?: string;
  label?: string;
}

export interface SteeredAnswer {
  steered: boolean;
  queued: boolean;
}

/** A step of an agent that reports steps; see `turn.step`. */
export interface StepState {
  step: number;
  model?: string;
  parts?: number;
  blob?: string;
}

/** Where a turn stopped before it was resumed: the number of parts, and the reason. */
export interface Stop {
  parts: number;
  error: ErrorInfo;
}

export interface SubscribePushBody {
  endpoint: string;
  p256dh: string;
  auth: string;
  device?: string;
  kinds?: string[];
  sessions?: string;
  quiet?: string;
  zone?: string;
}

export interface Suggestion {
  text: string;
  about?: string;
  session?: string;
}

export interface Suggestions {
  items: Suggestion[];
}

/** What a list shows; in memory for every session, stored with its channel. */
export interface Summary {
  id: string;
  agent: string;
  model: string;
  cwd: string;
  title: string;
  status: "failed" | "idle" | "running" | "waiting";
  created: number;
  modified: number;
  pos: number;
  by?: string;
  turns?: number;
  queued?: number;
  uri?: string;
  parent?: string;
  promoted?: boolean;
  origin?: Origin;
  archived?: boolean;
  draft?: boolean;
  read?: boolean;
  chat_flags?: Record<string, boolean>;
  closed?: boolean;
  usage?: Usage;
  changes?: Record<string, unknown>;
  folders?: string[];
  chosen?: string[];
  model_config?: Record<string, unknown>;
  chat_order?: string[];
  moved?: number;
  interrupted?: boolean;
  error?: string;
  owner?: string;
  shares?: Record<string, ("approve" | "drive" | "read")[]>;
  stopped?: string;
  features?: Record<string, unknown>;
  vendor?: string;
}

/** One prompt for one model, with what must hold before and after. */
export interface Task {
  model?: EntryModel;
  fallback?: EntryModel[];
  prompt: string[];
  requireUserInput?: boolean;
  availability?: Availability;
  criteria?: Criteria;
  output?: Output;
  onInterrupt?: "ask" | "fail" | "retry";
  timeout?: number;
  label?: string;
  sandbox?: "off" | "project" | "strict";
}

export interface TaskDecided {
  type: "task.decided";
  reason: string;
  passed?: boolean;
  exit_code?: number;
  evidence?: string;
  check?: string;
  output?: string;
}

export interface TaskEnded {
  type: "task.ended";
  task: string;
  outcome: "failed" | "interrupted" | "stopped" | "succeeded";
  error?: string;
}

/** The work is about to be sent to that session, which had so many turns of this task. After a restart the turn */
export interface TaskPrompted {
  type: "task.prompted";
  session: string;
  prompts: number;
  retry?: number;
  values?: Record<string, string>;
}

export interface TaskSessionEnded {
  type: "task.session.ended";
  session: string;
  succeeded: boolean;
}

export interface TaskSessionStarted {
  type: "task.session.started";
  session: string;
  model: string;
  driving: boolean;
}

/** On `task/ID`. Its prompts are turns of ordinary sessions, sent by `task:ID`. */
export interface TaskStarted {
  type: "task.started";
  task: string;
  name: string;
  model: string;
  by: string;
  input?: string;
  job?: string;
  path?: string;
  attempt?: number;
  session?: string;
  owner?: string;
}

export interface TerminalClaimed {
  type: "terminal.claimed";
  claim: Record<string, unknown>;
  by: string;
  session?: string;
}

export interface TerminalCleared {
  type: "terminal.cleared";
  by: string;
}

/** The shell began to run a line. */
export interface TerminalCommand {
  type: "terminal.command";
  command: string;
  line: string;
}

export interface TerminalCommandEnded {
  type: "terminal.command_ended";
  command: string;
  code?: number;
  milliseconds?: number;
}

/** What the terminal shows, without the shell's own signs. `turn` is empty, `part` is the terminal's id. */
export interface TerminalData {
  type: "terminal.data";
  turn: string;
  part: string;
  text: string;
}

/** The shell reports its commands from now on. */
export interface TerminalDetects {
  type: "terminal.detects";
}

export interface TerminalExited {
  type: "terminal.exited";
  code?: number;
}

/** What a list shows. */
export interface TerminalInfo {
  id: string;
  title: string;
  cwd: string;
  cols: number;
  rows: number;
  pos: number;
  session?: string;
  held?: boolean;
  exited?: boolean;
  code?: number;
}

/** How to continue a session in the agent's own program. */
export interface TerminalLine {
  agent: string;
  native: string;
  command: string;
}

export interface TerminalList {
  terminals: TerminalInfo[];
}

export interface TerminalMoved {
  type: "terminal.moved";
  cwd: string;
}

export interface TerminalRemoved {
  type: "terminal.removed";
  by: string;
}

export interface TerminalResized {
  type: "terminal.resized";
  cols: number;
  rows: number;
  by: string;
}

/** And what it has shown so far, as the program wrote it: escape sequences included. */
export interface TerminalScreen {
  id: string;
  title: string;
  cwd: string;
  cols: number;
  rows: number;
  pos: number;
  session?: string;
  held?: boolean;
  exited?: boolean;
  code?: number;
  shown?: string;
}

/** What the terminal shows up to the position `upto`, as much as its scrollback holds: written before old output is */
export interface TerminalShown {
  type: "terminal.shown";
  upto: number;
  text: string;
  part?: string;
}

export interface TerminalStarted {
  type: "terminal.started";
  terminal: string;
  title: string;
  cwd: string;
  claim: Record<string, unknown>;
  by: string;
  cols?: number;
  rows?: number;
  uri?: string;
  session?: string;
  command?: string[];
  owner?: string;
}

export interface TerminalTitled {
  type: "terminal.titled";
  title: string;
  by: string;
}

export interface TestNoticeBody {
  target: string;
}

export interface TextPart {
  part: "text";
  id: string;
  kind: "notice" | "reasoning" | "text";
  text?: string;
  done?: boolean;
  started?: number;
  took?: number;
}

export interface TokenList {
  tokens: TokenShown[];
}

export interface TokenMade {
  name: string;
  scopes: string[];
  created: number;
  token: string;
  expires?: number;
  tools?: string[];
}

export interface TokenShown {
  name: string;
  scopes: string[];
  created: number;
  expires?: number;
  used?: number;
  tools?: string[];
  device?: string;
}

/** Replaces the structured content of a running call (diffs, terminals, sub-agents). */
export interface ToolContent {
  type: "tool.content";
  turn: string;
  call: string;
  content: Record<string, unknown>[];
  by?: string;
}

/** Nobody was asked: a policy or a grant decided, and this is the rule. */
export interface ToolDecided {
  type: "tool.decided";
  turn: string;
  call: string;
  allowed: boolean;
  by: string;
  rule: string;
}

export interface ToolEnded {
  type: "tool.ended";
  turn: string;
  call: string;
  ok: boolean;
  output?: string;
  blob?: string;
  content?: Record<string, unknown>[];
  error?: ErrorInfo;
  title?: string;
  detail?: string;
  outcome?: "cancelled" | "completed" | "failed" | "interrupted";
  by?: string;
  result?: Record<string, unknown>;
  exit_code?: number;
}

/** `part` is the call's id. */
export interface ToolInput {
  type: "tool.input";
  turn: string;
  part: string;
  text: string;
}

/** `part` is the call's id. */
export interface ToolOutput {
  type: "tool.output";
  turn: string;
  part: string;
  text: string;
}

/** The input is complete. What happens next is an approval, a decision or the run. */
export interface ToolReady {
  type: "tool.ready";
  turn: string;
  call: string;
  input: string;
  title?: string;
}

/** A tool as an agent sees it. */
export interface ToolSpec {
  name: string;
  description?: string;
  schema?: Record<string, unknown>;
  title?: string;
}

export interface ToolStarted {
  type: "tool.started";
  turn: string;
  call: string;
  tool: string;
  title?: string;
  kind?: string;
  owner?: string;
  parent?: string;
  meta?: Record<string, unknown>;
  server?: string;
}

/** One of several triggers: exactly one of these. */
export interface Trigger {
  schedule?: Schedule;
  hook?: Hook;
  files?: FilesTrigger;
  after?: After;
}

export interface TruncateSessionBody {
  turn?: string;
}

export interface TurnBegun {
  turn: string;
}

export interface TurnEnded {
  type: "turn.ended";
  turn: string;
  outcome: "cancelled" | "completed" | "failed" | "interrupted";
  error?: ErrorInfo;
  by?: string;
  stop?: string;
}

/** The last turn failed or was interrupted; it goes on, keeping its parts. */
export interface TurnResumed {
  type: "turn.resumed";
  turn: string;
  by: string;
}

export interface TurnStarted {
  type: "turn.started";
  turn: string;
  message: Message;
  by: string;
  pending?: string;
}

export interface TurnState {
  id: string;
  message: Message;
  by: string;
  started: number;
  pos: number;
  parts?: (TextPart | CallPart | QuestionPart)[];
  usage?: Usage;
  ended?: number;
  outcome?: "cancelled" | "completed" | "failed" | "interrupted";
  error?: ErrorInfo;
  resumes?: number;
  stops?: Stop[];
  steps?: StepState[];
  corrections?: Record<string, number>;
  asked?: number;
  waited?: number;
  stopped_by?: string;
}

/** An agent that works in steps asks its model for the next one. The same number again: another model answers, or */
export interface TurnStep {
  type: "turn.step";
  turn: string;
  step: number;
  model?: string;
  blob?: string;
}

export interface TypeInputBody {
  data: string;
}

/** An exhausted budget whose question no turn shows any more: the turn that reached it has ended. */
export interface UnansweredBudget {
  budget: string;
  text: string;
  options: string[];
  session: string;
  since: number;
}

export interface Uncommitted {
  git: boolean;
  state?: string;
  files?: FileChange[];
  cut?: boolean;
}

/** Here was an event that the disk has damaged: one gap, in its place, for every reader alike. */
export interface Unreadable {
  type: "unreadable";
  reason: "checksum" | "page";
}

export interface UnshareSessionBody {
  person: string;
}

export interface Usage {
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  model?: string;
}

/** `GET /v1/usage`. */
export interface UsageAnswer {
  rows?: UsageRow[];
  sums?: UsageSum[];
  prices?: string;
  prices_date?: string;
  priced_as?: Record<string, string>;
}

/** Adds to the turn's usage, except `total`: a report that replaces what was reported before. */
export interface UsageReported {
  type: "usage";
  turn: string;
  model?: string;
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  total?: boolean;
}

/** One session on one day. */
export interface UsageRow {
  day: string;
  session: string;
  title: string;
  agent: string;
  model: string;
  by?: string;
  job?: string;
  automation?: string;
  person?: string;
  turns?: number;
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  estimated?: number;
  unpriced?: number;
}

export interface UsageSum {
  key: Record<string, string>;
  sessions?: number;
  turns?: number;
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  estimated?: number;
  unpriced?: number;
}

/** Waits so long, until then, or for somebody to call the hook. */
export interface Wait {
  kind: "Wait";
  workIdInJob?: number;
  seconds?: number;
  until?: string;
  hook?: string;
}

/** A wait: for a time, until a time, or for a hook. */
export interface WaitDo {
  kind: "wait";
  seconds?: number | string;
  until?: string;
  hook?: string;
}

/** An approval or a question that waits for a person. */
export interface Waiting {
  id: string;
  kind: "approval" | "question";
  text: string;
}

/** A job that waits until a person resumes it (`onInterrupt: ask`): `POST /v1/jobs/{id}/resume`, or stop it. */
export interface WaitingJob {
  job: string;
  name: string;
  cwd: string;
  reason: string;
  started: number;
}

export interface WorkEnded {
  type: "work.ended";
  path: string;
  work: number;
  task: string;
  outcome: "crashed" | "failed" | "interrupted" | "stopped" | "succeeded";
  error?: string;
}

export interface WorkStarted {
  type: "work.started";
  path: string;
  work: number;
  task: string;
  attempt?: number;
}

export interface WorkSummary {
  work: number;
  name: string;
  task: string;
  status: "failed" | "running" | "stopped" | "succeeded";
  started: number;
  ended?: number;
  runs?: number;
}

/** What the agent has written so far. */
export interface WorkflowDraft {
  running: boolean;
  answers?: number;
  found?: PlannedWorkflow;
  next?: string;
  error?: string;
}

/** A workflow of a folder, or a recipe. */
export interface WorkflowInfo {
  name: string;
  about?: string;
  steps?: number;
  inputs?: Record<string, JobInput>;
  mistake?: string;
}

export interface WorkflowsAnswer {
  workflows: WorkflowInfo[];
}

