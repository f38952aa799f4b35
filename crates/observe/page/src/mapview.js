// The contention map: its state, how it is drawn, and how it is moved about.

import { Axis } from "./axis.js";
import { scheme } from "./colour.js";
import { bucketAt, hottest, share } from "./columns.js";
import { bytesOf, fit, onNextFrame, say } from "./dom.js";
import * as format from "./format.js";
import { MapData } from "./mapdata.js";
import { Over, plotOf } from "./mapdraw.js";
import { LAYERS, colours, figures } from "./paint.js";

const SHORTEST = 10_000;
const LONGEST = 86_400_000;
/** More columns than this are painted in CSS pixels rather than in the device's. */
const MANY_COLUMNS = 1500;

export class MapView extends EventTarget {
  /** @param {{cells: HTMLCanvasElement, over: HTMLCanvasElement, readout: HTMLElement}} parts */
  constructor(parts, now) {
    super();
    this.parts = parts;
    this.now = now;
    this.data = null;
    this.layer = "waits";
    this.marks = true;
    this.span = 600_000;
    /** The time at the right edge, or null: the newest. */
    this.until = null;
    this.low = 0;
    this.high = 1;
    this.cursor = null;
    /** Where a pointer rests on the map, or null: then the cursor was put there by keys. */
    this.pointer = null;
    this.picture = null;
    this.top = 1;
    this.draw = onNextFrame(() => this.paint());
    new ResizeObserver(this.draw).observe(parts.over);
    listen(this, parts.over);
  }

  /** Shows another map, or none. */
  show(id) {
    this.data?.close();
    this.data = id === null ? null : new MapData(id, this.now, this.draw);
    this.picture = null;
    this.axis = null;
    this.axisName = null;
    this.cursor = null;
    this.pointer = null;
    this.until = null;
    this.low = 0;
    this.high = 1;
    this.draw();
  }

  get follows() {
    return this.until === null;
  }

  /** The times and heights in view. */
  get view() {
    const end = this.data?.end ?? this.now();
    const to = this.until ?? end;
    return { from: to - this.span, to, low: this.low, high: this.high };
  }

  /** Shows another span of time; what is under `share` of the width stays where it is. */
  zoom(span, share = 1) {
    const { from, to } = this.view;
    const fixed = from + (to - from) * share;
    this.span = Math.min(LONGEST, Math.max(SHORTEST, span));
    if (this.follows && share > 0.98) return this.moved();
    this.pan(fixed + this.span * (1 - share) - to);
  }

  /** Moves in time. At the newest column the view follows again; before the oldest there is nothing. */
  pan(by) {
    const end = this.data?.end ?? this.now();
    const to = Math.max(this.view.to + by, end - LONGEST + this.span / 2);
    this.until = to >= end - this.span / 200 ? null : to;
    this.moved();
  }

  follow() {
    this.until = null;
    this.moved();
  }

  /** Zooms into keys; what is under `share` of the height stays where it is. */
  zoomKeys(factor, share) {
    const high = this.high - this.low;
    const next = Math.min(1, Math.max(1 / 256, high * factor));
    const fixed = this.low + high * share;
    this.low = Math.min(1 - next, Math.max(0, fixed - next * share));
    this.high = this.low + next;
    this.moved();
  }

  panKeys(by) {
    const high = this.high - this.low;
    this.low = Math.min(1 - high, Math.max(0, this.low + by));
    this.high = this.low + high;
    this.moved();
  }

  setLayer(layer) {
    this.layer = layer;
    this.picture = null;
    this.moved();
  }

  moved() {
    this.draw();
    this.dispatchEvent(new Event("moved"));
  }

  // --- Painting ---

