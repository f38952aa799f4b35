// The charts over time, drawn by uPlot from the seconds that the page holds.

import { colourOf, h, onNextFrame, say } from "./dom.js";
import * as format from "./format.js";
import { Seconds, callsOf } from "./seconds.js";

/* global uPlot */

/** Lines that one chart has at most: more cannot be distinguished. */
const MOST_LINES = 6;
/** A limit of memory this many times above what is used is named, but has no line. */
const FAR = 4;
/** The least that a logarithmic scale shows: it has no place for zero. */
const LEAST = 0.1;
/** A longer silence is a gap. */
const GAP = 3500;

const RATE = (value) => format.count(value);

/**
 * The charts. `lines` gives each line's name and how it is read from a second; it is asked anew when
 * the names may have changed. `section` is that of the overview without which there is no chart.
 */
export const CHARTS = [
  {
    id: "throughput",
    title: "Throughput",
    unit: "commands a second",
    section: "commands",
    value: RATE,
    lines: (seconds) => {
      const names = Seconds.busiest(seconds);
      const shown = names.slice(0, names.length > MOST_LINES ? MOST_LINES - 1 : MOST_LINES);
      const lines = shown.map((name) => ({ name, of: (second) => commandOf(second, name)?.calls ?? 0 }));
      if (names.length > shown.length) {
        const rest = (second) => callsOf(second) - shown.reduce((sum, name) => sum + (commandOf(second, name)?.calls ?? 0), 0);
        lines.push({ name: "others", of: rest });
      }
      return lines;
    },
  },
  {
    id: "latency",
    title: "Latency",
    unit: "microseconds, of a command",
    section: "commands",
    log: true,
    choice: (seconds) => Seconds.busiest(seconds),
    value: format.micros,
    lines: (_, name) => [
      { name: "p50", of: (second) => commandOf(second, name)?.p50_us ?? null },
      { name: "p99", of: (second) => commandOf(second, name)?.p99_us ?? null },
      { name: "p99.9", of: (second) => commandOf(second, name)?.p999_us ?? null },
    ],
  },
  {
    id: "memory",
    title: "Memory",
    unit: "bytes, by what holds them",
    section: "memory",
    value: format.bytes,
    binary: true,
    unitOf: (second) => (second?.memory.limit > 0 ? `bytes, of ${format.bytes(second.memory.limit)}` : "bytes, without a limit"),
    lines: (seconds) => {
      const last = seconds.at(-1)?.memory;
      if (!last) return [];
      const kinds = Object.entries(last.kinds).filter(([, bytes]) => bytes > 0).sort((one, other) => other[1] - one[1]);
      const lines = [{ name: "used", of: (second) => second.memory.used }];
      // A limit far above would press all other lines to the ground.
      if (last.limit > 0 && last.limit < FAR * last.used) lines.push({ name: "limit", of: (second) => second.memory.limit || null });
      const room = MOST_LINES - lines.length;
      return [...lines, ...kinds.slice(0, room).map(([kind]) => ({ name: kind, of: (second) => second.memory.kinds[kind] ?? null }))];
    },
  },
  {
    id: "connections",
    title: "Connections",
    unit: "clients",
    section: "clients",
    value: RATE,
    lines: () => [{ name: "clients", of: (second) => second.clients }],
  },
  {
    id: "network",
    title: "Network",
    unit: "bytes a second",
    value: (value) => format.bytes(value) + (value === null ? "" : "/s"),
    section: "clients",
    binary: true,
    lines: () => [
      { name: "in", of: (second) => second.net_in },
      { name: "out", of: (second) => second.net_out },
    ],
  },
  {
    id: "keys",
    title: "Keys",
    unit: "entries in all maps",
    value: RATE,
    lines: () => [{ name: "keys", of: (second) => second.keys }],
  },
  {
    id: "gone",
    title: "Expired and evicted",
    unit: "entries a second",
    section: "commands",
    value: RATE,
    lines: () => [
      { name: "expired", of: (second) => second.expired },
      { name: "evicted", of: (second) => second.evicted },
    ],
  },
  {
    id: "log",
    title: "Log lag",
    unit: "records not yet on the disk",
    section: "log",
    value: RATE,
    lines: () => [{ name: "records", of: (second) => second.log?.lag_records ?? null }],
  },
  {
    id: "lag",
    title: "Log lag in bytes",
    unit: "bytes not yet on the disk",
    section: "log",
    value: format.bytes,
    lines: () => [{ name: "bytes", of: (second) => second.log?.lag_bytes ?? null }],
  },
  {
    id: "sync",
    title: "Log sync",
    unit: "microseconds a sync",
    section: "log",
    value: format.micros,
    lines: () => [{ name: "sync", of: (second) => second.log?.sync_us ?? null }],
  },
  {
    id: "snapshots",
    title: "Snapshots",
    unit: "share done, while one runs",
    section: "snapshots",
    value: format.percent,
    lines: () => [
      { name: "progress", of: (second) => (second.snapshots?.running ? (second.snapshots.progress ?? 0) : 0) },
    ],
    note: (second) => snapshotNote(second?.snapshots),
  },
  {
    id: "replicas",
    title: "Replicas",
    unit: "records behind",
    section: "replicas",
    value: RATE,
    lines: (seconds) => {
      const names = [...new Set(seconds.flatMap((second) => second.replicas.map(({ name }) => name)))];
      const behind = (name) => (second) => second.replicas.find((one) => one.name === name)?.lag_records ?? null;
      return names.slice(0, MOST_LINES).map((name) => ({ name, of: behind(name) }));
    },
    note: (second) => (second?.replicas.length ? null : "No other node follows this one."),
  },
];

