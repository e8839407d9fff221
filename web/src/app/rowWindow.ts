/** A window over rows: only those near the view are in the page. Computes the position of each row and the space for the others. */

/** Where each row begins; the last number is where the last one ends. */
export function offsetsOf(count: number, heightOf: (index: number) => number): Float64Array {
  const offsets = new Float64Array(count + 1);
  for (let index = 0; index < count; index++) offsets[index + 1] = (offsets[index] ?? 0) + heightOf(index);
  return offsets;
}

/** The rows that reach into the space between two heights: the first of them, and the first after them. */
export function between(offsets: Float64Array, from: number, to: number): [first: number, end: number] {
  const count = offsets.length - 1;
  const first = Math.min(count, Math.max(0, firstAbove(offsets, from) - 1));
  return [first, Math.max(first, Math.min(count, firstAbove(offsets, to - 1)))];
}

/** The first place that is further down than this. */
function firstAbove(offsets: Float64Array, height: number): number {
  let [low, high] = [0, offsets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] ?? 0) > height) high = middle;
    else low = middle + 1;
  }
  return low;
}

export type Piece = { row: number } | { space: number };

/** These rows in their order, with space for the others. */
export function spaced(rows: Iterable<number>, offsets: Float64Array): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  const fill = (to: number) => {
    const space = (offsets[to] ?? 0) - (offsets[at] ?? 0);
    if (space > 0) pieces.push({ space });
  };
  for (const row of [...new Set(rows)].sort((one, other) => one - other)) {
    fill(row);
    pieces.push({ row });
    at = row + 1;
  }
  fill(offsets.length - 1);
  return pieces;
}