  paint() {
    const { cells, over } = this.parts;
    const { context, width, height, scale } = fit(over);
    const back = fit(cells);
    const plot = plotOf(width, height);
    this.plot = plot;
    context.clearRect(0, 0, width, height);
    const { data, view } = this;
    if (!data || width < 20) {
      back.context.clearRect(0, 0, width, height);
      this.mirror(null);
      return;
    }
    data.want(view.from, view.to);
    const slice = data.slice(view.from, view.to);
    if (slice.end > slice.first) this.axis = this.axisOf(slice);
    if (!this.axis) {
      back.context.clearRect(0, 0, width, height);
      this.mirror(null);
      this.dispatchEvent(new Event("painted"));
      return;
    }
    this.paintCells(cells, back.context, slice, plot, slice.end - slice.first > MANY_COLUMNS ? 1 : scale, scale);
    const drawn = new Over(context, plot, view, this.axis);
    drawn.frame();
    drawn.times();
    drawn.keys();
    if (this.marks) drawn.marks(slice);
    // The picture moves under a pointer that rests.
    if (this.pointer) this.cursor.time = view.from + ((this.pointer.x - plot.left) / plot.width) * this.span;
    // The axis may be another one by now: a cursor that was put on a range stays there.
    if (this.cursor?.held) this.cursor.position = this.middle(this.cursor.held);
    const place = this.place();
    if (this.cursor) {
      const at = { x: drawn.x(this.cursor.time), y: drawn.y(this.cursor.position) };
      drawn.cursor(at, place && place.box);
    }
    say(this.parts.readout, place ? this.describe(place.column, place.bucket) : "");
    this.mirror(slice);
    this.dispatchEvent(new Event("painted"));
  }

  /** The axis for some columns; it is made anew only when their bounds are others. */
  axisOf({ columns, first, end }) {
    const latest = columns[end - 1].bounds;
    const others = new Set();
    for (let index = end - 1; index >= first; index -= 1) others.add(columns[index].bounds);
    const name = [...others].map((bounds) => bounds.id).join(" ");
    if (name !== this.axisName) {
      this.axisName = name;
      this.axis = null;
    }
    return this.axis ?? new Axis(latest, [...others]);
  }

