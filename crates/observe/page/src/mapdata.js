// The columns of the map in view: loaded piece by piece, and kept up to date by the stream.
//
// A day is 8,640 columns of up to 256 buckets. It is asked for in pieces, the newest first, and each
// is drawn as it comes, so that the page never stops to read all of it.

import { get } from "./api.js";
import { BoundsTable, Tier, WIDTHS, decode } from "./columns.js";

/** Columns in one request. */
const PIECE = 200;
const REACH = { [WIDTHS.fine]: 3_600_000, [WIDTHS.coarse]: 86_400_000 };

export class MapData {
  /**
   * @param {string} id
   * @param {() => number} now The server's time.
   * @param {() => void} changed
   */
  constructor(id, now, changed) {
    this.id = id;
    this.now = now;
    this.changed = changed;
    this.table = new BoundsTable();
    this.fine = new Tier(WIDTHS.fine);
    this.coarse = new Tier(WIDTHS.coarse);
    this.pieces = { [WIDTHS.fine]: new Set(), [WIDTHS.coarse]: new Set() };
    this.wanted = null;
    this.loading = false;
    this.ended = new AbortController();
    /** Counts what was loaded; a picture of an older version is stale. */
    this.version = 0;
    this.error = null;
    this.nextTry = 0;
  }

  close() {
    this.ended.abort();
  }

  /** The end of what is known. */
  get end() {
    return Math.max(this.fine.end ?? 0, this.coarse.end ?? 0) || null;
  }

  /** The width that shows a span of time: seconds if they reach so far back. */
  widthFor(from, to) {
    const reach = (this.end ?? this.now()) - REACH[WIDTHS.fine] - 2000;
    return to - from <= REACH[WIDTHS.fine] && from >= reach ? WIDTHS.fine : WIDTHS.coarse;
  }

  /** The columns that reach into a span: of ten seconds with the newest, finer ones after them. */
  slice(from, to) {
    if (this.widthFor(from, to) === WIDTHS.fine) {
      const [first, end] = this.fine.range(from, to);
      return { columns: this.fine.columns, first, end };
    }
    const [first, end] = this.coarse.range(from, to);
    const coarse = this.coarse.columns.slice(first, end);
    const after = coarse.length > 0 ? coarse.at(-1).end : from;
    const [newer, last] = [this.fine.lower(after - WIDTHS.fine / 2), this.fine.lower(to)];
    const columns = [...coarse, ...this.fine.columns.slice(newer, last)];
    return { columns, first: 0, end: columns.length };
  }

  /** The column in view at a time, or null. */
  columnAt(time, width) {
    return (width === WIDTHS.fine ? null : this.coarse.at(time)) ?? this.fine.at(time);
  }

  /** A column of the stream. Without its bounds' column before it, the newest piece is read again. */
  push(sent) {
    const column = decode(sent, this.fine.last?.bounds, this.table);
    if (!column) {
      this.refresh();
      return;
    }
    if (this.fine.last && column.at > this.fine.last.end + WIDTHS.fine) this.refresh();
    this.fine.add([column]);
    if (this.fine.columns.length % 600 === 0) this.table.keepOnly([this.fine, this.coarse]);
    this.changed();
  }

  /** Has the newest pieces read again: something was missed, or a new wide column is due. */
  refresh() {
    for (const width of [WIDTHS.fine, WIDTHS.coarse]) {
      const newest = Math.floor(this.now() / (width * PIECE));
      for (const piece of this.pieces[width]) if (piece >= newest - 1) this.pieces[width].delete(piece);
    }
    this.want(...(this.wanted ?? [this.now() - 60_000, this.now()]));
  }

  /** Reads the wide columns that have become complete. */
  refreshCoarse() {
    if (!this.coarse.last) return;
    const piece = Math.floor(this.now() / (WIDTHS.coarse * PIECE));
    this.pieces[WIDTHS.coarse].delete(piece);
    this.pieces[WIDTHS.coarse].delete(Math.floor(this.coarse.last.at / (WIDTHS.coarse * PIECE)));
    if (this.wanted) this.want(...this.wanted);
  }

  /** Loads what is missing of a span of time. */
  want(from, to) {
    this.wanted = [from, to];
    if (!this.loading && Date.now() >= this.nextTry) void this.load();
  }

  /** The newest piece that is wanted and was not asked for. */
  missing() {
    const [from, to] = this.wanted;
    const width = this.widthFor(from, to);
    const now = this.now();
    const first = Math.floor(Math.max(from, now - REACH[width]) / (width * PIECE));
    for (let piece = Math.floor(Math.min(to, now) / (width * PIECE)); piece >= first; piece -= 1) {
      if (!this.pieces[width].has(piece)) return { width, piece };
    }
    return null;
  }

  async load() {
    this.loading = true;
    try {
      for (let next = this.missing(); next; next = this.missing()) {
        const { width, piece } = next;
        const from = piece * width * PIECE;
        const query = `from=${from}&to=${from + width * PIECE - 1}&width=${width}`;
        const sent = await get(`map/${encodeURIComponent(this.id)}?${query}`, this.ended.signal);
        this.pieces[width].add(piece);
        this.take(width, sent.columns);
        this.error = null;
        this.changed();
        // Input and frames come before the next piece.
        await new Promise((done) => setTimeout(done));
      }
    } catch (error) {
      if (this.ended.signal.aborted) return;
      this.error = error.message;
      this.nextTry = Date.now() + 2000;
      this.changed();
    } finally {
      this.loading = false;
    }
  }

  take(width, sent) {
    const columns = [];
    let bounds = null;
    for (const each of sent) {
      const column = decode(each, bounds, this.table);
      if (!column) continue;
      bounds = column.bounds;
      columns.push(column);
    }
    (width === WIDTHS.fine ? this.fine : this.coarse).add(columns);
    this.version += 1;
  }
}
