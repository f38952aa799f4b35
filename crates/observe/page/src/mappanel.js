// The panel around the map: its controls, its legend, its keys, and the same figures as a table.

import { get } from "./api.js";
import { scheme } from "./colour.js";
import { share } from "./columns.js";
import { h, say, svg } from "./dom.js";
import * as format from "./format.js";
import { MapView } from "./mapview.js";
import { LAYERS } from "./paint.js";
import { gradient } from "./tree.js";

const SPANS = [
  [10_000, "10 s", "ten seconds"],
  [60_000, "1 min", "one minute"],
  [600_000, "10 min", "ten minutes"],
  [3_600_000, "1 h", "one hour"],
  [21_600_000, "6 h", "six hours"],
  [86_400_000, "1 d", "one day"],
];

/** Rows of the map as a table: the ranges that waited most. */
const MOST_ROWS = 24;

const LABEL =
  "Contention map: keys from top to bottom, time from left to right. Arrow keys move the cursor by a column or a range, plus and minus zoom in time, " +
  "shift with an arrow key moves the view, brackets zoom into keys, Enter shows the keys under the cursor, End follows the newest. The table below has the same figures.";

export class MapPanel {
  constructor(now, chosen) {
    this.chosen = chosen;
    this.maps = [];
    this.build();
    this.view = new MapView({ cells: this.cells, over: this.over, readout: this.readout }, now);
    this.view.addEventListener("moved", () => this.controls());
    this.view.addEventListener("scaled", () => this.explain());
    this.view.addEventListener("painted", () => this.painted());
    this.view.addEventListener("pick", (event) => void this.pick(event.detail));
    this.controls();
    this.explain();
  }

  build() {
    this.select = h("select", { id: "map", "aria-label": "Map of", onchange: () => this.choose(this.select.value) });
    this.layers = group("layer", "Layer", Object.entries(LAYERS).map(([name, { title }]) => [name, title]), (name) => this.view.setLayer(name));
    this.spans = h("div", { class: "buttons joined", role: "group", "aria-label": "Span of time" });
    // A sign has a name; words are their own.
    const button = (label, name, act) => h("button", { type: "button", "aria-label": /\w/.test(label) ? null : name, title: name, onclick: act }, label);
    this.spans.append(
      button("−", "Zoom out", () => this.view.zoom(this.view.span * 2)),
      ...SPANS.map(([span, label, name]) => {
        const one = button(label, `Show ${name}`, () => this.view.zoom(span));
        one.dataset.span = String(span);
        return one;
      }),
      button("+", "Zoom in", () => this.view.zoom(this.view.span / 2)),
    );
    this.back = button("‹", "Earlier", () => this.view.pan(-this.view.span / 2));
    this.forth = button("›", "Later", () => this.view.pan(this.view.span / 2));
    this.live = h("button", { type: "button", class: "live", "aria-pressed": "true", onclick: () => this.view.follow() }, "Follow");
    this.signs = h("button", { type: "button", "aria-pressed": "true", onclick: () => this.toggleMarks() }, "Marks");
    this.asTable = h("button", { type: "button", "aria-pressed": "false", "aria-controls": "map-table", onclick: () => this.toggleTable() }, "Table");
    const tools = h("div", { class: "tools" }, this.select, this.layers, this.spans, h("div", { class: "buttons joined", role: "group", "aria-label": "Move in time" }, this.back, this.live, this.forth), h("div", { class: "buttons", role: "group", "aria-label": "Shown" }, this.signs, this.asTable));
    this.cells = h("canvas", { class: "cells", "aria-hidden": "true" });
    this.over = h("canvas", { class: "over", tabindex: "0", role: "application", "aria-label": LABEL, "aria-describedby": "place" });
    this.reason = h("div", { class: "empty", hidden: true });
    this.stage = h("div", { class: "stage" }, this.cells, this.over, this.reason);
    this.readout = h("p", { class: "readout", id: "place", "aria-live": "polite" });
    this.scale = h("div", { class: "legend" });
    this.rows = h("tbody");
    this.caption = h("caption");
    const heads = ["Range of keys", "Waited", "Acquisitions/s", "Writes/s", "Reads/s", "Entries", "Memory", "Marks"].map((title, index) => h("th", { scope: "col", class: index > 0 && index < 7 ? "right" : null }, title));
    this.table = h("div", { class: "scroll", id: "map-table", tabindex: "0", role: "region", "aria-label": "The map as a table", hidden: true }, h("table", {}, this.caption, h("thead", {}, h("tr", {}, heads)), this.rows));
    this.detail = h("section", { class: "detail", hidden: true, tabindex: "-1", "aria-label": "Keys of a range" });
    this.element = h("section", { class: "panel map", "aria-label": "Contention map" }, h("h2", { class: "unseen" }, "Contention map"), tools, this.stage, this.readout, this.scale, this.table, this.detail);
  }

