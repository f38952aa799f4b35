// Tables of what the server lists: each is read again every two seconds while it is in view.

import { get } from "./api.js";
import { empty, h, say, svg } from "./dom.js";
import * as format from "./format.js";

/** Rows that a table shows at most. */
const MOST_ROWS = 200;
const EVERY = 2000;
/** Samples of a small chart in a row. */
const SAMPLES = 60;

const text = (name, title, options = {}) => ({ name, title, of: (row) => row[name], show: (row) => String(row[name] ?? ""), ...options });
const figure = (name, title, show = format.exact, options = {}) => ({ name, title, of: (row) => row[name], show: (row) => show(row[name]), right: true, ...options });

/** The tables, by the name of their section. */
export const TABLES = {
  slowlog: {
    title: "Slow log",
    about: "The commands that took longest, the newest first.",
    list: "entries",
    id: (row) => row.id,
    sort: ["at", -1],
    none: ["No slow command", "A command that takes longer than slowlog-log-slower-than is kept here."],
    columns: [
      figure("at", "Time", (at) => format.clock(at)),
      figure("us", "Took", format.micros),
      { name: "command", title: "Command", of: (row) => row.command.join(" "), show: (row) => row.command.map(quoted).join(" "), wide: true, mono: true },
      text("client", "Client", { mono: true }),
    ],
  },
  clients: {
    title: "Clients",
    about: "The connections that are open now.",
    list: "clients",
    id: (row) => row.id,
    sort: ["age_s", -1],
    none: ["No client", "A program that connects to the server's port is listed here."],
    columns: [
      figure("id", "Id"),
      text("address", "Address", { mono: true }),
      text("name", "Name"),
      text("user", "User"),
      text("command", "Last command", { mono: true }),
      figure("age_s", "Open for", format.duration),
      figure("idle_s", "Idle for", format.duration),
      figure("memory", "Memory", format.bytes),
    ],
  },
  mailboxes: {
    title: "Mailboxes",
    about: "Queues whose buffers grow with what waits in them, and fold when it is taken. The line shows the buffers of the last two minutes.",
    list: "mailboxes",
    id: (row) => row.name,
    sort: ["length", -1],
    none: ["No mailbox", "A mailbox appears with its first message."],
    trace: (row) => row.buffers,
    columns: [
      text("name", "Name", { mono: true }),
      { name: "length", title: "Messages", of: (row) => row.length, show: (row) => (row.capacity > 0 ? gauge(row.length, row.capacity, `${format.exact(row.length)} of ${format.exact(row.capacity)}`) : format.exact(row.length)), right: true },
      figure("buffers", "Buffers"),
      { name: "trace", title: "Over time", show: (_, trace) => sparkline(trace) },
      figure("grown", "Grown"),
      figure("folded", "Folded"),
      figure("senders", "Senders"),
      figure("waiting", "Waiting"),
    ],
  },
  shards: {
    title: "Shards",
    about: "The cores, what each does, and the state that moved between them.",
    list: "shards",
    id: (row) => row.core,
    sort: ["core", 1],
    none: ["No shard", "This server runs on threads that share all state."],
    trace: (row) => row.load,
    columns: [
      figure("core", "Core"),
      { name: "load", title: "Load", of: (row) => row.load, show: (row) => gauge(row.load, 1, format.percent(row.load)), right: true },
      { name: "trace", title: "Over time", show: (_, trace) => sparkline(trace, 1) },
      figure("states", "States"),
      figure("moved_in", "Moved in"),
      figure("moved_out", "Moved out"),
    ],
  },
};

function quoted(word) {
  return word === "" || /[\s"']/.test(word) ? JSON.stringify(word) : word;
}

/** A bar with its figure in words. */
function gauge(value, most, words) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("i"));
  const share = most > 0 ? Math.min(1, value / most) : 0;
  bar.firstChild.style.width = `${share * 100}%`;
  if (share > 0.85) bar.classList.add("high");
  return h("span", { class: "gauge" }, words, bar);
}

function sparkline(trace, top) {
  const [width, height] = [120, 18];
  const most = Math.max(top ?? 1, ...trace, 1e-9);
  const points = trace.map((value, index) => `${((index + SAMPLES - trace.length) / (SAMPLES - 1)) * width},${height - 1 - (value / most) * (height - 2)}`);
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, svg("polyline", { points: points.join(" ") }));
}

