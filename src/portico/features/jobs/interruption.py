"""What the kind of a work means when its host ends in the middle of it."""

from portico.features.jobs.entry import Entry, Leaf, OnInterrupt, Ref, Wait, Work, leaves_of
from portico.features.jobs.step import AskDo, FlowStep, WaitDo


def on_interrupt(entry: Entry, leaf: Leaf) -> OnInterrupt:
    if isinstance(leaf, Ref):
        return entry.tasks[leaf.task_id].on_interrupt
    return leaf.on_interrupt if isinstance(leaf, FlowStep) else "retry"


def may_crash(leaf: Leaf) -> bool:
    """Questions and waits cannot crash a host, so crashes during them do not count."""
    return isinstance(leaf, Ref) or (isinstance(leaf, FlowStep) and not isinstance(leaf.do, AskDo | WaitDo))


def hooks_of(work: Work) -> list[str]:
    """The names of the hooks that a job waits for."""
    waits = [leaf.do if isinstance(leaf, FlowStep) else leaf for leaf in leaves_of(work)]
    return [each.hook for each in waits if isinstance(each, Wait | WaitDo) and each.hook is not None]
