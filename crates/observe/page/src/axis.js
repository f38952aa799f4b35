// Where a key lies on the map's vertical axis.
//
// Each column of the map has its own bounds, which change as the server weighs its keys anew. One
// axis must hold for all columns in view:
//
//   * the buckets of the latest column have equal heights (the server gives them equal weights);
//   * a bound of another column that falls inside such a bucket is placed in it by its order: the
//     bounds inside of one bucket divide it evenly.
//
// So a key has one height in the whole picture, keys stay in order, and every column covers the
// axis from end to end. Keys are compared as the hex of their bytes, which sorts as they do.

/** Bounds that one axis takes at most; those of older columns beyond it are placed at the next lower. */
export const MOST_BOUNDS = 4096;

/**
 * @typedef {{id: number, raw: string[], text: string[]}} Bounds
 * The lowest keys of a column's buckets; the first bucket begins at the lowest key of all, so its
 * bound counts as the empty key.
 */

export class Axis {
  /**
   * @param {Bounds} latest The bounds of the latest column in view.
   * @param {Bounds[]} others Those of the other columns, the latest first.
   */
  constructor(latest, others) {
    const inside = new Map();
    for (const bounds of others) {
      if (inside.size >= MOST_BOUNDS) break;
      for (let index = 1; index < bounds.raw.length; index += 1) inside.set(bounds.raw[index], bounds.text[index]);
    }
    for (let index = 1; index < latest.raw.length; index += 1) inside.set(latest.raw[index], latest.text[index]);
    inside.delete("");
    /** The bounds on this axis, in order; the first is the empty key. */
    this.raw = ["", ...[...inside.keys()].sort()];
    this.text = this.raw.map((raw) => (raw === "" ? "" : inside.get(raw)));
    this.at = placed(this.raw, latest.raw);
    this.rows = new Map();
  }

  /** The index of the last bound that is not above a key. */
  indexOf(raw) {
    return lastNotAbove(this.raw, raw);
  }

  /** Where a key lies, from 0 (lowest) to 1: at the bound that it is, or the next lower one. */
  position(raw) {
    return this.at[this.indexOf(raw)];
  }

  /** The index of the bound that begins what lies at a height. */
  indexAt(position) {
    return Math.max(0, lastNotAbove(this.at, position));
  }

  /** Where each bucket of a column begins, and after them the end of the axis. */
  edges(bounds) {
    let edges = this.rows.get(bounds.id);
    if (!edges) {
      edges = new Float64Array(bounds.raw.length + 1);
      for (let index = 1; index < bounds.raw.length; index += 1) edges[index] = this.position(bounds.raw[index]);
      edges[bounds.raw.length] = 1;
      this.rows.set(bounds.id, edges);
    }
    return edges;
  }
}

/** Gives each bound its height: equal ones for the latest column's, and even ones between them. */
function placed(raw, latest) {
  const at = new Float64Array(raw.length);
  const buckets = latest.length;
  let first = 0;
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    let end = first + 1;
    while (end < raw.length && (bucket + 1 === buckets || raw[end] < latest[bucket + 1])) end += 1;
    for (let index = first; index < end; index += 1) {
      at[index] = (bucket + (index - first) / (end - first)) / buckets;
    }
    first = end;
  }
  return at;
}

/** The last index whose value is not above `value`, in an ascending array; at least 0. */
export function lastNotAbove(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