  paintCells(canvas, context, slice, plot, scale, deviceScale) {
    const { view, layer, data } = this;
    const shape = [plot.left, plot.top, plot.width, plot.height, scale, canvas.width].join(" ");
    const step = this.span / plot.width;
    // A new second is less than a pixel in a wide view: then the picture waits for a whole one.
    const grain = Math.max(1000, Math.floor(step));
    const name = [shape, layer, scheme(), data.version, Math.floor(view.to / grain), this.span, view.low, view.high, this.axisName].join("/");
    const stale = name !== this.picture || (step < 1000 && slice.columns[slice.end - 1]?.at !== this.newest);
    if (!stale) return;
    this.picture = name;
    this.newest = slice.columns[slice.end - 1]?.at;
    const [wide, high] = [Math.max(1, Math.round(plot.width * scale)), Math.max(1, Math.round(plot.height * scale))];
    const found = figures(layer, slice, this.axis, view, wide, high);
    this.top = LAYERS[layer].top(found.most);
    const image = new ImageData(colours(layer, scheme(), found, this.top, bytesOf("--plot")), wide, high);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const [left, above] = [Math.round(plot.left * deviceScale), Math.round(plot.top * deviceScale)];
    if (scale === deviceScale) {
      context.putImageData(image, left, above);
    } else {
      const small = new OffscreenCanvas(wide, high);
      small.getContext("2d").putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, plot.left, plot.top, plot.width, plot.height);
    }
    this.dispatchEvent(new Event("scaled"));
  }

  // --- The cursor ---

  /** Puts the cursor under a pointer. */
  point(x, y) {
    const { plot, view } = this;
    const [across, down] = [(x - plot.left) / plot.width, (y - plot.top) / plot.height];
    if (across < 0 || across > 1 || down < 0 || down > 1) return this.unpoint();
    const time = view.from + across * (view.to - view.from);
    this.pointer = { x, y };
    this.cursor = { time, position: view.low + down * (view.high - view.low) };
    this.draw();
  }

  unpoint() {
    this.pointer = null;
    this.cursor = null;
    this.draw();
  }

  /** The column and bucket under the cursor, or null. */
  place() {
    if (!this.cursor || !this.data || !this.axis) return null;
    const { from, to } = this.view;
    const column = this.data.columnAt(this.cursor.time, this.data.widthFor(from, to));
    if (!column) return null;
    const bucket = bucketAt(this.axis, column, this.cursor.position);
    const edges = this.axis.edges(column.bounds);
    const box = { from: column.at, to: column.at + column.width, low: edges[bucket], high: edges[bucket + 1] };
    return { column, bucket, box };
  }

  /** Moves the cursor by columns and buckets; without one, it begins at the hottest place of the newest column. */
  step(columns, buckets) {
    const { from, to } = this.view;
    const slice = this.data?.slice(from, to);
    if (!slice || slice.end === slice.first || !this.axis) return;
    const newest = slice.columns[slice.end - 1];
    const place = this.place();
    if (!place) {
      const bucket = Math.max(0, hottest(newest));
      return this.putCursor(newest, bucket);
    }
    const least = Math.max(place.column.width, this.span / this.plot.width);
    const time = place.column.at + place.column.width / 2 + columns * least;
    const column = columns === 0 ? place.column : this.data.columnAt(time, this.data.widthFor(from, to));
    if (!column) return;
    if (column.at < from) this.pan(-this.span / 4);
    if (column.at >= to) this.pan(this.span / 4);
    let { bucket } = place;
    if (column.bounds !== place.column.bounds) bucket = bucketAt(this.axis, column, this.cursor.position);
    this.putCursor(column, Math.min(column.bounds.raw.length - 1, Math.max(0, bucket + buckets)));
  }

  /** Where the middle of a bucket lies. */
  middle({ bounds, bucket }) {
    const edges = this.axis.edges(bounds);
    return (edges[bucket] + edges[bucket + 1]) / 2;
  }

  putCursor(column, bucket) {
    const position = this.middle({ bounds: column.bounds, bucket });
    this.pointer = null;
    this.cursor = { time: column.at + column.width / 2, position, held: { bounds: column.bounds, bucket } };
    const high = this.high - this.low;
    if (position < this.low || position > this.high) this.panKeys(position - high / 2 - this.low);
    this.draw();
  }

  /** Asks for the keys under the cursor. */
  pick() {
    const place = this.place();
    if (place) this.dispatchEvent(new CustomEvent("pick", { detail: place }));
    else say(this.parts.readout, "Nothing was recorded there.");
  }

  /** One sentence about a bucket. */
  describe(column, bucket) {
    const { text } = column.bounds;
    const range = `${format.key(text[bucket])} … ${bucket + 1 < text.length ? format.key(text[bucket + 1]) : "(highest)"}`;
    const { seconds } = column;
    const waited = share(column, bucket);
    const marks = column.marks.filter((mark) => mark.bucket === bucket).map(({ kind, n }) => `${n} × ${kind}`);
    return [
      format.clock(column.at),
      range,
      waited === null ? "no lock taken" : `${format.percent(waited)} of ${format.count(column.acquisitions[bucket])} acquisitions waited`,
      `${format.count(column.writes[bucket] / seconds)} writes/s`,
      `${format.count(column.reads[bucket] / seconds)} reads/s`,
      `${format.count(column.entries[bucket])} entries`,
      format.bytes(column.bytes[bucket]),
      ...marks,
    ].join("  ·  ");
  }

  // --- The mirror that tests and other tools read ---

  /** What the map shows, as data. */
  snapshot() {
    const { from, to } = this.view;
    const slice = this.data?.slice(from, to) ?? { columns: [], first: 0, end: 0 };
    const columns = slice.columns.slice(slice.first, slice.end);
    const marks = { split: 0, join: 0, format: 0 };
    for (const column of columns) for (const { kind, n } of column.marks) marks[kind] += n;
    const column = columns.at(-1) ?? null;
    return {
      id: this.data?.id ?? null,
      layer: this.layer,
      from,
      to,
      follows: this.follows,
      columns: columns.length,
      marks,
      latest: column && plain(column),
      place: this.place() && { ...plain(this.place().column), bucket: this.place().bucket },
    };
  }

  /** The newest columns in view, as data. */
  recent(most = 10) {
    const { from, to } = this.view;
    const { columns, first, end } = this.data?.slice(from, to) ?? { columns: [], first: 0, end: 0 };
    return columns.slice(Math.max(first, end - most), end).map(plain);
  }

  mirror(slice) {
    const { dataset } = this.parts.over;
    const column = slice && slice.columns[slice.end - 1];
    dataset.map = this.data?.id ?? "";
    dataset.columns = String(slice ? slice.end - slice.first : 0);
    dataset.newest = String(column?.at ?? "");
    const bucket = column ? hottest(column) : -1;
    dataset.hottest = bucket < 0 ? "" : column.bounds.text[bucket];
  }
}

