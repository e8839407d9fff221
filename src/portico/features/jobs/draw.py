"""Drawing the flow chart of a job as SVG.

The layout goes up from the leaves. Every block becomes a picture whose way in is at the top and whose way out is at
the bottom of its axis (x = 0), so pictures are stacked or put side by side without looking into each other.
"""

import unicodedata
from html import escape
from typing import NamedTuple

from portico.features.jobs.chart import Block, ChartGraph, ChartNode, Fork, Leaf, Ring, Series, build
from portico.features.jobs.entry import Job, Work

GAP = 40  # between a node and the next below it: room for an arrow, its bend and its label
BEND = 14  # where an arrow turns, from the node it leaves
LANE_GAP = 36  # between lanes: room for a status mark left of a node
BARE_LANE = 30  # half the width of a lane that is only an arrow
MAX_ROW = 1200  # a Par wider than a page continues in the next row
LETTER = 7.5  # mean width of a letter in the font below
MAX_LABEL = 40
PADDING = 24


class Look(NamedTuple):
    shape: str
    width: float
    height: float
    fill: str
    border: str


LOOKS = {
    "TaskNode": Look("rect", 0, 36, "#dbeafe", "#2563eb"),
    "CondNode": Look("hexagon", 0, 36, "#fef9c3", "#ca8a04"),
    "ParBegin": Look("rect", 64, 10, "#525252", "#000000"),
    "ParEnd": Look("rect", 64, 10, "#525252", "#000000"),
    "AltEnd": Look("rect", 64, 10, "#fce7f3", "#db2777"),
    "CondBegin": Look("rect", 64, 10, "#fef9c3", "#ca8a04"),
    "CondEnd": Look("diamond", 24, 24, "#fef9c3", "#ca8a04"),
    "LoopEnd": Look("circle", 20, 20, "#e5e7eb", "#6b7280"),
}


class Point(NamedTuple):
    x: float
    y: float


class Line(NamedTuple):
    points: list[Point]
    label: str | None = None
    label_at: Point = Point(0, 0)
    loop_back: bool = False


class Picture(NamedTuple):
    """A laid-out block: its extents from the axis, and as `head` the half width and the height of its first node."""

    left: float
    right: float
    height: float
    head: Point
    nodes: list[tuple[int, Point]]
    lines: list[Line]

    def moved(self, x: float, y: float) -> "Picture":
        nodes = [(node, Point(at.x + x, at.y + y)) for node, at in self.nodes]
        lines = [
            line._replace(
                points=[Point(at.x + x, at.y + y) for at in line.points],
                label_at=Point(line.label_at.x + x, line.label_at.y + y),
            )
            for line in self.lines
        ]
        return self._replace(nodes=nodes, lines=lines)


BARE = Picture(BARE_LANE, BARE_LANE, 0, Point(0, 0), [], [])


def lay_out(work: Work) -> tuple[ChartGraph, Picture]:
    """The chart of a validated work and where its nodes and arrows go."""
    graph, block = build(work)
    return graph, _Layout(graph.nodes).block(block)


def draw_svg(job: Job, title: str = "") -> str:
    """The flow chart of a validated job as one SVG document."""
    graph, picture = lay_out(job.work)
    width = picture.left + picture.right + 2 * PADDING
    height = picture.height + 2 * PADDING
    moved = picture.moved(picture.left + PADDING, PADDING)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui, sans-serif" font-size="13" role="img">',
        f"<title>{_text(title)}</title>" if title else "",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker></defs>',
        *(_svg_line(line) for line in moved.lines),
        *(_svg_node(graph.nodes[node], at) for node, at in moved.nodes),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def look_of(node: ChartNode) -> Look:
    """Shape, size and colours of a node; a node with a label is as wide as it."""
    look = LOOKS[node.hint if isinstance(node.hint, str) else node.hint[0]]
    return look._replace(width=look.width or _text_width(_short(node.label or "")) + 36)


def _text_width(text: str) -> float:
    return sum(LETTER * (2 if unicodedata.east_asian_width(letter) in "WF" else 1) for letter in text)


def _short(label: str) -> str:
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