function commandOf(second, name) {
  return second.commands.find((command) => command.name === name);
}

function snapshotNote(snapshots) {
  if (!snapshots) return "This server takes no snapshots.";
  if (snapshots.running) return null;
  return snapshots.last_at ? `The last one ended at ${format.clock(snapshots.last_at)}.` : "No snapshot was taken yet.";
}

export class Chart {
  /** @param {(typeof CHARTS)[number]} definition */
  constructor(definition, seconds, { height = 150, sync = "seconds" } = {}) {
    this.definition = definition;
    this.seconds = seconds;
    this.height = height;
    this.sync = sync;
    this.span = 600;
    this.names = "";
    this.choice = null;
    this.unit = h("span", { class: "unit" }, definition.unit);
    this.latest = h("div", { class: "latest" });
    this.box = h("div", { class: "plot", "aria-hidden": "true" });
    this.none = h("p", { class: "note" });
    const head = h("figcaption", {}, h("h3", {}, definition.title), this.unit);
    if (definition.choice) {
      this.select = h("select", { "aria-label": `${definition.title} of which command`, onchange: () => this.choose(this.select.value) });
      head.append(this.select);
    }
    this.element = h("figure", { class: "chart", "data-chart": definition.id }, head, this.latest, this.box, this.none);
    this.draw = onNextFrame(() => this.update());
    new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (this.plot && width > 0 && this.plot.width !== width) this.plot.setSize({ width, height: this.height });
      else this.draw();
    }).observe(this.element);
  }

  choose(name) {
    this.choice = name;
    this.names = "";
    this.draw();
  }

  /** Colours belong to the scheme: they are read again. */
  restyle() {
    this.names = "";
    this.draw();
  }

  update() {
    const { definition, box } = this;
    // In a view that is hidden nothing has a size.
    if (this.element.clientWidth === 0) return;
    const seconds = this.seconds.within(this.span);
    if (definition.choice) this.offer(definition.choice(seconds));
    const lines = definition.lines(seconds, this.choice);
    const values = lines.map(() => []);
    const times = [];
    let some = false;
    for (const second of seconds) {
      if (times.length > 0 && second.at - times.at(-1) * 1000 > GAP) {
        times.push(times.at(-1) + 1);
        for (const each of values) each.push(null);
      }
      times.push(second.at / 1000);
      lines.forEach((line, index) => {
        const value = line.of(second);
        const shown = definition.log && value !== null ? Math.max(value, LEAST) : value;
        if (value !== null) some = true;
        values[index].push(shown);
      });
    }
    const last = seconds.at(-1);
    if (definition.unitOf) say(this.unit, definition.unitOf(last));
    say(this.none, definition.note?.(last) ?? (some ? "" : "Nothing was counted in this span yet."));
    this.none.hidden = this.none.textContent === "";
    box.hidden = !some;
    this.figures(lines, last);
    if (!some) return;
    const names = lines.map(({ name }) => name).join("\n");
    if (!this.plot || names !== this.names) {
      this.names = names;
      this.make(lines);
    }
    this.plot.setData([times, ...values], false);
    const end = last.at / 1000;
    this.plot.batch(() => {
      this.plot.setScale("x", { min: end - this.span, max: end });
      this.plot.setScale("y", { min: null, max: null });
    });
  }

  offer(names) {
    if (this.choice === null || (!names.includes(this.choice) && names.length > 0 && !this.chosenByHand)) this.choice = names[0] ?? null;
    const offered = names.includes(this.choice) || this.choice === null ? names : [this.choice, ...names];
    const now = [...this.select.options].map((option) => option.value);
    if (offered.join() !== now.join()) this.select.replaceChildren(...offered.map((name) => h("option", { value: name }, name)));
    if (this.choice !== null) this.select.value = this.choice;
    this.select.hidden = offered.length === 0;
  }

  /** The newest figures in words and colours: the chart's legend, and its text. */
  figures(lines, last) {
    const parts = lines.map((line, index) => {
      const dot = h("i", { class: `dot line-${index + 1}` });
      return h("span", {}, dot, `${line.name} `, h("b", {}, last ? this.definition.value(line.of(last)) : "–"));
    });
    this.latest.replaceChildren(...parts);
  }

  make(lines) {
    this.plot?.destroy();
    const { definition } = this;
    const [soft, line] = [colourOf("--soft"), colourOf("--line")];
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font };
    const series = lines.map(({ name }, index) => ({
      label: name,
      stroke: colourOf(`--line-${index + 1}`),
      width: 1.5,
      points: { show: false },
      value: (_, value) => definition.value(value),
    }));
    const flat = (low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1];
    const scale = definition.log ? { distr: 3 } : { range: (_, low, high) => flat(low, high) };
    const options = {
      width: this.box.clientWidth,
      height: this.height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: this.sync }, drag: { x: false, y: false }, points: { size: 5 } },
      scales: { x: { time: true }, y: scale },
      series: [{}, ...series],
      axes: [
        { ...axis, grid: { show: false }, size: 26, space: 70, values: (_, times) => times.map((time) => format.clock(time * 1000, this.span <= 120)) },
        {
          ...axis,
          size: 62,
          space: 30,
          values: (_, marks) => marks.map((mark) => (mark === null ? "" : definition.value(mark))),
          // On a logarithmic scale, powers of ten alone.
          filter: definition.log ? decades : undefined,
          grid: definition.log ? { stroke: line, width: 1, filter: decades } : axis.grid,
          incrs: definition.binary ? powers() : undefined,
        },
      ],
      hooks: { setCursor: [(plot) => this.read(plot, lines)] },
    };
    this.plot = new uPlot(options, [[], ...lines.map(() => [])], this.box);
  }

  /** The figures under the cursor replace the newest ones while it is there. */
  read(plot, lines) {
    const index = plot.cursor.idx;
    const shown = this.latest.querySelectorAll("b");
    if (shown.length !== lines.length) return;
    const last = this.seconds.last;
    lines.forEach((line, each) => {
      const value = index === null || index === undefined ? (last ? line.of(last) : null) : plot.data[each + 1][index];
      say(shown[each], this.definition.value(value ?? null));
    });
  }
}

function decades(_, marks) {
  return marks.map((mark) => (mark !== null && Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-6 ? mark : null));
}

/** Steps of a scale in bytes. */
function powers() {
  const steps = [];
  for (let power = 0; power < 45; power += 1) steps.push(2 ** power);
  return steps;
}
