import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings

from portico.features.jobs import load_entry
from portico.features.jobs.draw import draw_svg, lay_out, look_of
from portico.features.jobs.entry import Job
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq, works

SVG = "{http://www.w3.org/2000/svg}"


def job(work: Data, **more: Any) -> Job:
    return load_entry(entry_data(work, **more)).jobs["main"]


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: "Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def boxes_and_segments(work: Data) -> tuple[list[Box], list[Box]]:
    graph, picture = lay_out(job(work).work)
    boxes = []
    for node, at in picture.nodes:
        look = look_of(graph.nodes[node])
        boxes.append(Box(at.x - look.width / 2, at.y, at.x + look.width / 2, at.y + look.height))
    segments = [
        Box(min(a.x, b.x), min(a.y, b.y), max(a.x, b.x), max(a.y, b.y))
        for line in picture.lines
        for a, b in pairwise(line.points)
    ]
    whole = Box(-picture.left, 0, picture.right, picture.height)
    for each in boxes + segments:
        assert whole.left <= each.left
        assert each.right <= whole.right
        assert whole.top <= each.top
        assert each.bottom <= whole.bottom
    assert len(picture.lines) == sum(len(node.arrows or ()) for node in graph.nodes)
    return boxes, segments


def assert_readable(work: Data) -> None:
    boxes, segments = boxes_and_segments(work)
    for one, other in combinations(boxes, 2):
        assert not one.touches(other)
    for box in boxes:
        inside = Box(box.left + 1, box.top + 1, box.right - 1, box.bottom - 1)
        assert not any(inside.touches(segment) for segment in segments)


@settings(max_examples=60)
@given(work=works())
def test_no_node_covers_another_and_no_arrow_runs_through_a_node(work: Data) -> None:
    assert_readable(work)


@pytest.mark.parametrize(
    "work",
    [
        seq(*(par(*(ref() for _ in range(8))) for _ in range(25))),
        par(*(ref() for _ in range(200))),
        loop(par(*(seq(ref(), alt(ref(), trueWork=ref())) for _ in range(66))), postCondition=[True, ref()]),
    ],
    ids=["rows", "one wide row", "nested"],
)
def test_two_hundred_works_stay_readable(work: Data) -> None:
    assert_readable(work)
    root = ElementTree.fromstring(draw_svg(job(work)))
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    assert width < 1500
    assert height < 6000


def test_shapes_labels_and_ids() -> None:
    work = seq(par(ref()), loop(ref(), postCondition=[False, ref()]), alt(seq(ref(), ref())))
    root = ElementTree.fromstring(draw_svg(job(work), "a <job>"))
    nodes = {node.attrib["data-node-id"]: node for node in root.iter(f"{SVG}g")}
    drawn = [
        (node.attrib["class"].split()[1], node[0].tag.removeprefix(SVG), node.attrib.get("data-work-id"))
        for node in nodes.values()
    ]
    assert sorted(drawn, key=str) == sorted(
        [
            ("ParBegin", "rect", None),
            ("TaskNode", "rect", "0"),
            ("ParEnd", "rect", None),
            ("TaskNode", "rect", "2"),
            ("CondNode", "polygon", "1"),
            ("LoopEnd", "circle", None),
            ("CondBegin", "rect", None),
            ("TaskNode", "rect", "3"),
            ("TaskNode", "rect", "4"),
            ("CondEnd", "polygon", None),
            ("AltEnd", "rect", None),
        ],
        key=str,
    )
    assert root[0].text == "a <job>"
    labels = [text.text for text in root.iter(f"{SVG}text") if text.attrib.get("class") == "arrow-label"]
    assert sorted(label or "" for label in labels) == ["false", "false", "true", "true"]
    assert [path.attrib.get("class") for path in root.iter(f"{SVG}path")].count("arrow loop-back") == 1


def test_hostile_and_long_names_are_escaped_and_cut() -> None:
    name = "<script>\x00" + "long " * 20
    tasks = {name: {"model": {"category": "coding"}, "prompt": ["x"]}}
    drawn = draw_svg(job(ref(name), tasks=tasks))
    (text,) = ElementTree.fromstring(drawn).iter(f"{SVG}text")
    assert (text.text or "").startswith("<script> long")
    assert len(text.text or "") == 40
    assert "<script>" not in drawn
