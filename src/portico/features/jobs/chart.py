"""The flow chart of a job: numbered nodes and arrows, the same for the API, the pages and our own drawing.

`build` also returns the blocks the nodes belong to. A work tree is series-parallel, so a drawing is a short recursion
over blocks and needs no graph search.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

from msgspec import Struct

from portico.features.jobs.entry import (
    Again,
    Alt,
    Ask,
    Branches,
    Each,
    Entry,
    Flowing,
    GridRow,
    If,
    Job,
    Loop,
    Over,
    Par,
    Ref,
    Seq,
    Wait,
    Work,
    name_of,
)
from portico.features.jobs.step import FlowStep

Mark = Literal["ParBegin", "ParEnd", "CondBegin", "CondEnd", "LoopEnd", "AltEnd"]
Hint = tuple[Literal["TaskNode", "CondNode"], int] | Mark


class Arrow(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    to: int
    label: str | None = None
    loop_back: bool


class ChartNode(Struct, kw_only=True, omit_defaults=True):
    id: int
    hint: Hint
    label: str | None = None
    arrows: list[Arrow] | None = None


class ChartGraph(Struct):
    nodes: list[ChartNode]


class JobListing(Struct):
    """What clients see of an entry."""

    grid: list[GridRow]
    jobs: dict[str, Job]
    chart: dict[str, ChartGraph]


class Leaf(NamedTuple):
    node: int

    @property
    def first(self) -> int:
        return self.node

    @property
    def last(self) -> int:
        return self.node


class Series(NamedTuple):
    """One block after the other."""

    parts: list["Block"]

    @property
    def first(self) -> int:
        return self.parts[0].first

    @property
    def last(self) -> int:
        return self.parts[-1].last


class Fork(NamedTuple):
    """From one block through lanes side by side to one end; a lane without a block is only an arrow."""

    begin: "Block"
    lanes: list["Block | None"]
    labels: list[str | None]
    end: int

    @property
    def first(self) -> int:
        return self.begin.first

    @property
    def last(self) -> int:
        return self.end


class Ring(NamedTuple):
    """A loop: what is checked before, the body, what is checked after, and the way out."""

    pre: "Block | None"
    pre_labels: tuple[str, str]
    body: "Block"
    post: "Block | None"
    post_labels: tuple[str, str]
    end: int

    @property
    def first(self) -> int:
        return self.body.first if self.pre is None else self.pre.first

    @property
    def last(self) -> int:
        return self.end


Block = Leaf | Series | Fork | Ring


def generate_chart(work: Work) -> ChartGraph:
    """The chart of a validated work."""
    return build(work)[0]


def job_listing(entry: Entry) -> JobListing:
    """The grid, the jobs and their charts of a validated entry."""
    chart = {name: generate_chart(job.work) for name, job in entry.jobs.items()}
    return JobListing(entry.grid, entry.jobs, chart)


def build(work: Work) -> tuple[ChartGraph, Block]:
    """The chart of a validated work together with its blocks."""
    builder = _Builder()
    block = builder.work(work)
    return ChartGraph(builder.nodes), block


def _labels(expected: bool) -> tuple[str, str]:
    return ("true", "false") if expected else ("false", "true")


class _Builder:
    """Builds the nodes. They are numbered on creation, so the order of the statements below is the order of ids."""

    def __init__(self) -> None:
        self.nodes: list[ChartNode] = []

    def node(self, hint: Hint, label: str | None = None) -> int:
        self.nodes.append(ChartNode(id=len(self.nodes), hint=hint, label=label))
        return len(self.nodes) - 1

    def arrow(self, start: int, to: int, label: str | None = None, *, loop_back: bool = False) -> None:
        node = self.nodes[start]
        node.arrows = [*(node.arrows or ()), Arrow(to=to, label=label, loop_back=loop_back)]

    def work(self, work: Work) -> Block:
        match work:
            case Ref():
                return self.ref(work)
            case Seq():
                return self.series([self.work(child) for child in work.works])
            case Par():
                return self.par(work)
            case Loop():
                return self.loop(work)
            case Alt():
                return self.alt(work)
            case Ask():
                return self.ask(work)
            case Wait():
                return Leaf(self.node(("TaskNode", work.work_id_in_job), name_of(work)))
            case Each():
                return self.each(work)
            case FlowStep():
                return Leaf(self.node(("TaskNode", work.work_id_in_job), name_of(work)))
            case If() | Again() | Over() | Branches():
                return self.flow(work)

    def flow(self, work: Flowing) -> Block:
        match work:
            case If(when=None):
                return self.work(work.then)
            case If():
                condition = Leaf(self.node("CondBegin", work.when))
                lanes = [self.work(work.then), None if work.otherwise is None else self.work(work.otherwise)]
                return self.fork(condition, lanes, ["true", "false"], self.node("AltEnd"))
            case Again():
                return self.again(work)
            case Over():
                begin = self.node("ParBegin")
                lane = self.merged(self.work(work.body), None)
                end = self.fork(Leaf(begin), [lane], [f"each {work.item}"], self.node("ParEnd"))
                return self.merged(end, work.merge)
            case Branches():
                begin = self.node("ParBegin")
                lanes = [self.work(child) for child in work.works]
                end = self.fork(Leaf(begin), lanes, [None] * len(lanes), self.node("ParEnd"))
                return self.merged(end, work.merge)

    def merged(self, block: Block, merge: FlowStep | None) -> Block:
        return block if merge is None else self.series([block, self.work(merge)])

    def again(self, work: Again) -> Ring:
        body = self.work(work.body)
        label = work.until or f"{work.most} rounds"
        post = Leaf(self.node("CondBegin", label))
        end = self.node("LoopEnd")
        self.arrow(body.last, post.first)
        self.arrow(post.last, body.first, "false", loop_back=True)
        self.arrow(post.last, end, "true")
        return Ring(None, _labels(False), body, post, ("false", "true"), end)

    def ask(self, ask: Ask) -> Block:
        question = Leaf(self.node(("CondNode" if ask.choices else "TaskNode", ask.work_id_in_job), name_of(ask)))
        if not ask.choices:
            return question
        lanes = [None if choice.work is None else self.work(choice.work) for choice in ask.choices]
        return self.fork(question, lanes, [choice.label for choice in ask.choices], self.node("AltEnd"))

    def each(self, each: Each) -> Fork:
        begin = self.node("ParBegin")
        body = self.work(each.body)
        label = f"each of {each.files or each.output or 'the items'}"
        return self.fork(Leaf(begin), [body], [label], self.node("ParEnd"))

    def ref(self, ref: Ref) -> Leaf:
        model = f" ({ref.model_override.label})" if ref.model_override else ""
        return Leaf(self.node(("TaskNode", ref.work_id_in_job), ref.task_id + model))

    def series(self, parts: list[Block]) -> Block:
        for before, after in pairwise(parts):
            self.arrow(before.last, after.first)
        return parts[0] if len(parts) == 1 else Series(parts)

    def par(self, par: Par) -> Fork:
        begin = self.node("ParBegin")
        lanes: list[Block | None] = [self.work(child) for child in par.works]
        end = self.node("ParEnd")
        return self.fork(Leaf(begin), lanes, [None] * len(lanes), end)

    def fork(self, begin: Block, lanes: list[Block | None], labels: list[str | None], end: int) -> Fork:
        for lane, label in zip(lanes, labels, strict=True):
            self.arrow(begin.last, end if lane is None else lane.first, label)
        for lane in lanes:
            if lane is not None:
                self.arrow(lane.last, end)
        return Fork(begin, lanes, labels, end)

    def condition(self, work: Work) -> Block:
        if isinstance(work, Seq) and len(work.works) > 1:
            begin = Leaf(self.node("CondBegin"))
            parts = [self.work(child) for child in work.works]
            return self.series([begin, *parts, Leaf(self.node("CondEnd"))])
        block = self.work(work)
        if isinstance(block, Leaf):
            node = self.nodes[block.node]
            node.hint = ("CondNode", int(node.hint[1]))
        return block

    def loop(self, loop: Loop) -> Ring:
        pre = loop.pre_condition and self.condition(loop.pre_condition[1])
        body = self.work(loop.body)
        post = loop.post_condition and self.condition(loop.post_condition[1])
        end = self.node("LoopEnd")
        go_on, leave = pre_labels = _labels(loop.pre_condition is not None and loop.pre_condition[0])
        if pre is not None:
            self.arrow(pre.last, body.first, go_on)
            self.arrow(pre.last, end, leave)
        again, done = post_labels = _labels(loop.post_condition is not None and loop.post_condition[0])
        if post is None:
            self.arrow(body.last, end)
        else:
            self.arrow(body.last, post.first)
            self.arrow(post.last, body.first if pre is None else pre.first, again, loop_back=True)
            self.arrow(post.last, end, done)
        return Ring(pre, pre_labels, body, post, post_labels, end)

    def alt(self, alt: Alt) -> Fork:
        condition = self.condition(alt.condition)
        branches = (alt.true_work, alt.false_work)
        lanes = [None if branch is None else self.work(branch) for branch in branches]
        return self.fork(condition, lanes, ["true", "false"], self.node("AltEnd"))