export class Table {
  constructor(section) {
    this.section = section;
    this.definition = TABLES[section];
    this.rows = [];
    this.sort = [...this.definition.sort];
    this.traces = new Map();
    this.filter = "";
    this.status = h("p", { class: "note", role: "status" });
    this.search = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${this.definition.title.toLowerCase()}`, oninput: () => this.narrow() });
    this.head = h("tr");
    this.body = h("tbody");
    const table = h("table", {}, h("caption", { class: "unseen" }, this.definition.title), h("thead", {}, this.head), this.body);
    this.scroller = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${this.definition.title}, table` }, table);
    this.none = empty(...this.definition.none);
    const title = h("header", {}, h("div", {}, h("h2", {}, this.definition.title), h("p", { class: "about" }, this.definition.about)), this.search);
    this.element = h("section", { class: "panel", "data-table": section, "aria-label": this.definition.title }, title, this.status, this.scroller, this.none);
    this.heads();
  }

  narrow() {
    this.filter = this.search.value.toLowerCase();
    this.fill();
  }

  heads() {
    this.head.replaceChildren(
      ...this.definition.columns.map((column) => {
        const [name, direction] = this.sort;
        const sorted = column.name === name;
        const attributes = { scope: "col", class: column.right ? "right" : null, "aria-sort": sorted ? (direction > 0 ? "ascending" : "descending") : null };
        if (!column.of) return h("th", attributes, column.title);
        const order = () => {
          this.sort = [column.name, sorted ? -direction : 1];
          this.heads();
          this.fill();
          this.head.querySelector(`[data-column="${column.name}"]`)?.focus();
        };
        return h("th", attributes, h("button", { type: "button", class: "sort", "data-column": column.name, onclick: order }, column.title, h("span", { "aria-hidden": "true" }, sorted ? (direction > 0 ? " ↑" : " ↓") : "")));
      }),
    );
  }

  start() {
    this.stop();
    const ended = new AbortController();
    this.ended = ended;
    const read = async () => {
      try {
        this.take((await get(this.section, ended.signal))[this.definition.list]);
        say(this.status, this.cut());
      } catch (error) {
        if (ended.signal.aborted) return;
        say(this.status, `Cannot be read now: ${error.message}`);
      }
      this.timer = setTimeout(read, EVERY);
    };
    void read();
  }

  stop() {
    this.ended?.abort();
    clearTimeout(this.timer);
  }

  take(rows) {
    this.rows = rows;
    const { trace, id } = this.definition;
    if (trace) {
      const present = new Map();
      for (const row of rows) present.set(id(row), [...(this.traces.get(id(row)) ?? []), trace(row)].slice(-SAMPLES));
      this.traces = present;
    }
    this.fill();
  }

  cut() {
    const matching = this.matching().length;
    if (matching <= MOST_ROWS) return "";
    return `The first ${MOST_ROWS} of ${format.exact(matching)} are shown. Sort or filter to see others.`;
  }

  matching() {
    if (this.filter === "") return this.rows;
    const { columns } = this.definition;
    return this.rows.filter((row) => columns.some((column) => column.of && String(column.of(row)).toLowerCase().includes(this.filter)));
  }

  fill() {
    const [name, direction] = this.sort;
    const { columns, id } = this.definition;
    const { of } = columns.find((column) => column.name === name);
    const before = (one, other) => (of(one) < of(other) ? -1 : of(one) > of(other) ? 1 : 0) * direction;
    const rows = [...this.matching()].sort(before).slice(0, MOST_ROWS);
    const cells = (row) =>
      columns.map((column) => {
        const shown = column.show(row, this.traces.get(id(row)) ?? []);
        const classes = [column.right && "right", column.mono && "mono", column.wide && "widest"].filter(Boolean).join(" ");
        return h("td", { class: classes || null, title: typeof shown === "string" && shown.length > 60 ? shown : null }, shown);
      });
    this.body.replaceChildren(...rows.map((row) => h("tr", {}, cells(row))));
    this.scroller.hidden = this.rows.length === 0;
    this.none.hidden = this.rows.length > 0;
    this.search.hidden = this.rows.length === 0;
    say(this.status, this.cut());
  }
}
