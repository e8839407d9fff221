"""Prometheus counters of committed events: turns, tokens, cost, pending approvals, jobs and commit latency. Failed
turns are also logged."""

import logging
from collections import Counter

from portico.agents.supervisor import STARTS
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.commits import BUCKETS
from portico.kernel.correlation import SESSION, TURN
from portico.kernel.events import Record
from portico.kernel.host import Host

logger = logging.getLogger("portico.turns")

Metric = tuple[str, str, str, dict[str, float]]
"""Name, kind, help, and the value by label."""

_COUNTED: tuple[type[e.Event], ...] = (
    e.UsageReported,
    e.TurnEnded,
    e.ToolEnded,
    e.ApprovalAsked,
    e.ApprovalAnswered,
    je.JobStarted,
    je.JobEnded,
)


class Meter:
    """Counters since the start of this process."""

    def __init__(self, host: Host) -> None:
        self._turns: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._cost = 0.0
        self._totals: dict[str, tuple[int, int, int, float]] = {}
        self._waiting: dict[str, str] = {}
        self._approvals: Counter[str] = Counter()
        self._jobs: Counter[str] = Counter()
        self._jobs_running: set[str] = set()
        self._commits = host.commits
        host.commits.on("metrics", self._event, *_COUNTED)

    def _event(self, record: Record) -> None:
        match record.event:
            case e.UsageReported() as usage:
                self._usage(f"{record.channel} {usage.turn}", usage)
            case e.TurnEnded(turn=turn, outcome=outcome, error=error):
                self._turns[outcome] += 1
                if outcome == "failed" and error is not None:
                    _log_failure(record.channel, turn, error.code)
                self._totals.pop(f"{record.channel} {turn}", None)
                self._waiting = {each: of for each, of in self._waiting.items() if of != f"{record.channel} {turn}"}
            case e.ToolEnded(ok=ok):
                self._tools["true" if ok else "false"] += 1
            case e.ApprovalAsked(approval=approval, turn=turn):
                self._waiting[approval] = f"{record.channel} {turn}"
            case e.ApprovalAnswered(approval=approval, allowed=allowed, by=by, option=option):
                self._waiting.pop(approval, None)
                if option is not None:  # None: withdrawn at the end of the turn
                    self._approvals["timeout" if by == "timeout" else "allowed" if allowed else "denied"] += 1
            case je.JobStarted(job=job):
                self._jobs_running.add(job)
            case je.JobEnded(outcome=outcome):
                self._jobs_running.discard(record.channel.partition("/")[2])
                self._jobs[outcome] += 1

    def _usage(self, key: str, usage: e.UsageReported) -> None:
        """Add the increase in usage. Some agents report increments and some the total so far."""
        told = (usage.input, usage.output, usage.cached, usage.cost)
        before = self._totals.get(key, (0, 0, 0, 0.0)) if usage.total else (0, 0, 0, 0.0)
        if usage.total:
            self._totals[key] = told
        for kind, now, then in zip(("input", "output", "cached"), told[:3], before[:3], strict=True):
            self._tokens[kind] += max(0, int(now - then))
        self._cost += max(0.0, told[3] - before[3])

    def metrics(self) -> list[Metric]:
        heap, latency = 0, {}
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self._commits.latency, strict=True):
            heap += count
            latency[f'le="{bound}"'] = float(heap)
        return [
            ("portico_turns_total", "counter", "Ended turns by outcome.", _labelled("outcome", self._turns)),
            ("portico_tool_calls_total", "counter", "Ended tool calls.", _labelled("ok", self._tools)),
            ("portico_tokens_total", "counter", "Tokens; cached are a part of input.", _labelled("kind", self._tokens)),
            ("portico_cost_total", "counter", "Cost, in the agents' own units.", {"": self._cost}),
            ("portico_approvals_waiting", "gauge", "Approvals that wait for a person.", {"": len(self._waiting)}),
            ("portico_approvals_total", "counter", "Answered approvals.", _labelled("answer", self._approvals)),
            ("portico_jobs_running", "gauge", "Jobs that run now.", {"": len(self._jobs_running)}),
            ("portico_jobs_total", "counter", "Ended jobs by outcome.", _labelled("outcome", self._jobs)),
            ("portico_agent_starts_total", "counter", "Started agent processes.", _labelled("agent", STARTS)),
            ("portico_commit_seconds_bucket", "counter", "From the first event of a batch to its commit.", latency),
            ("portico_commit_seconds_sum", "counter", "All of them together.", {"": self._commits.latency_sum}),
            ("portico_commit_seconds_count", "counter", "How many.", {"": heap}),
        ]


def _log_failure(channel: str, turn: str, code: str) -> None:
    """Log only the error code: the message of an agent may quote user text."""
    kept = SESSION.set(channel.partition("/")[2]), TURN.set(turn)
    logger.warning("a turn failed: %s", code)
    SESSION.reset(kept[0])
    TURN.reset(kept[1])


def _labelled(label: str, counts: "Counter[str]") -> dict[str, float]:
    return {f'{label}="{_value(name)}"': count for name, count in sorted(counts.items())}


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