  // --- Which map ---

  /** Takes over the server's list of maps; the choice stays, or falls to the first that can be shown. */
  list(maps) {
    this.maps = maps;
    const option = (map) => h("option", { value: map.id, class: map.walked ? null : "off" }, `${map.name} · ${map.engine}${map.walked ? "" : " · no map"}`);
    const offered = maps.map((map) => `${map.id} ${map.name} ${map.engine} ${map.walked}`).join("\n");
    if (offered !== this.offered) {
      this.offered = offered;
      this.select.replaceChildren(...maps.map(option));
    }
    const kept = maps.find((map) => map.id === this.id);
    const fullest = [...maps].filter((map) => map.walked).sort((one, other) => other.keys - one.keys)[0];
    this.choose((kept ?? fullest ?? maps[0])?.id ?? null);
  }

  get map() {
    return this.maps.find((map) => map.id === this.id) ?? null;
  }

  choose(id) {
    const changed = id !== this.id;
    this.id = id;
    if (id !== null) this.select.value = id;
    const { map } = this;
    const shows = map !== null && map.walked;
    this.stage.classList.toggle("off", !shows);
    this.over.hidden = !shows;
    for (const input of this.element.querySelectorAll(".tools button, .tools input")) input.disabled = !shows;
    if (!shows) {
      const why = map ? map.reason || "This engine cannot be walked while others write." : "A map appears with the first table.";
      this.reason.replaceChildren(h("strong", {}, map ? `No map of ${map.name}` : "No map yet"), h("p", {}, why));
    }
    this.reason.hidden = shows;
    if (!changed) return;
    this.detail.hidden = true;
    this.view.show(shows ? id : null);
    this.chosen(shows ? id : null);
  }

  push({ map, column }) {
    if (map === this.id) this.view.data?.push(column);
  }

  // --- Controls and legend ---

  toggleMarks() {
    this.view.marks = !this.view.marks;
    this.signs.setAttribute("aria-pressed", String(this.view.marks));
    this.view.moved();
    this.explain();
  }

  toggleTable() {
    this.table.hidden = !this.table.hidden;
    this.asTable.setAttribute("aria-pressed", String(!this.table.hidden));
    this.painted();
  }

  controls() {
    const { view } = this;
    for (const button of this.spans.querySelectorAll("[data-span]")) button.setAttribute("aria-pressed", String(Number(button.dataset.span) === view.span));
    this.live.setAttribute("aria-pressed", String(view.follows));
  }

  explain() {
    const { layer, top, marks } = this.view;
    const { of, kind, curve } = LAYERS[layer];
    const show = { share: format.percent, rate: format.count, level: format.bytes }[kind];
    const name = [layer, top, marks, scheme()].join();
    if (name === this.explained) return;
    this.explained = name;
    const bar = h("span", { class: "scale" });
    bar.style.background = gradient(layer);
    const steps = [0, 0.25, 0.5, 0.75, 1].map((at) => h("span", {}, show(top * at ** (1 / curve))));
    const scale = h("div", { class: "scale-box" }, bar, h("div", { class: "scale-steps" }, steps));
    const none = kind === "share" ? h("span", {}, h("i", { class: "swatch none" }), "no lock taken") : null;
    const kinds = marks ? [["split", "split"], ["join", "join"], ["format", "new format"]].map(([each, title]) => h("span", {}, signOf(each), title)) : null;
    this.scale.replaceChildren(scale, h("span", { class: "of" }, of), none, kinds ? h("span", { class: "kinds" }, kinds) : "");
  }

  restyle() {
    this.explained = null;
    this.view.picture = null;
    this.view.draw();
    this.explain();
  }

  painted() {
    const { view } = this;
    if (this.readout.textContent === "" && view.data) {
      const { error } = view.data;
      say(this.readout, error ? `Cannot be read now: ${error}` : "Point at the map, or give it the focus and use the arrow keys.");
    }
    if (!this.table.hidden) this.fill();
  }