class _Layout:
    def __init__(self, nodes: list[ChartNode]) -> None:
        self.nodes = nodes

    def block(self, block: Block) -> Picture:
        match block:
            case Leaf():
                return self.leaf(block.node)
            case Series():
                return self.stack([self.block(part) for part in block.parts])
            case Fork():
                return self.fork(block)
            case Ring():
                return self.ring(block)

    def leaf(self, node: int) -> Picture:
        look = look_of(self.nodes[node])
        half = look.width / 2
        return Picture(half, half, look.height, Point(half, look.height), [(node, Point(0, 0))], [])

    def stack(self, parts: list[Picture], labels: list[str | None] | None = None) -> Picture:
        """One below the other; `labels` belong to the arrows between them."""
        top = 0.0
        nodes: list[tuple[int, Point]] = []
        lines: list[Line] = []
        for index, part in enumerate(parts):
            if index:
                label = labels[index - 1] if labels else None
                lines.append(Line([Point(0, top), Point(0, top + GAP)], label, Point(20, top + GAP - 8)))
                top += GAP
            moved = part.moved(0, top)
            nodes += moved.nodes
            lines += moved.lines
            top += part.height
        left = max(part.left for part in parts)
        right = max(part.right for part in parts)
        return Picture(left, right, top, parts[0].head, nodes, lines)

    def fork(self, fork: Fork) -> Picture:
        begin = self.block(fork.begin)
        lanes = [lane and self.block(lane) for lane in fork.lanes]
        rows = _rows([lane for lane in lanes if lane is not None])
        # Only a Par can have so many lanes: those of an Alt are two and have labels.
        middle = _one_row(lanes, fork.labels) if len(rows) == 1 or None in lanes else _many_rows(rows)
        placed = middle.moved(0, begin.height)
        end = self.leaf(fork.end).moved(0, begin.height + middle.height)
        left = max(begin.left, middle.left, end.left)
        right = max(begin.right, middle.right, end.right)
        height = begin.height + middle.height + end.height
        nodes = begin.nodes + placed.nodes + end.nodes
        return Picture(left, right, height, begin.head, nodes, begin.lines + placed.lines)

    def ring(self, ring: Ring) -> Picture:
        pre = ring.pre and self.block(ring.pre)
        post = ring.post and self.block(ring.post)
        end = self.leaf(ring.end)
        steps: list[tuple[Picture, str | None]] = [(self.block(ring.body), None)]
        if pre is not None:
            steps.insert(0, (pre, ring.pre_labels[0]))
        if post is not None:
            steps.append((post, ring.post_labels[1]))
        whole = self.stack([*(step for step, _ in steps), end], [label for _, label in steps])
        lines = list(whole.lines)
        left, right = whole.left, whole.right
        if pre is not None:
            left += LANE_GAP
            lines.append(_way_past(pre, whole, end, -left, ring.pre_labels[1]))
        if post is not None:
            right += LANE_GAP
            lines.append(_way_back(whole, whole.height - end.height - GAP, right, ring.post_labels[0]))
        return whole._replace(left=left, right=right, lines=lines)


def _width(lanes: list[Picture]) -> float:
    return sum(lane.left + lane.right for lane in lanes) + LANE_GAP * (len(lanes) - 1)


def _rows(lanes: list[Picture]) -> list[list[Picture]]:
    """The lanes in rows that fit the width of a page."""
    rows: list[list[Picture]] = [[]]
    for lane in lanes:
        if rows[-1] and _width([*rows[-1], lane]) > MAX_ROW:
            rows.append([])
        rows[-1].append(lane)
    return rows


def _axes(lanes: list[Picture]) -> list[float]:
    """The axis of every lane when the lanes are side by side, centred."""
    axes: list[float] = []
    edge = -_width(lanes) / 2
    for lane in lanes:
        axes.append(edge + lane.left)
        edge += lane.left + lane.right + LANE_GAP
    return axes


def _one_row(parts: list[Picture | None], labels: list[str | None]) -> Picture:
    """Lanes between the node above (y = 0) and the node below, each with its arrows."""
    lanes = [BARE if part is None else part for part in parts]
    join = GAP + max(lane.height for lane in lanes) + GAP - BEND
    nodes: list[tuple[int, Point]] = []
    lines: list[Line] = []
    for lane, axis, label in zip(lanes, _axes(lanes), labels, strict=True):
        way_in = [Point(0, 0), Point(0, BEND), Point(axis, BEND)]
        way_out = [Point(axis, join), Point(0, join), Point(0, join + BEND)]
        label_at = Point(axis / 2 if axis else 20, BEND - 4)
        if lane is BARE:
            lines.append(Line(way_in + way_out, label, label_at))
            continue
        placed = lane.moved(axis, GAP)
        nodes += placed.nodes
        lines += placed.lines
        lines.append(Line([*way_in, Point(axis, GAP)], label, label_at))
        lines.append(Line([Point(axis, GAP + lane.height), *way_out]))
    half = _width(lanes) / 2
    return Picture(half, half, join + BEND, Point(0, 0), nodes, lines)


