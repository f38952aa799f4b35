// The columns of one map: what the server sent, by time, at two widths.

import { lastNotAbove } from "./axis.js";

/** Widths in milliseconds, and how many columns of each are kept: an hour, and a day. */
export const WIDTHS = { fine: 1000, coarse: 10_000 };
const MOST = { 1000: 3600, 10000: 8640 };

/** The figures of a bucket. */
export const FIGURES = ["entries", "bytes", "acquisitions", "waits", "writes", "reads"];

/** Equal bounds of different columns are one object, so that they can be compared by their number. */
export class BoundsTable {
  constructor() {
    this.known = new Map();
    this.next = 1;
  }

  of(raw, text) {
    const name = raw.join(" ");
    let bounds = this.known.get(name);
    if (!bounds) {
      bounds = { id: this.next, raw: ["", ...raw.slice(1)], text: ["", ...text.slice(1)] };
      this.next += 1;
      this.known.set(name, bounds);
    }
    return bounds;
  }

  /** Forgets what no column of these tiers has. */
  keepOnly(tiers) {
    const used = new Set(tiers.flatMap((tier) => tier.columns.map((column) => column.bounds.id)));
    for (const [name, bounds] of this.known) if (!used.has(bounds.id)) this.known.delete(name);
  }
}

/** Columns that end and begin this near to each other, in milliseconds, touch: ticks are uneven. */
const SLACK = 400;

/**
 * Reads a column of the server, which names the end of its time. `before` gives the bounds that it shares if it has none itself.
 * Returns null if neither has any, or if a figure lacks buckets.
 */
export function decode(sent, before, table) {
  const bounds = sent.raw && sent.bounds ? table.of(sent.raw, sent.bounds) : before;
  if (!bounds || !FIGURES.every((name) => sent[name]?.length === bounds.raw.length)) return null;
  const column = { at: sent.at - sent.width_ms, width: sent.width_ms, end: sent.at, seconds: sent.width_ms / 1000, bounds, marks: sent.marks ?? [] };
  for (const name of FIGURES) column[name] = Float32Array.from(sent[name]);
  return column;
}

/** Columns of one width, oldest first, none twice. */
export class Tier {
  constructor(width) {
    this.width = width;
    this.columns = [];
    /** Spans of time that were asked for and answered, so that they are not asked for again. */
    this.asked = [];
  }

  get last() {
    return this.columns.at(-1);
  }

  /** The end of the newest column. */
  get end() {
    return this.last ? this.last.end : null;
  }

  /** Adds columns that are in order of time; those that are there already give way. */
  add(columns) {
    if (columns.length === 0) return;
    const [from, to] = [columns[0].end, columns.at(-1).end];
    let first = this.columns.length;
    if (this.columns.length === 0 || from > this.last.end) {
      this.columns.push(...columns);
    } else {
      const before = this.columns.filter((column) => column.end < from);
      const after = this.columns.filter((column) => column.end > to);
      first = before.length;
      this.columns = [...before, ...columns, ...after];
    }
    this.join(first, first + columns.length);
    const excess = this.columns.length - MOST[this.width];
    if (excess > 0) this.columns.splice(0, excess);
  }

  /** Lets columns of [first, end], and that behind them, begin where the one before ends. */
  join(first, end) {
    for (let index = Math.max(1, first); index <= end && index < this.columns.length; index += 1) {
      const column = this.columns[index];
      const before = this.columns[index - 1].end;
      if (Math.abs(column.at - before) > SLACK || before >= column.end) continue;
      column.at = before;
      column.width = column.end - before;
    }
  }

  /** The indices [first, end) of the columns that reach into a span of time. */
  range(from, to) {
    return [this.lower(from - 2 * this.width), this.lower(to)];
  }

  /** The index of the first column that begins at a time or later. */
  lower(time) {
    let low = 0;
    let high = this.columns.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.columns[middle].at < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The column that covers a time, or null. */
  at(time) {
    const column = this.columns[this.lower(time + 1) - 1];
    return column && time < column.end ? column : null;
  }
}

/** The bucket of a column whose part of the axis holds a position. */
export function bucketAt(axis, column, position) {
  return lastNotAbove(axis.edges(column.bounds).subarray(0, column.bounds.raw.length), position);
}

/** The share of acquisitions that waited, or null if no lock was taken. */
export function share(column, bucket) {
  const taken = column.acquisitions[bucket];
  return taken > 0 ? column.waits[bucket] / taken : null;
}

/** The bucket with most waits, or -1 if no thread waited. */
export function hottest(column) {
  let best = -1;
  let most = 0;
  for (let bucket = 0; bucket < column.waits.length; bucket += 1) {
    if (column.waits[bucket] > most) {
      most = column.waits[bucket];
      best = bucket;
    }
  }
  return best;
}