  /** The column under the cursor as a table, or else the newest in view: its hottest ranges. */
  fill() {
    const { view } = this;
    const place = view.place();
    const [newest] = view.data ? latestOf(view) : [];
    const column = place?.column ?? newest;
    if (!column) {
      this.rows.replaceChildren();
      say(this.caption, "Nothing is known of this span of time.");
      return;
    }
    const { text } = column.bounds;
    const { seconds } = column;
    const order = [...text.keys()].sort((one, other) => column.waits[other] - column.waits[one] || column.writes[other] - column.writes[one] || one - other);
    const row = (bucket) => {
      const marks = column.marks.filter((mark) => mark.bucket === bucket).map(({ kind, n }) => `${n} × ${kind}`);
      const waited = share(column, bucket);
      const range = `${format.key(text[bucket])} … ${bucket + 1 < text.length ? format.key(text[bucket + 1]) : "(highest)"}`;
      const figures = [format.percent(waited), ...["acquisitions", "writes", "reads"].map((name) => format.count(column[name][bucket] / seconds)), format.count(column.entries[bucket]), format.bytes(column.bytes[bucket])];
      return h("tr", {}, h("td", { class: "mono" }, range), figures.map((figure) => h("td", { class: "right" }, figure)), h("td", {}, marks.join(", ")));
    };
    say(this.caption, `${text.length} ranges at ${format.clock(column.at)}; the ${Math.min(MOST_ROWS, text.length)} that waited most.`);
    this.rows.replaceChildren(...order.slice(0, MOST_ROWS).map(row));
  }

  // --- The keys of a range ---

  async pick({ column, bucket }) {
    const { raw, text } = column.bounds;
    const to = bucket + 1 < raw.length ? raw[bucket + 1] : null;
    const title = `${format.key(text[bucket])} … ${to === null ? "(highest)" : format.key(text[bucket + 1])}`;
    const close = h("button", { type: "button", "aria-label": "Close", onclick: () => this.closeDetail() }, "×");
    const head = h("header", {}, h("h3", {}, "Keys from ", h("span", { class: "mono" }, title)), close);
    const about = h("p", { class: "about" }, this.view.describe(column, bucket));
    const body = h("div", { class: "detail-body" }, h("p", { class: "note" }, "Reading …"));
    this.detail.replaceChildren(head, about, body);
    this.detail.hidden = false;
    this.detail.onkeydown = (event) => event.key === "Escape" && this.closeDetail();
    this.detail.focus();
    try {
      const query = `from=${raw[bucket]}${to === null ? "" : `&to=${to}`}&limit=50`;
      const { keys, more, slow } = await get(`map/${encodeURIComponent(this.id)}/keys?${query}`);
      body.replaceChildren(keysOf(keys, more), slowOf(slow));
    } catch (error) {
      body.replaceChildren(h("p", { class: "note error" }, `Cannot be read: ${error.message}`));
    }
  }

  closeDetail() {
    this.detail.hidden = true;
    this.over.focus();
  }
}

function latestOf(view) {
  const { from, to } = view.view;
  const { columns, first, end } = view.data.slice(from, to);
  return end > first ? [columns[end - 1]] : [];
}

function keysOf(keys, more) {
  if (keys.length === 0) return h("p", { class: "note" }, "No key lies here now.");
  const rows = keys.map(({ text, type, size }) => h("tr", {}, h("td", { class: "mono" }, format.key(text, 64)), h("td", {}, type), h("td", { class: "right" }, format.bytes(size))));
  const heads = h("tr", {}, h("th", { scope: "col" }, "Key"), h("th", { scope: "col" }, "Type"), h("th", { scope: "col", class: "right" }, "Size"));
  const table = h("table", {}, h("caption", { class: "unseen" }, "Keys of the range"), h("thead", {}, heads), h("tbody", {}, rows));
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys of the range" }, table);
  return h("div", {}, h("h4", {}, `${keys.length}${more ? " of more" : ""} keys now`), scroll);
}

function slowOf(slow) {
  const title = h("h4", {}, "Slow here");
  if (slow.length === 0) return h("div", {}, title, h("p", { class: "note" }, "The slow log has no command for a key of this range."));
  const rows = slow.map(({ at, us, command, key }) => h("tr", {}, h("td", {}, format.clock(at)), h("td", { class: "right" }, format.micros(us)), h("td", { class: "mono" }, `${command} ${format.key(key, 48)}`)));
  const heads = h("tr", {}, h("th", { scope: "col" }, "Time"), h("th", { scope: "col", class: "right" }, "Took"), h("th", { scope: "col" }, "Command"));
  const table = h("table", {}, h("caption", { class: "unseen" }, "Slow commands of the range"), h("thead", {}, heads), h("tbody", {}, rows));
  return h("div", {}, title, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Slow commands of the range" }, table));
}

/** A choice of one among a few. */
function group(name, label, choices, chosen) {
  const inputs = choices.map(([value, title], index) => {
    const input = h("input", { type: "radio", name, value, id: `${name}-${value}`, onchange: () => chosen(value) });
    input.checked = index === 0;
    return [input, h("label", { for: `${name}-${value}` }, title)];
  });
  return h("div", { class: "segments", role: "radiogroup", "aria-label": label }, inputs);
}

/** A mark as the map draws it. */
function signOf(kind) {
  const points = { split: "3,7 11,3 11,11", join: "11,7 3,3 3,11", format: "7,3 11,7 7,11 3,7" };
  return svg("svg", { class: "sign", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, svg("polygon", { points: points[kind] }));
}
