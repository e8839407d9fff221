from portico.features.jobs import load_entry
from portico.features.jobs.tree import draw_entry, draw_tree
from tests.jobs.samples import alt, entry_data, loop, par, ref, seq


def test_the_tree_in_the_order_of_running() -> None:
    work = seq(
        ref(),
        par(ref("ask"), ref("bare", modelOverride={"id": "m"}), concurrency=1),
        loop(seq(ref(), ref()), preCondition=[True, ref()], postCondition=[False, ref()], maxIterations=4),
        alt(ref(), trueWork=ref(), falseWork=ref()),
    )
    assert draw_tree(load_entry(entry_data(work)).jobs["main"].work, "  ").split("\n") == [
        "  Seq",
        "  ├─ [0] write",
        "  ├─ Par (at most 1 at a time)",
        "  │  ├─ [1] ask",
        "  │  └─ [2] bare (m)",
        "  ├─ Loop (at most 4 times)",
        "  │  ├─ while true: [3] write",
        "  │  ├─ do: Seq",
        "  │  │  ├─ [5] write",
        "  │  │  └─ [6] write",
        "  │  └─ again while false: [4] write",
        "  └─ Alt",
        "     ├─ if: [7] write",
        "     ├─ true: [8] write",
        "     └─ false: [9] write",
    ]


def test_the_whole_entry_on_a_page() -> None:
    jobs = {"main": {"work": seq(ref(), ref("ask"))}, "\x1b[2Jevil": {"work": ref()}}
    assert draw_entry(load_entry(entry_data(jobs=jobs))).split("\n") == [
        "Models",
        "  driving: gpt-5-mini",
        "  coding: gpt-5.2",
        "  reviewers: x",
        "",
        "Job main (needs user input)",
        "  Seq",
        "  ├─ [0] write",
        "  └─ [1] ask",
        "",
        "Job \ufffd[2Jevil",
        "  [0] write",
        "",
        "Grid",
        "  row: -, go (main)",
    ]