function plain(column) {
  const list = (figures) => [...figures];
  return {
    at: column.at,
    width: column.width,
    end: column.end,
    bounds: column.bounds.text,
    raw: column.bounds.raw,
    entries: list(column.entries),
    bytes: list(column.bytes),
    acquisitions: list(column.acquisitions),
    waits: list(column.waits),
    writes: list(column.writes),
    reads: list(column.reads),
    marks: column.marks,
  };
}

// --- Pointers and keys ---

function listen(map, canvas) {
  const pointers = new Map();
  let dragged = false;
  let apart = 0;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  // Drags are measured on the screen: the page may scroll under a pointer that rests.
  const onScreen = ({ clientX, clientY }) => ({ x: clientX, y: clientY });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, onScreen(event));
    if (pointers.size === 1) dragged = false;
    apart = spread(pointers);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      const { x, y } = at(event);
      map.point(x, y);
      return;
    }
    const place = onScreen(event);
    if (!dragged && Math.hypot(place.x - before.x, place.y - before.y) < 5) return;
    dragged = true;
    pointers.set(event.pointerId, place);
    if (pointers.size === 2) {
      const next = spread(pointers);
      if (apart > 0 && next > 0) map.zoom((map.span * apart) / next, middle(pointers, map.plot, canvas.getBoundingClientRect().left));
      apart = next;
      return;
    }
    map.pan(((before.x - place.x) / map.plot.width) * map.span);
    if (map.high - map.low < 1) map.panKeys(((before.y - place.y) / map.plot.height) * (map.high - map.low));
  });
  const release = (event) => {
    const was = pointers.delete(event.pointerId);
    if (!was || dragged || event.type === "pointercancel") return;
    const { x, y } = at(event);
    map.point(x, y);
    map.pick();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => {
    if (document.activeElement !== canvas) map.unpoint();
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!map.plot) return;
      event.preventDefault();
      const { x, y } = at(event);
      const factor = 1.0015 ** event.deltaY;
      const across = Math.min(1, Math.max(0, (x - map.plot.left) / map.plot.width));
      if (event.shiftKey) map.zoomKeys(1.0015 ** (event.deltaY || event.deltaX), Math.min(1, Math.max(0, (y - map.plot.top) / map.plot.height)));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) map.pan((event.deltaX / map.plot.width) * map.span);
      else map.zoom(map.span * factor, map.follows ? 1 : across);
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", () => map.zoomKeys(Infinity, 0.5));
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (keys(map, event)) event.preventDefault();
  });
}

/** Does what a key asks for; true if it asks for anything. */
function keys(map, { key, shiftKey }) {
  const quarter = map.span / 4;
  const high = map.high - map.low;
  const actions = {
    ArrowLeft: () => (shiftKey ? map.pan(-quarter) : map.step(-1, 0)),
    ArrowRight: () => (shiftKey ? map.pan(quarter) : map.step(1, 0)),
    ArrowUp: () => (shiftKey ? map.panKeys(-high / 4) : map.step(0, -1)),
    ArrowDown: () => (shiftKey ? map.panKeys(high / 4) : map.step(0, 1)),
    PageUp: () => map.pan(-map.span),
    PageDown: () => map.pan(map.span),
    Home: () => map.pan(-LONGEST),
    End: () => map.follow(),
    "+": () => map.zoom(map.span / 2),
    "=": () => map.zoom(map.span / 2),
    "-": () => map.zoom(map.span * 2),
    "]": () => map.zoomKeys(0.5, cursorShare(map)),
    "[": () => map.zoomKeys(2, cursorShare(map)),
    Enter: () => map.pick(),
    " ": () => map.pick(),
    Escape: () => map.unpoint(),
  };
  const action = actions[key];
  action?.();
  return action !== undefined;
}

function cursorShare(map) {
  return map.cursor ? (map.cursor.position - map.low) / (map.high - map.low) : 0.5;
}

function spread(pointers) {
  const [one, other] = [...pointers.values()];
  return other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
}

function middle(pointers, plot, left) {
  const [one, other] = [...pointers.values()];
  return Math.min(1, Math.max(0, ((one.x + other.x) / 2 - left - plot.left) / plot.width));
}
