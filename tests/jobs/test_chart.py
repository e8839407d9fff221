from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from portico.features.jobs import demo_entry, generate_chart, job_listing, load_entry
from portico.features.jobs.chart import ChartGraph
from portico.features.jobs.entry import refs_of
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq, works

GOLDEN = Path(__file__).parent / "golden"


def chart(work: Data) -> ChartGraph:
    return generate_chart(load_entry(entry_data(work)).jobs["main"].work)


def lines(work: Data) -> list[str]:
    """The chart in short: `id hint: arrows`, `^` for a way back."""
    return [
        f"{node.id} {node.hint if isinstance(node.hint, str) else '{}#{}'.format(*node.hint)}:"
        + "".join(
            f" {'^' if arrow.loop_back else ''}{arrow.to}{'=' + arrow.label if arrow.label else ''}"
            for arrow in node.arrows or ()
        )
        for node in chart(work).nodes
    ]


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (ref(), ["0 TaskNode#0:"]),
        (seq(ref(), ref()), ["0 TaskNode#0: 1", "1 TaskNode#1:"]),
        (
            par(ref(), seq(ref(), ref())),
            ["0 ParBegin: 1 2", "1 TaskNode#0: 4", "2 TaskNode#1: 3", "3 TaskNode#2: 4", "4 ParEnd:"],
        ),
        (loop(ref()), ["0 TaskNode#0: 1", "1 LoopEnd:"]),
        (
            loop(ref(), preCondition=[True, ref()]),
            ["0 CondNode#0: 1=true 2=false", "1 TaskNode#1: 2", "2 LoopEnd:"],
        ),
        (
            loop(ref(), postCondition=[False, seq(ref())]),
            ["0 TaskNode#1: 1", "1 CondNode#0: ^0=false 2=true", "2 LoopEnd:"],
        ),
        (
            loop(ref(), preCondition=[False, seq(ref(), ref())], postCondition=[True, par(ref())]),
            [
                "0 CondBegin: 1",
                "1 TaskNode#0: 2",
                "2 TaskNode#1: 3",
                "3 CondEnd: 4=false 8=true",
                "4 TaskNode#3: 5",
                "5 ParBegin: 6",
                "6 TaskNode#2: 7",
                "7 ParEnd: ^0=true 8=false",
                "8 LoopEnd:",
            ],
        ),
        (
            alt(ref(), trueWork=ref(), falseWork=seq(ref(), ref())),
            ["0 CondNode#0: 1=true 2=false", "1 TaskNode#1: 4", "2 TaskNode#2: 3", "3 TaskNode#3: 4", "4 AltEnd:"],
        ),
        (alt(ref(), falseWork=ref()), ["0 CondNode#0: 2=true 1=false", "1 TaskNode#1: 2", "2 AltEnd:"]),
        (alt(ref()), ["0 CondNode#0: 1=true 1=false", "1 AltEnd:"]),
    ],
)
def test_the_chart_of_every_kind_of_work(work: Data, expected: list[str]) -> None:
    assert lines(work) == expected


def test_the_wire_form_leaves_out_what_is_absent() -> None:
    work = seq(
        ref(modelOverride={"id": "x"}), loop(ref(), postCondition=[True, ref(modelOverride={"category": "coding"})])
    )
    assert msgspec.json.decode(msgspec.json.encode(chart(work))) == {
        "nodes": [
            {"id": 0, "hint": ["TaskNode", 0], "label": "write (x)", "arrows": [{"to": 1, "loopBack": False}]},
            {"id": 1, "hint": ["TaskNode", 2], "label": "write", "arrows": [{"to": 2, "loopBack": False}]},
            {
                "id": 2,
                "hint": ["CondNode", 1],
                "label": "write (coding)",
                "arrows": [
                    {"to": 1, "label": "true", "loopBack": True},
                    {"to": 3, "label": "false", "loopBack": False},
                ],
            },
            {"id": 3, "hint": "LoopEnd"},
        ]
    }


def test_the_listing_of_the_demo_entry_stays_as_clients_know_it() -> None:
    listing = msgspec.json.format(msgspec.json.encode(job_listing(demo_entry())), indent=2)
    assert listing + b"\n" == (GOLDEN / "demo_listing.json").read_bytes()


@given(work=works())
def test_every_task_has_one_node_and_every_node_is_reached(work: Data) -> None:
    validated = load_entry(entry_data(work)).jobs["main"].work
    nodes = generate_chart(validated).nodes
    tasks = sorted(node.hint[1] for node in nodes if isinstance(node.hint, tuple))
    assert tasks == list(range(len(list(refs_of(validated)))))
    assert [node.id for node in nodes] == list(range(len(nodes)))
    targets = {arrow.to for node in nodes for arrow in node.arrows or ()}
    ends = [node.id for node in nodes if not node.arrows]
    assert len(ends) == 1
    starts = set(range(len(nodes))) - targets
    assert len(starts) <= 1  # none if the first node is the start of a loop