def _many_rows(rows: list[list[Picture]]) -> Picture:
    """Rows of lanes: the arrows come down left of all rows and leave right of them."""
    side = max(_width(row) for row in rows) / 2 + LANE_GAP
    join = 2 * BEND + sum(max(lane.height for lane in row) + 2 * GAP for row in rows)
    nodes: list[tuple[int, Point]] = []
    lines: list[Line] = []
    top: float = GAP + BEND
    for row in rows:
        below = top + max(lane.height for lane in row) + BEND
        for lane, axis in zip(row, _axes(row), strict=True):
            placed = lane.moved(axis, top)
            nodes += placed.nodes
            lines += placed.lines
            down = [Point(0, 0), Point(0, BEND), Point(-side, BEND), Point(-side, top - BEND)]
            lines.append(Line([*down, Point(axis, top - BEND), Point(axis, top)]))
            out = [Point(axis, top + lane.height), Point(axis, below), Point(side, below)]
            lines.append(Line([*out, Point(side, join), Point(0, join), Point(0, join + BEND)]))
        top = below - BEND + 2 * GAP
    return Picture(side, side, join + BEND, Point(0, 0), nodes, lines)


def _way_past(pre: Picture, whole: Picture, end: Picture, lane: float, label: str) -> Line:
    """From the condition before the body, left of everything, to the end of the loop."""
    turn = pre.height + BEND
    middle = whole.height - end.height / 2
    points = [
        Point(0, pre.height),
        Point(0, turn),
        Point(lane, turn),
        Point(lane, middle),
        Point(-end.left, middle),
    ]
    return Line(points, label, Point(-24, turn - 4))


def _way_back(whole: Picture, bottom: float, lane: float, label: str) -> Line:
    """From the condition after the body, right of everything, up into the side of the loop's first node."""
    half, height = whole.head
    points = [
        Point(0, bottom),
        Point(0, bottom + BEND),
        Point(lane, bottom + BEND),
        Point(lane, height / 2),
        Point(half, height / 2),
    ]
    return Line(points, label, Point(24, bottom + BEND - 4), loop_back=True)


def _text(text: str) -> str:
    """Escaped, and without the control characters that XML cannot hold."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))


def _svg_line(line: Line) -> str:
    path = "".join(f"{'L' if index else 'M'}{at.x:g} {at.y:g}" for index, at in enumerate(line.points))
    kind = "arrow loop-back" if line.loop_back else "arrow"
    drawn = f'<path class="{kind}" d="{path}" fill="none" stroke="#6b7280" marker-end="url(#arrow)"/>'
    if line.label is None:
        return drawn
    at = line.label_at
    return drawn + (
        f'<text class="arrow-label" x="{at.x:g}" y="{at.y:g}" text-anchor="middle" font-size="11" '
        f'fill="#4b5563">{_text(line.label)}</text>'
    )


def _svg_node(node: ChartNode, at: Point) -> str:
    look = look_of(node)
    kind, work = (node.hint, "") if isinstance(node.hint, str) else (node.hint[0], f' data-work-id="{node.hint[1]}"')
    group = f'<g class="node {kind}" data-node-id="{node.id}"{work} transform="translate({at.x:g} {at.y:g})">'
    label = ""
    if node.label is not None:
        label = f'<title>{_text(node.label)}</title><text y="{look.height / 2 + 4.5:g}" text-anchor="middle" '
        label += f'fill="#111827">{_text(_short(node.label))}</text>'
    return f"{group}{_svg_shape(look)}{label}</g>"


def _svg_shape(look: Look) -> str:
    half, height = look.width / 2, look.height
    paint = f'fill="{look.fill}" stroke="{look.border}"'
    match look.shape:
        case "circle":
            return f'<circle cy="{half:g}" r="{half:g}" {paint}/>'
        case "diamond":
            return f'<polygon points="0,0 {half:g},{half:g} 0,{height:g} {-half:g},{half:g}" {paint}/>'
        case "hexagon":
            slope = half - 10
            corners = [
                (-slope, 0.0),
                (slope, 0.0),
                (half, height / 2),
                (slope, height),
                (-slope, height),
                (-half, height / 2),
            ]
            points = " ".join(f"{x:g},{y:g}" for x, y in corners)
            return f'<polygon points="{points}" {paint}/>'
        case _:
            return f'<rect x="{-half:g}" width="{look.width:g}" height="{height:g}" rx="2" {paint}/>'
