// Built by build.mjs from src/: change the modules there.

const modules = {};

// --- api.js ---

modules.api = (() => {
// Requests to the server that served the page.

/** What the server refused, with its own sentence and the status. */
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Kept in memory only: it is gone when the page is. */
let token = null;

function setToken(value) {
  token = value;
}

function hasToken() {
  return token !== null;
}

/** Whether the server lets only known users read. */
let guarded = false;

function setGuarded(value) {
  guarded = value;
}

/** The token for a stream of events, whose requests take no headers; null if it needs none. */
function streamToken() {
  return guarded ? token : null;
}

async function answer(response) {
  const text = await response.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(response.status, response.ok ? "the answer is no JSON" : text || `status ${response.status}`);
  }
  if (!response.ok) throw new Refused(response.status, body.error ?? `status ${response.status}`);
  return body;
}

/** Reads a resource of the API; `signal` ends the request. */
async function get(path, signal) {
  const headers = guarded && token !== null ? { "Tremula-Token": token } : {};
  return answer(await fetch(`/api/${path}`, { signal, headers, cache: "no-store" }));
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token !== null) headers["Tremula-Token"] = token;
  return answer(await fetch(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

function command(words) {
  return post("command", { args: words });
}

/** Exchanges a user's name and password for a token, and keeps that. */
async function login(user, password) {
  const granted = await post("login", { user, password });
  setToken(granted.token);
  return granted.user;
}

return { Refused, setToken, hasToken, setGuarded, streamToken, get, command, login };
})();

// --- dom.js ---

modules.dom = (() => {
// Making elements. No HTML is parsed anywhere: text from the server stays text.

/**
 * An element with attributes and children. `on...` adds a listener, `true` an empty attribute;
 * `null`, `undefined` and `false` leave an attribute or a child out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The same for a shape of SVG. */
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Replaces text only if it changed, so that a screen reader is not made to read it again. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The colour that a custom property of the style sheet has now, in the scheme in use. */
function colourOf(name) {
  const probe = document.getElementById("probe");
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** The same as three bytes. */
function bytesOf(name) {
  return colourOf(name).match(/\d+/g).slice(0, 3).map(Number);
}

/** Calls `paint` once before the next frame, however often it is asked. */
function onNextFrame(paint) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paint();
    });
  };
}

/** Sizes a canvas to its box in device pixels. Returns its context, and width and height in CSS pixels. */
function fit(canvas) {
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const { width, height } = canvas.getBoundingClientRect();
  const [wide, high] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width, height, scale };
}

/** An empty state: what is missing, and what would fill it. */
function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), h("p", {}, text));
}

return { h, svg, say, colourOf, bytesOf, onNextFrame, fit, empty };
})();

// --- format.js ---

modules.format = (() => {
// Figures as text, each with its unit.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const WITH_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const WITHOUT_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Three digits that mean something: 1,234 or 12.3k or 4.56M. */
function count(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return digits(value / 1e9) + "G";
  if (size >= 1e6) return digits(value / 1e6) + "M";
  if (size >= 1e4) return digits(value / 1e3) + "k";
  if (size >= 100 || Number.isInteger(value)) return whole.format(value);
  return digits(value);
}

function digits(value) {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1).replace(/\.0$/, "");
  return value.toFixed(2).replace(/\.?0+$/, "");
}

function exact(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${digits(rest)} ${units[unit]}`;
}

function micros(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e6) return digits(value / 1e6) + " s";
  if (value >= 1e3) return digits(value / 1e3) + " ms";
  return digits(value) + " µs";
}

function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.1) return "< 0.1 %";
  return (value < 10 ? value.toFixed(1) : value.toFixed(0)) + " %";
}

/** A length of time in its two largest units. */
function duration(seconds) {
  const parts = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  let rest = Math.max(0, Math.floor(seconds));
  const shown = [];
  for (const [size, unit] of parts) {
    const times = Math.floor(rest / size);
    rest -= times * size;
    if (times > 0) shown.push(`${times} ${unit}`);
    if (shown.length === 2) break;
  }
  return shown.join(" ") || "0 s";
}

function clock(milliseconds, seconds = true) {
  return (seconds ? WITH_SECONDS : WITHOUT_SECONDS).format(milliseconds);
}

/** A key, cut in its middle if it is long; the empty key has a name. */
function key(text, most = 40) {
  if (text === "") return "(lowest)";
  const letters = [...text];
  if (letters.length <= most) return text;
  const kept = most - 1;
  const front = Math.ceil(kept / 2);
  return letters.slice(0, front).join("") + "…" + letters.slice(letters.length - (kept - front)).join("");
}

return { count, exact, bytes, micros, percent, duration, clock, key };
})();

// --- seconds.js ---

modules.seconds = (() => {
// The figures of each second, the last hour of them.

const MOST = 3600;

class Seconds {
  constructor() {
    /** Oldest first. */
    this.all = [];
  }

  get last() {
    return this.all.at(-1);
  }

  /** Adds a second that is newer than all others; others are there already. */
  add(second) {
    if (this.last && second.at <= this.last.at) return;
    this.all.push(second);
    if (this.all.length > MOST) this.all.splice(0, this.all.length - MOST);
  }

  /** Adds a history, oldest first, to what is there. */
  merge(history) {
    const byTime = new Map(this.all.map((second) => [second.at, second]));
    for (const second of history) byTime.set(second.at, second);
    this.all = [...byTime.values()].sort((one, other) => one.at - other.at).slice(-MOST);
  }

  /** The seconds of the last `span` seconds. */
  within(span) {
    if (!this.last) return [];
    const from = this.last.at - span * 1000;
    let first = this.all.length;
    while (first > 0 && this.all[first - 1].at > from) first -= 1;
    return this.all.slice(first);
  }

  /** The commands with most calls among some seconds, by name, busiest first. */
  static busiest(seconds) {
    const calls = new Map();
    for (const second of seconds) {
      for (const { name, calls: more } of second.commands) calls.set(name, (calls.get(name) ?? 0) + more);
    }
    return [...calls].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).map(([name]) => name);
  }
}

function callsOf(second) {
  return second.commands.reduce((sum, command) => sum + command.calls, 0);
}

return { Seconds, callsOf };
})();

// --- charts.js ---

modules.charts = (() => {
// The charts over time, drawn by uPlot from the seconds that the page holds.

const { colourOf, h, onNextFrame, say } = modules.dom;
const format = modules.format;
const { Seconds, callsOf } = modules.seconds;

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
const CHARTS = [
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

class Chart {
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

return { CHARTS, Chart };
})();

// --- words.js ---

modules.words = (() => {
// Command lines: how they are cut into words, and how replies are shown.

/**
 * Cuts a line as redis-cli does: words are separated by blanks; "..." knows \n, \r, \t, \", \\ and
 * \xHH; '...' knows \'. Throws if a quote does not end, or if a word follows it at once.
 */
function split(line) {
  const words = [];
  let at = 0;
  while (at < line.length) {
    if (/\s/.test(line[at])) {
      at += 1;
      continue;
    }
    const quote = line[at];
    if (quote !== '"' && quote !== "'") {
      const end = line.slice(at).search(/\s/);
      words.push(end < 0 ? line.slice(at) : line.slice(at, at + end));
      at = end < 0 ? line.length : at + end;
      continue;
    }
    let word = "";
    at += 1;
    while (line[at] !== quote) {
      if (at >= line.length) throw new Error(`the quote ${quote} does not end`);
      if (line[at] === "\\" && at + 1 < line.length) {
        const hex = quote === '"' ? /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at)) : null;
        if (hex) {
          word += String.fromCharCode(parseInt(hex[1], 16));
          at += 4;
          continue;
        }
        const letter = line[at + 1];
        const known = quote === '"' ? { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" } : { "'": "'" };
        word += letter in known ? known[letter] : quote === '"' ? letter : "\\" + letter;
        at += 2;
        continue;
      }
      word += line[at];
      at += 1;
    }
    at += 1;
    if (at < line.length && !/\s/.test(line[at])) throw new Error(`a blank must follow the closing quote ${quote}`);
    words.push(word);
  }
  return words;
}

/** Elements of a list that are shown. */
const MOST_SHOWN = 500;

/** A reply as lines of text, as redis-cli shows it. */
function shown(reply, indent = "") {
  if (reply === null || reply === undefined) return "(nil)";
  if (typeof reply === "boolean") return reply ? "(true)" : "(false)";
  if (typeof reply === "number") return `(number) ${reply}`;
  if (typeof reply === "string") return reply;
  if ("status" in reply) return reply.status;
  if ("error" in reply) return `(error) ${reply.error}`;
  if ("bulk" in reply) return `"${reply.bulk}"`;
  if ("array" in reply) return list(reply.array, indent, (each, inner) => shown(each, inner));
  if ("map" in reply) return list(reply.map, indent, ([key, value], inner) => `${shown(key, inner)} => ${shown(value, inner)}`);
  return JSON.stringify(reply);
}

function list(elements, indent, one) {
  if (elements.length === 0) return "(empty)";
  const digits = String(Math.min(elements.length, MOST_SHOWN)).length;
  const inner = indent + " ".repeat(digits + 2);
  const lines = elements.slice(0, MOST_SHOWN).map((element, index) => {
    const number = `${String(index + 1).padStart(digits)}) `;
    return (index === 0 ? "" : indent) + number + one(element, inner);
  });
  if (elements.length > MOST_SHOWN) lines.push(`${indent}… and ${elements.length - MOST_SHOWN} more`);
  return lines.join("\n");
}

/** The commands that a line may become: those that begin with what is typed, words apart. */
function completions(commands, line) {
  const typed = line.trimStart().toUpperCase();
  if (typed === "") return [];
  return commands.filter(({ name }) => name.toUpperCase().startsWith(typed) && name.toUpperCase() !== typed);
}

/** The command that a line calls: the longest name that it begins with. */
function commandAt(commands, line) {
  const typed = line.trim().toUpperCase().replace(/\s+/g, " ");
  let best = null;
  for (const command of commands) {
    const name = command.name.toUpperCase().replace("|", " ");
    if ((typed === name || typed.startsWith(name + " ")) && name.length > (best?.name.length ?? 0)) best = command;
  }
  return best;
}

return { split, shown, completions, commandAt };
})();

// --- console.js ---

modules.console = (() => {
// A console: commands with completion, history, and the help of the one at hand.

const { command, get } = modules.api;
const { h, say } = modules.dom;
const { commandAt, completions, shown, split } = modules.words;

const MOST_OFFERED = 8;
/** Lines of history, and replies on the screen. */
const MOST_KEPT = 200;

class Console {
  /** @param {{ask: (why: string) => Promise<boolean>}} session Asks for a token or a login. */
  constructor(session) {
    this.session = session;
    this.commands = [];
    this.history = [];
    this.at = 0;
    this.offered = [];
    this.chosen = -1;
    this.log = h("div", { class: "replies", role: "log", "aria-label": "Replies", tabindex: "0" });
    this.none = h("div", { class: "empty" }, h("strong", {}, "A console"), h("p", {}, "Type a command, such as PING or RANGE - + LIMIT 10. Tab completes, the up arrow brings back what was typed before."));
    this.input = h("input", {
      type: "text",
      id: "line",
      role: "combobox",
      "aria-label": "Command",
      "aria-expanded": "false",
      "aria-controls": "offers",
      "aria-autocomplete": "list",
      "aria-describedby": "help",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder: "Command",
      oninput: () => this.typed(),
      onkeydown: (event) => this.key(event),
      onblur: () => this.offer([]),
    });
    this.offers = h("ul", { class: "offers", id: "offers", role: "listbox", "aria-label": "Completions", hidden: true });
    this.help = h("div", { class: "help", id: "help" });
    const form = h("form", { class: "line", onsubmit: (event) => this.submit(event) }, h("span", { "aria-hidden": "true", class: "prompt" }, ">"), this.input, h("button", { type: "submit" }, "Run"), this.offers);
    this.element = h("section", { class: "panel console", "aria-label": "Console" }, h("header", {}, h("div", {}, h("h2", {}, "Console"))), this.none, this.log, form, this.help);
    this.log.hidden = true;
    this.explain();
  }

  async start() {
    this.input.focus({ preventScroll: true });
    if (this.commands.length > 0) return;
    try {
      this.commands = (await get("commands")).commands;
      this.typed();
    } catch (error) {
      say(this.help, `The commands cannot be read now: ${error.message}`);
    }
  }

  stop() {}

  typed() {
    this.offer(completions(this.commands, this.input.value).slice(0, MOST_OFFERED));
    this.explain();
  }

  explain() {
    const known = commandAt(this.commands, this.chosen >= 0 ? this.offered[this.chosen].name : this.input.value);
    if (!known) {
      this.help.replaceChildren(h("span", { class: "soft" }, this.commands.length > 0 ? `${this.commands.length} commands are known.` : "A command's syntax appears here."));
      return;
    }
    const writes = known.writes ? h("span", { class: "tag" }, "writes") : null;
    this.help.replaceChildren(h("code", {}, known.syntax || known.name), " ", writes, h("p", {}, known.summary));
  }

  offer(commands) {
    this.offered = commands;
    this.chosen = -1;
    this.offers.replaceChildren(
      ...commands.map((each, index) =>
        h("li", { role: "option", id: `offer-${index}`, "aria-selected": "false", onpointerdown: (event) => this.take(event, index) }, h("b", {}, each.name), h("span", {}, each.summary)),
      ),
    );
    this.offers.hidden = commands.length === 0;
    this.input.setAttribute("aria-expanded", String(commands.length > 0));
    this.input.removeAttribute("aria-activedescendant");
  }

  choose(index) {
    this.chosen = index;
    [...this.offers.children].forEach((child, each) => child.setAttribute("aria-selected", String(each === index)));
    this.offers.children[index]?.scrollIntoView({ block: "nearest" });
    if (index >= 0) this.input.setAttribute("aria-activedescendant", `offer-${index}`);
    this.explain();
  }

  take(event, index) {
    event.preventDefault();
    this.input.value = `${this.offered[index].name.replace("|", " ")} `;
    this.typed();
  }

  key(event) {
    const many = this.offered.length;
    if (event.key === "Tab" && many > 0 && !event.shiftKey) return this.take(event, Math.max(0, this.chosen));
    if (event.key === "Escape" && many > 0) return this.offer([]);
    if (event.key === "Enter" && this.chosen >= 0) return this.take(event, this.chosen);
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    const down = event.key === "ArrowDown";
    // With completions open the arrows choose one; the history is behind the first.
    if (many > 0 && (down || this.chosen > 0)) return this.choose(Math.min(many - 1, this.chosen + (down ? 1 : -1)));
    this.at = Math.min(this.history.length, Math.max(0, this.at + (down ? 1 : -1)));
    this.input.value = this.history[this.at] ?? "";
    this.offer([]);
    this.explain();
  }

  async submit(event) {
    event.preventDefault();
    const line = this.input.value.trim();
    if (line === "") return;
    this.history = [...this.history.filter((each) => each !== line), line].slice(-MOST_KEPT);
    this.at = this.history.length;
    this.input.value = "";
    this.typed();
    const reply = this.entry(line);
    try {
      await this.run(split(line), reply);
    } catch (error) {
      show(reply, `(refused) ${error.message}`, true);
    }
    this.log.scrollTop = this.log.scrollHeight;
  }

  async run(words, reply) {
    try {
      answer(reply, await command(words));
    } catch (error) {
      if (error.status !== 401 && error.status !== 403) throw error;
      show(reply, `(refused) ${error.message}`, true);
      if (!(await this.session.ask(error.message))) return;
      answer(reply, await command(words));
      this.input.focus();
    }
  }

  entry(line) {
    const reply = h("pre", {}, "…");
    this.log.append(h("div", { class: "asked" }, h("span", { "aria-hidden": "true" }, "> "), line), reply);
    while (this.log.childElementCount > 2 * MOST_KEPT) this.log.firstElementChild.remove();
    this.none.hidden = true;
    this.log.hidden = false;
    this.log.scrollTop = this.log.scrollHeight;
    return reply;
  }
}

function answer(element, { reply }) {
  show(element, shown(reply), reply !== null && typeof reply === "object" && "error" in reply);
}

function show(element, text, isError) {
  element.textContent = text;
  element.classList.toggle("error", isError);
}

return { Console };
})();

// --- live.js ---

modules.live = (() => {
// The stream of events, and whether it flows.
//
// The browser connects again by itself after a loss, and then asks for what it missed
// (`Last-Event-ID`). It gives up when the answer is no stream (the server is starting, say): then a
// new stream is opened here after a while.

const { streamToken } = modules.api;

/** After so long without an event the stream counts as stalled; there is one each second. */
const SILENCE = 5000;
const RETRY = 1500;

class Live extends EventTarget {
  constructor() {
    super();
    /** "connecting", "live", "stalled" or "lost". */
    this.state = "connecting";
    this.since = Date.now();
    this.map = null;
    this.source = null;
    this.lastEvent = 0;
    this.wasLost = false;
    setInterval(() => this.watch(), 1000);
  }

  /** Opens the stream, with the columns of a map if one is named. */
  open(map) {
    this.map = map;
    this.source?.close();
    clearTimeout(this.again);
    const query = new URLSearchParams();
    if (map !== null) query.set("map", map);
    const token = streamToken();
    if (token !== null) query.set("token", token);
    const source = new EventSource(`/api/events?${query}`);
    this.source = source;
    source.addEventListener("open", () => this.flows());
    source.addEventListener("second", (event) => this.pass("second", event));
    source.addEventListener("map", (event) => this.pass("map", event, map));
    source.addEventListener("error", () => this.lost(source));
  }

  pass(name, event, map) {
    this.lastEvent = Date.now();
    this.flows();
    let data;
    try {
      data = JSON.parse(event.data);
    } catch {
      return;
    }
    this.dispatchEvent(new CustomEvent(name, { detail: name === "map" ? { map, column: data } : data }));
  }

  flows() {
    const resumed = this.wasLost;
    this.wasLost = false;
    this.lastEvent = Date.now();
    this.become("live");
    if (resumed) this.dispatchEvent(new Event("resumed"));
  }

  lost(source) {
    if (source !== this.source) return;
    this.wasLost = true;
    this.become("lost");
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.again);
    this.again = setTimeout(() => this.open(this.map), RETRY);
  }

  watch() {
    const silence = Date.now() - this.lastEvent;
    if (this.state === "live" && silence > SILENCE) this.become("stalled");
    // A connection may die without an end: then only a new one shows whether the server is there.
    if (this.state === "stalled" && silence > 2 * SILENCE) {
      this.wasLost = true;
      this.become("lost");
      this.open(this.map);
    }
    this.dispatchEvent(new Event("state"));
  }

  become(state) {
    if (state === this.state) return;
    this.state = state;
    this.since = Date.now();
    this.dispatchEvent(new Event("state"));
  }
}

return { Live };
})();

// --- colour.js ---

modules.colour = (() => {
// Colour scales that are read as data. Each runs evenly in lightness (in OKLab, where equal steps
// look equal), from close to the background to far from it: more is always further from the page,
// in the light scheme and in the dark one, and for a reader that sees no hue at all.

const STEPS = 256;

/** Lightness at both ends, for each scheme. */
const LIGHTNESS = { light: [0.968, 0.27], dark: [0.235, 0.945] };

/** Hues in degrees at the pale end and at the deep end of the light scheme, and the chroma between. */
const RAMPS = {
  waits: { hues: [98, -70], chroma: 0.175 },
  writes: { hues: [205, 275], chroma: 0.13 },
  reads: { hues: [125, 185], chroma: 0.13 },
  memory: { hues: [330, 300], chroma: 0.14 },
};

/** @type {Map<string, Uint32Array>} */
const tables = new Map();

/** 256 colours of a layer as pixels (RGBA in memory order). */
function ramp(layer, scheme) {
  const name = `${layer} ${scheme}`;
  let table = tables.get(name);
  if (!table) {
    table = new Uint32Array(STEPS);
    const bytes = new Uint8ClampedArray(table.buffer);
    for (let step = 0; step < STEPS; step += 1) {
      bytes.set([...shade(layer, scheme, step / (STEPS - 1)), 255], step * 4);
    }
    tables.set(name, table);
  }
  return table;
}

/** The colour at `share` (0 to 1) of a layer's scale, as three bytes. */
function shade(layer, scheme, share) {
  const { hues, chroma } = RAMPS[layer];
  const [from, to] = LIGHTNESS[scheme];
  const lightness = from + (to - from) * share;
  // The dark scheme runs through the same hues the other way: its bright end is the pale one.
  const along = scheme === "light" ? share : 1 - share;
  const hue = ((hues[0] + (hues[1] - hues[0]) * along) * Math.PI) / 180;
  const strength = chroma * Math.sin(Math.PI * (0.03 + 0.92 * along)) ** 0.7;
  return inGamut(lightness, strength, hue);
}

function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** Less chroma until the screen can show it: lightness, which carries the figure, stays. */
function inGamut(lightness, chroma, hue) {
  for (let strength = chroma; strength > 0; strength -= 0.005) {
    const colour = linear(lightness, strength * Math.cos(hue), strength * Math.sin(hue));
    if (colour.every((part) => part >= -0.0005 && part <= 1.0005)) return colour.map(encoded);
  }
  return linear(lightness, 0, 0).map(encoded);
}

/** From OKLab to linear sRGB (Ottosson, 2020). */
function linear(lightness, a, b) {
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ];
}

function encoded(part) {
  const clamped = Math.min(1, Math.max(0, part));
  const value = clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055;
  return Math.round(value * 255);
}

/** The scheme in use: the reader's choice, or else the system's. */
function scheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

return { ramp, shade, css, scheme };
})();

// --- axis.js ---

modules.axis = (() => {
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
const MOST_BOUNDS = 4096;

/**
 * @typedef {{id: number, raw: string[], text: string[]}} Bounds
 * The lowest keys of a column's buckets; the first bucket begins at the lowest key of all, so its
 * bound counts as the empty key.
 */

class Axis {
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
function lastNotAbove(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

return { MOST_BOUNDS, Axis, lastNotAbove };
})();

// --- columns.js ---

modules.columns = (() => {
// The columns of one map: what the server sent, by time, at two widths.

const { lastNotAbove } = modules.axis;

/** Widths in milliseconds, and how many columns of each are kept: an hour, and a day. */
const WIDTHS = { fine: 1000, coarse: 10_000 };
const MOST = { 1000: 3600, 10000: 8640 };

/** The figures of a bucket. */
const FIGURES = ["entries", "bytes", "acquisitions", "waits", "writes", "reads"];

/** Equal bounds of different columns are one object, so that they can be compared by their number. */
class BoundsTable {
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
function decode(sent, before, table) {
  const bounds = sent.raw && sent.bounds ? table.of(sent.raw, sent.bounds) : before;
  if (!bounds || !FIGURES.every((name) => sent[name]?.length === bounds.raw.length)) return null;
  const column = { at: sent.at - sent.width_ms, width: sent.width_ms, end: sent.at, seconds: sent.width_ms / 1000, bounds, marks: sent.marks ?? [] };
  for (const name of FIGURES) column[name] = Float32Array.from(sent[name]);
  return column;
}

/** Columns of one width, oldest first, none twice. */
class Tier {
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
function bucketAt(axis, column, position) {
  return lastNotAbove(axis.edges(column.bounds).subarray(0, column.bounds.raw.length), position);
}

/** The share of acquisitions that waited, or null if no lock was taken. */
function share(column, bucket) {
  const taken = column.acquisitions[bucket];
  return taken > 0 ? column.waits[bucket] / taken : null;
}

/** The bucket with most waits, or -1 if no thread waited. */
function hottest(column) {
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

return { WIDTHS, FIGURES, BoundsTable, decode, Tier, bucketAt, share, hottest };
})();

// --- mapdata.js ---

modules.mapdata = (() => {
// The columns of the map in view: loaded piece by piece, and kept up to date by the stream.
//
// A day is 8,640 columns of up to 256 buckets. It is asked for in pieces, the newest first, and each
// is drawn as it comes, so that the page never stops to read all of it.

const { get } = modules.api;
const { BoundsTable, Tier, WIDTHS, decode } = modules.columns;

/** Columns in one request. */
const PIECE = 200;
const REACH = { [WIDTHS.fine]: 3_600_000, [WIDTHS.coarse]: 86_400_000 };

class MapData {
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

return { MapData };
})();

// --- paint.js ---

modules.paint = (() => {
// Paints the map's cells: a picture of device pixels, one figure a pixel, coloured by a scale.

const { ramp } = modules.colour;

/**
 * The layers. `parts` gives what a bucket adds to a pixel's sum and weight: the pixel shows the
 * one over the other. `curve` bends the scale so that small figures can be distinguished.
 */
const LAYERS = {
  waits: {
    title: "Waits",
    of: "share of acquisitions that waited for a lock",
    kind: "share",
    curve: 0.5,
    top: () => 1,
  },
  writes: { title: "Writes", of: "writes a second in a bucket", kind: "rate", curve: 0.5, top: niceTop },
  reads: { title: "Reads", of: "reads a second in a bucket (estimated from a sample)", kind: "rate", curve: 0.5, top: niceTop },
  memory: { title: "Memory", of: "bytes in a bucket", kind: "level", curve: 0.5, top: niceTop },
};

/** What stands for a share of nothing. */
const NONE = -1;

/** The figure that a layer reads from a column. */
const FIGURE = { writes: "writes", reads: "reads", memory: "bytes" };

/** 1, 2 or 5 times a power of ten, not below the value. */
function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

/** How far along its scale a figure is, from 0 to 1. */
function along(layer, value, top) {
  return Math.min(1, Math.max(0, value / top)) ** LAYERS[layer].curve;
}

/**
 * The figures of every pixel: NaN where nothing was recorded, NONE where no lock was taken.
 * @param {{columns: any[], first: number, end: number}} slice The columns in view.
 * @param {import("./axis.js").Axis} axis
 * @param {{from: number, to: number, low: number, high: number}} view Times, and heights from 0 to 1.
 */
function figures(layer, slice, axis, view, width, height) {
  const cells = new Float32Array(width * height).fill(NaN);
  const sums = new Float64Array(height);
  const weights = new Float64Array(height);
  const step = (view.to - view.from) / width;
  let most = 0;
  let index = slice.first;
  let painted = null;
  for (let x = 0; x < width; x += 1) {
    const begin = view.from + x * step;
    while (index < slice.end && slice.columns[index].at + slice.columns[index].width <= begin) index += 1;
    let end = index;
    while (end < slice.end && slice.columns[end].at < begin + step) end += 1;
    if (end === index) {
      painted = null;
      continue;
    }
    // Zoomed in, a column is many pixels wide: the figures are those of the pixel before.
    const same = painted && painted.index === index && painted.end === end;
    if (!same) {
      sums.fill(0);
      weights.fill(0);
      for (let each = index; each < end; each += 1) add(layer, slice.columns[each], axis, view, sums, weights);
      painted = { index, end };
    }
    for (let y = 0; y < height; y += 1) {
      const value = weights[y] === 0 ? NONE : sums[y] / weights[y];
      cells[y * width + x] = value;
      if (value > most) most = value;
    }
  }
  return { cells, most };
}

/** Adds one column's figures to the rows that its buckets cover. */
function add(layer, column, axis, view, sums, weights) {
  const height = sums.length;
  const edges = axis.edges(column.bounds);
  const scale = height / (view.high - view.low);
  const { kind } = LAYERS[layer];
  const over = kind === "share" ? column.waits : column[FIGURE[layer]];
  const { seconds } = column;
  let lastRow = -1;
  for (let bucket = 0; bucket < over.length; bucket += 1) {
    const begin = (edges[bucket] - view.low) * scale;
    const end = (edges[bucket + 1] - view.low) * scale;
    let [from, to] = [Math.round(begin), Math.round(end)];
    // A bucket that is less than a row counts in the row that its middle lies in.
    if (from === to) [from, to] = [Math.floor((begin + end) / 2), Math.floor((begin + end) / 2) + 1];
    if (to <= 0) continue;
    if (from >= height) break;
    for (let row = Math.max(0, from); row < Math.min(height, to); row += 1) {
      sums[row] += over[bucket];
      // The rates of buckets that share a row add up; the time that they stand for does not.
      if (kind === "share") weights[row] += column.acquisitions[bucket];
      else if (row > lastRow) weights[row] += kind === "rate" ? seconds : 1;
      if (row > lastRow) lastRow = row;
    }
  }
}

/**
 * Turns figures into colours. Where nothing was recorded, the pixel stays clear; where no lock was
 * taken, it has the colour `none`, three bytes.
 */
function colours(layer, scheme, { cells }, top, none) {
  const table = ramp(layer, scheme);
  const pixels = new Uint32Array(cells.length);
  const { curve } = LAYERS[layer];
  const [blank] = new Uint32Array(Uint8Array.of(...none, 255).buffer);
  for (let index = 0; index < cells.length; index += 1) {
    const value = cells[index];
    if (value !== value) continue;
    pixels[index] = value === NONE ? blank : table[Math.round(Math.min(1, value / top) ** curve * 255)];
  }
  return new Uint8ClampedArray(pixels.buffer);
}

/** Steps of time between ticks, in milliseconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].map((seconds) => seconds * 1000);

/** Round times for about one tick every `apart` pixels, in the reader's time zone. */
function ticks(from, to, width, apart = 96) {
  const least = ((to - from) / width) * apart;
  const step = STEPS.find((step) => step >= least) ?? STEPS.at(-1);
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const times = [];
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) times.push(time);
  return { times, step };
}

return { LAYERS, NONE, along, figures, colours, ticks };
})();

// --- mapdraw.js ---

modules.mapdraw = (() => {
// Draws what lies over the map's cells: keys and times along its sides, marks, and the cursor.

const { colourOf } = modules.dom;
const { clock, key } = modules.format;
const { ticks } = modules.paint;

/** Marks nearer than this are drawn as one; nearer than more, if they are too many to be read. */
const APART = 12;
const MOST_MARKS = 250;

/** Where the cells are inside of the canvas, in CSS pixels. */
function plotOf(width, height) {
  const narrow = width < 560;
  const left = narrow ? 74 : 148;
  return { left, top: 6, width: Math.max(1, width - left - 10), height: Math.max(1, height - 6 - 24), narrow };
}

class Over {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context, plot, view, axis) {
    this.context = context;
    this.plot = plot;
    this.view = view;
    this.axis = axis;
    this.ink = colourOf("--ink");
    this.soft = colourOf("--soft");
    this.line = colourOf("--line");
    this.paper = colourOf("--plot");
    this.accent = colourOf("--accent");
  }

  x(time) {
    const { plot, view } = this;
    return plot.left + ((time - view.from) / (view.to - view.from)) * plot.width;
  }

  y(position) {
    const { plot, view } = this;
    return plot.top + ((position - view.low) / (view.high - view.low)) * plot.height;
  }

  frame() {
    const { context, plot } = this;
    context.strokeStyle = this.line;
    context.lineWidth = 1;
    context.strokeRect(plot.left - 0.5, plot.top - 0.5, plot.width + 1, plot.height + 1);
  }

  times() {
    const { context, plot, view } = this;
    const { times, step } = ticks(view.from, view.to, plot.width, plot.narrow ? 72 : 110);
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    context.fillStyle = this.soft;
    context.strokeStyle = this.line;
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const time of times) {
      const x = Math.round(this.x(time)) + 0.5;
      context.beginPath();
      context.moveTo(x, plot.top + plot.height);
      context.lineTo(x, plot.top + plot.height + 4);
      context.stroke();
      const text = clock(time, step < 60_000);
      const half = context.measureText(text).width / 2;
      if (x - half < 0 || x + half > plot.left + plot.width + 10) continue;
      context.fillText(text, x, plot.top + plot.height + 8);
    }
  }

  /** The keys at even distances, each at the bound that lies there. */
  keys() {
    const { context, plot, axis } = this;
    context.font = `11px ${getComputedStyle(document.body).getPropertyValue("--mono") || "monospace"}`;
    context.fillStyle = this.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const letters = plot.narrow ? 9 : 19;
    let lowest = -Infinity;
    let before = -1;
    const apart = 26;
    for (let y = plot.top; y < plot.top + plot.height - 4; y += apart / 2) {
      const position = this.view.low + ((y - plot.top) / plot.height) * (this.view.high - this.view.low);
      let index = axis.indexAt(position);
      if (axis.at[index] < position - 1e-9 && index + 1 < axis.at.length) index += 1;
      const at = this.y(axis.at[index]);
      if (index === before || at < lowest + apart || at < plot.top - 1 || at > plot.top + plot.height - 5) continue;
      context.fillText(key(axis.text[index], letters), plot.left - 9, Math.max(at, plot.top + 5));
      context.strokeStyle = this.line;
      context.beginPath();
      context.moveTo(plot.left - 5, Math.round(at) + 0.5);
      context.lineTo(plot.left, Math.round(at) + 0.5);
      context.stroke();
      lowest = at;
      before = index;
    }
  }

  /** One sign for each place where nodes split, joined or changed their format. */
  marks(slice) {
    let places = [];
    for (let index = slice.first; index < slice.end; index += 1) {
      const column = slice.columns[index];
      if (column.marks.length === 0) continue;
      const edges = this.axis.edges(column.bounds);
      const x = this.x(column.at + column.width / 2);
      for (const { bucket, kind, n } of column.marks) {
        if (bucket >= edges.length - 1) continue;
        places.push({ x, y: this.y((edges[bucket] + edges[bucket + 1]) / 2), kind, n });
      }
    }
    let apart = APART;
    places = gathered(places, apart);
    while (places.length > MOST_MARKS) {
      apart *= 1.5;
      places = gathered(places, apart);
    }
    const { context, plot } = this;
    context.save();
    context.beginPath();
    context.rect(plot.left, plot.top, plot.width, plot.height);
    context.clip();
    context.lineWidth = 2;
    context.lineJoin = "round";
    context.strokeStyle = this.paper;
    context.fillStyle = this.ink;
    for (const { x, y, kind, n } of places) {
      sign(context, kind, x, y, Math.min(5, 3 + Math.log10(n)));
      context.stroke();
      context.fill();
    }
    context.restore();
  }

  /** The cursor: a line for its time and one for its key, and a box around the bucket there. */
  cursor({ x, y }, box) {
    const { context, plot } = this;
    context.save();
    context.beginPath();
    context.rect(plot.left, plot.top, plot.width, plot.height);
    context.clip();
    context.strokeStyle = this.ink;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, plot.top);
    context.lineTo(Math.round(x) + 0.5, plot.top + plot.height);
    context.moveTo(plot.left, Math.round(y) + 0.5);
    context.lineTo(plot.left + plot.width, Math.round(y) + 0.5);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (box) {
      const left = this.x(box.from);
      const top = this.y(box.low);
      const wide = Math.max(3, this.x(box.to) - left);
      const high = Math.max(3, this.y(box.high) - top);
      context.strokeStyle = this.paper;
      context.lineWidth = 4;
      context.strokeRect(left - 1, top - 1, wide + 2, high + 2);
      context.strokeStyle = this.accent;
      context.lineWidth = 2;
      context.strokeRect(left - 1, top - 1, wide + 2, high + 2);
    }
    context.restore();
  }
}

/** Marks of one kind in one square become one, at their middle. */
function gathered(marks, apart) {
  const squares = new Map();
  for (const { x, y, kind, n } of marks) {
    const name = `${Math.round(x / apart)} ${Math.round(y / apart)} ${kind}`;
    const square = squares.get(name);
    if (square) {
      square.x += ((x - square.x) * n) / (square.n + n);
      square.y += ((y - square.y) * n) / (square.n + n);
      square.n += n;
    } else {
      squares.set(name, { x, y, kind, n });
    }
  }
  return [...squares.values()];
}

/** A path: a split opens to the right, a join closes, a change of format is a diamond. */
function sign(context, kind, x, y, size) {
  context.beginPath();
  if (kind === "split") {
    context.moveTo(x - size, y);
    context.lineTo(x + size, y - size);
    context.lineTo(x + size, y + size);
  } else if (kind === "join") {
    context.moveTo(x + size, y);
    context.lineTo(x - size, y - size);
    context.lineTo(x - size, y + size);
  } else {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x, y + size);
    context.lineTo(x - size, y);
  }
  context.closePath();
}

return { plotOf, Over };
})();

// --- mapview.js ---

modules.mapview = (() => {
// The contention map: its state, how it is drawn, and how it is moved about.

const { Axis } = modules.axis;
const { scheme } = modules.colour;
const { bucketAt, hottest, share } = modules.columns;
const { bytesOf, fit, onNextFrame, say } = modules.dom;
const format = modules.format;
const { MapData } = modules.mapdata;
const { Over, plotOf } = modules.mapdraw;
const { LAYERS, colours, figures } = modules.paint;

const SHORTEST = 10_000;
const LONGEST = 86_400_000;
/** More columns than this are painted in CSS pixels rather than in the device's. */
const MANY_COLUMNS = 1500;

class MapView extends EventTarget {
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

return { MapView };
})();

// --- tree.js ---

modules.tree = (() => {
// The leaves of one table's tree, each a cell of one canvas: in key order from left to right, row
// by row. Ten thousand leaves are one element.

const { get } = modules.api;
const { css, ramp, scheme, shade } = modules.colour;
const { colourOf, fit, h, onNextFrame, say } = modules.dom;
const format = modules.format;

const EVERY = 2000;
const LARGEST = 28;
const SMALLEST = 3;

/** How a leaf is coloured. */
const SHADES = {
  waits: { title: "Waits", ramp: "waits", of: (leaf) => (leaf.acquisitions > 0 ? leaf.waits / leaf.acquisitions : null), top: () => 1, show: format.percent },
  entries: { title: "Entries", ramp: "writes", of: (leaf) => leaf.entries, top: (most) => most, show: format.count },
  memory: { title: "Memory", ramp: "memory", of: (leaf) => leaf.bytes, top: (most) => most, show: format.bytes },
  format: { title: "Format", ramp: null, of: (leaf) => leaf.format || "one format" },
};

class Tree {
  constructor() {
    this.map = null;
    this.nodes = [];
    this.shade = "waits";
    this.cursor = null;
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "Leaves of the tree in key order. Arrow keys move over leaves.",
      "aria-describedby": "leaf",
    });
    this.readout = h("p", { class: "readout", id: "leaf", "aria-live": "polite" });
    this.facts = h("p", { class: "about", role: "status" });
    this.legend = h("div", { class: "legend" });
    this.box = h("div", { class: "leaves" }, this.canvas);
    this.none = h("div", { class: "empty" });
    this.choices = h("div", { class: "segments", role: "radiogroup", "aria-label": "Colour of leaves" });
    for (const [name, { title }] of Object.entries(SHADES)) {
      const input = h("input", { type: "radio", name: "shade", value: name, id: `shade-${name}`, onchange: () => this.colour(name) });
      input.checked = name === this.shade;
      this.choices.append(input, h("label", { for: `shade-${name}` }, title));
    }
    const head = h("header", {}, h("div", {}, h("h2", {}, "Tree"), this.facts), this.choices);
    this.element = h("section", { class: "panel tree", "aria-label": "Tree" }, head, this.box, this.readout, this.legend, this.none);
    this.draw = onNextFrame(() => this.paint());
    new ResizeObserver(this.draw).observe(this.box);
    this.listen();
  }

  colour(name) {
    this.shade = name;
    this.draw();
  }

  /** Shows the tree of a map; `map` is as the server lists it. */
  show(map) {
    if (map?.id === this.map?.id) return;
    this.map = map;
    this.nodes = [];
    this.cursor = null;
    if (this.running) this.start();
  }

  start() {
    this.stop();
    this.running = true;
    const ended = new AbortController();
    this.ended = ended;
    const { map } = this;
    if (!map || !map.walked) {
      this.nothing(map ? map.reason || "This engine cannot be walked." : "There is no table yet.");
      return;
    }
    const read = async () => {
      try {
        const sent = await get(`map/${encodeURIComponent(map.id)}/tree`, ended.signal);
        this.nodes = sent.nodes;
        const leaves = `${sent.cut ? "the first " : ""}${format.exact(sent.nodes.length)} leaves, ${sent.depth} levels deep`;
        say(this.facts, `${map.name}: ${leaves}, in key order from left to right.`);
        this.none.hidden = sent.nodes.length > 0;
        this.box.hidden = sent.nodes.length === 0;
        if (sent.nodes.length === 0) this.nothing("The table is empty.");
        this.draw();
      } catch (error) {
        if (ended.signal.aborted) return;
        say(this.facts, `Cannot be read now: ${error.message}`);
      }
      this.timer = setTimeout(read, EVERY);
    };
    void read();
  }

  stop() {
    this.running = false;
    this.ended?.abort();
    clearTimeout(this.timer);
  }

  nothing(why) {
    this.nodes = [];
    this.none.replaceChildren(h("strong", {}, "No leaves to show"), h("p", {}, why));
    this.none.hidden = false;
    this.box.hidden = true;
    this.legend.replaceChildren();
    say(this.readout, "");
    say(this.facts, this.map ? this.map.name : "");
  }

  /** Cells a row and their size: as large as lets all leaves fit a screen. */
  layout(width) {
    const room = Math.max(220, window.innerHeight - 330);
    let size = LARGEST;
    while (size > SMALLEST && Math.ceil(this.nodes.length / Math.floor(width / size)) * size > room) size -= 1;
    const across = Math.max(1, Math.floor(width / size));
    return { size, across, rows: Math.ceil(this.nodes.length / across) };
  }

  paint() {
    const width = this.box.clientWidth;
    if (width === 0 || this.nodes.length === 0) return;
    const { size, across, rows } = this.layout(width);
    this.across = across;
    this.size = size;
    this.canvas.style.height = `${rows * size}px`;
    const { context, width: wide, height } = fit(this.canvas);
    context.clearRect(0, 0, wide, height);
    const { of, top, ramp: scale } = SHADES[this.shade];
    const figures = this.nodes.map(of);
    const formats = scale ? [] : [...new Set(figures)].sort();
    const most = scale ? top(Math.max(1e-9, ...figures.map((figure) => figure ?? 0))) : 1;
    const table = scale && ramp(scale, scheme());
    const fills = scale ? Array.from(table, (pixel) => css([pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255])) : formats.map((_, index) => colourOf(`--line-${(index % 6) + 1}`));
    const none = colourOf("--plot");
    const gap = size > 5 ? 1 : 0;
    figures.forEach((figure, index) => {
      const [x, y] = [(index % across) * size, Math.floor(index / across) * size];
      if (!scale) context.fillStyle = fills[formats.indexOf(figure)];
      else context.fillStyle = figure === null ? none : fills[Math.round(Math.min(1, figure / most) ** 0.5 * 255)];
      context.fillRect(x, y, size - gap, size - gap);
    });
    if (this.cursor !== null && this.cursor < this.nodes.length) {
      const [x, y] = [(this.cursor % across) * size, Math.floor(this.cursor / across) * size];
      context.strokeStyle = colourOf("--accent");
      context.lineWidth = 2;
      context.strokeRect(x - 0.5, y - 0.5, size, size);
    }
    this.describe();
    this.explain(scale, most, formats, fills);
    this.canvas.dataset.leaves = String(this.nodes.length);
  }

  explain(scale, most, formats, fills) {
    const { title, show } = SHADES[this.shade];
    if (!scale) {
      const swatches = formats.map((name, index) => {
        const swatch = h("i", { class: "swatch" });
        swatch.style.background = fills[index];
        return h("span", {}, swatch, name);
      });
      this.legend.replaceChildren(...swatches);
      return;
    }
    const bar = h("span", { class: "scale" });
    bar.style.background = gradient(scale);
    this.legend.replaceChildren(h("span", {}, title), h("span", {}, show(0)), bar, h("span", {}, show(most)));
  }

  describe() {
    const leaf = this.cursor === null ? null : this.nodes[this.cursor];
    if (!leaf) {
      say(this.readout, "Point at a leaf, or use the arrow keys.");
      return;
    }
    const share = leaf.acquisitions > 0 ? `${format.percent(leaf.waits / leaf.acquisitions)} of ${format.count(leaf.acquisitions)} acquisitions waited` : "no lock taken";
    const parts = [`leaf ${format.exact(this.cursor + 1)}`, `from ${format.key(leaf.low)}`, `${format.exact(leaf.entries)} entries`, format.bytes(leaf.bytes), share, leaf.format];
    say(this.readout, parts.filter(Boolean).join("  ·  "));
  }

  listen() {
    const put = (index) => {
      this.cursor = index === null ? null : Math.min(this.nodes.length - 1, Math.max(0, index));
      this.draw();
    };
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const [column, row] = [Math.floor((event.clientX - box.left) / this.size), Math.floor((event.clientY - box.top) / this.size)];
      const index = row * this.across + column;
      put(column < this.across && index < this.nodes.length ? index : null);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const from = this.cursor ?? -1;
      const steps = { ArrowLeft: from - 1, ArrowRight: from + 1, ArrowUp: from - this.across, ArrowDown: this.cursor === null ? 0 : from + this.across, Home: 0, End: this.nodes.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      put(steps[event.key]);
    });
  }
}

/** A scale as a background. */
function gradient(name) {
  const stops = Array.from({ length: 13 }, (_, index) => css(shade(name, scheme(), index / 12)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

return { Tree, gradient };
})();

// --- mappanel.js ---

modules.mappanel = (() => {
// The panel around the map: its controls, its legend, its keys, and the same figures as a table.

const { get } = modules.api;
const { scheme } = modules.colour;
const { share } = modules.columns;
const { h, say, svg } = modules.dom;
const format = modules.format;
const { MapView } = modules.mapview;
const { LAYERS } = modules.paint;
const { gradient } = modules.tree;

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

class MapPanel {
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

return { MapPanel };
})();

// --- session.js ---

modules.session = (() => {
// The token or the login that commands that write need.

const { command, hasToken, login, setGuarded, setToken } = modules.api;
const { h, say } = modules.dom;

class Session {
  constructor(button) {
    this.button = button;
    this.way = "none";
    this.user = null;
    this.why = h("p", { id: "why" });
    this.fields = h("div", { class: "fields" });
    this.trouble = h("p", { class: "error", role: "alert" });
    const cancel = h("button", { type: "button", onclick: () => this.dialog.close("") }, "Cancel");
    this.go = h("button", { type: "submit", class: "primary" }, "Sign in");
    const form = h("form", { onsubmit: (event) => this.submit(event) }, h("h2", { id: "sign-in" }, "Sign in"), this.why, this.fields, this.trouble, h("div", { class: "buttons" }, cancel, this.go));
    this.dialog = h("dialog", { "aria-labelledby": "sign-in", "aria-describedby": "why", onclose: () => this.closed() }, form);
    button.addEventListener("click", () => (hasToken() ? this.leave() : void this.ask()));
    this.show();
  }

  /** Takes over how the server lets one write: "token", "login" or "none". */
  set(way) {
    this.way = way;
    setGuarded(way === "login");
    this.show();
  }

  /** Whether nothing can be read before somebody signs in. */
  get isShut() {
    return this.way === "login" && !hasToken();
  }

  show() {
    this.button.hidden = this.way === "none";
    say(this.button, hasToken() ? (this.user ? `Sign out ${this.user}` : "Sign out") : "Sign in");
  }

  leave() {
    setToken(null);
    this.user = null;
    this.show();
    // What only a user may see does not stay on the screen.
    if (this.way === "login") location.reload();
  }

  /** Drops a token that the server does not know. */
  forget() {
    setToken(null);
    this.user = null;
    this.show();
  }

  /** Opens the dialog. True when the page may write. */
  ask(why) {
    if (this.way === "none") return Promise.resolve(false);
    const byToken = this.way === "token";
    say(this.why, byToken ? "Commands that write need the token that the server printed when it started." : "Enter a user of this server, and its password.");
    const field = (id, label, type, hint) => [h("label", { for: id }, label), h("input", { id, type, required: true, autocomplete: hint, spellcheck: "false" })];
    const fields = byToken ? field("token", "Token", "password", "off") : [...field("user", "User", "text", "username"), ...field("password", "Password", "password", "current-password")];
    this.fields.replaceChildren(...fields);
    say(this.trouble, why ?? "");
    this.dialog.returnValue = "";
    this.dialog.showModal();
    this.fields.querySelector("input").focus();
    return new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  async submit(event) {
    event.preventDefault();
    const value = (id) => this.fields.querySelector(`#${id}`).value;
    try {
      if (this.way === "token") {
        setToken(value("token").trim());
        await command(["PING"]);
      } else {
        this.user = await login(value("user"), value("password"));
      }
      this.dialog.close("yes");
    } catch (error) {
      setToken(null);
      say(this.trouble, error.message);
    }
  }

  closed() {
    this.fields.replaceChildren();
    this.resolve?.(this.dialog.returnValue === "yes");
    this.resolve = null;
    this.show();
  }
}

return { Session };
})();

// --- tables.js ---

modules.tables = (() => {
// Tables of what the server lists: each is read again every two seconds while it is in view.

const { get } = modules.api;
const { empty, h, say, svg } = modules.dom;
const format = modules.format;

/** Rows that a table shows at most. */
const MOST_ROWS = 200;
const EVERY = 2000;
/** Samples of a small chart in a row. */
const SAMPLES = 60;

const text = (name, title, options = {}) => ({ name, title, of: (row) => row[name], show: (row) => String(row[name] ?? ""), ...options });
const figure = (name, title, show = format.exact, options = {}) => ({ name, title, of: (row) => row[name], show: (row) => show(row[name]), right: true, ...options });

/** The tables, by the name of their section. */
const TABLES = {
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

class Table {
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

return { TABLES, Table };
})();

// --- main.js ---

modules.main = (() => {
// The page: it reads what the program has, makes the views of that, and feeds them.

const { get } = modules.api;
const { CHARTS, Chart } = modules.charts;
const { Console } = modules.console;
const { h, say } = modules.dom;
const format = modules.format;
const { Live } = modules.live;
const { MapPanel } = modules.mappanel;
const { Seconds, callsOf } = modules.seconds;
const { Session } = modules.session;
const { TABLES, Table } = modules.tables;
const { Tree } = modules.tree;

const byId = (id) => document.getElementById(id);
const THEMES = ["auto", "light", "dark"];
/** How often the list of maps and the overview are read again. */
const EVERY = 10_000;
/** Seconds in which a program counts as just started. */
const YOUNG = 120;
const SPANS = [
  [60, "1 min"],
  [600, "10 min"],
  [3600, "1 h"],
];

const seconds = new Seconds();
const live = new Live();
const session = new Session(byId("session"));
document.body.append(session.dialog);

const panel = new MapPanel(
  () => seconds.last?.at ?? Date.now(),
  (id) => {
    live.open(id);
    tree.show(panel.map);
  },
);
const tree = new Tree();

let overview = null;
let readAt = 0;
/** Figures of the head, and the section of the overview without which they are not there. */
const NEEDS = { calls: "commands", p99: "commands", clients: "clients", memory: "memory" };
/** Views by the name in the address: their element, and what starts and stops them. */
const views = new Map();
let current = null;
let charts = [];

// --- The views ---

function addView(name, title, element, part = null) {
  element.hidden = true;
  const link = h("a", { href: `#${name}` }, title);
  byId("views").append(link);
  byId("main").append(element);
  views.set(name, { element, link, part });
}

function build() {
  const has = (section) => section === undefined || overview.sections.includes(section);
  for (const [id, section] of Object.entries(NEEDS)) byId(id).parentElement.hidden = !has(section);
  const shown = CHARTS.filter(({ section }) => has(section));
  const beside = shown.filter(({ id }) => ["throughput", "latency", "memory"].includes(id)).map((definition) => new Chart(definition, seconds, { height: 132, sync: "beside" }));
  addView("map", "Map", h("div", { class: "with-side" }, panel.element, h("aside", { class: "side", "aria-label": "Figures" }, beside.map(({ element }) => element))));
  const all = shown.map((definition) => new Chart(definition, seconds));
  charts = [...beside, ...all];
  const spans = h("div", { class: "segments", role: "radiogroup", "aria-label": "Span of time" });
  for (const [span, title] of SPANS) {
    const choose = () => {
      for (const chart of all) chart.span = span;
      refresh();
    };
    const input = h("input", { type: "radio", name: "span", id: `span-${span}`, onchange: choose });
    input.checked = span === 600;
    spans.append(input, h("label", { for: `span-${span}` }, title));
  }
  const head = h("header", {}, h("div", {}, h("h2", {}, "Charts"), h("p", { class: "about" }, "Each second of the last hour. The cursor reads all charts at one time.")), spans);
  addView("charts", "Charts", h("section", { class: "panel", "aria-label": "Charts" }, head, h("div", { class: "charts" }, all.map(({ element }) => element))));
  addView("tree", "Tree", tree.element, tree);
  for (const name of Object.keys(TABLES)) {
    if (!has(name)) continue;
    const table = new Table(name);
    addView(name, table.definition.title, table.element, table);
  }
  if (has("console")) {
    const shell = new Console(session);
    addView("console", "Console", shell.element, shell);
  }
  show();
}

function show() {
  const wanted = location.hash.slice(1);
  const name = views.has(wanted) ? wanted : "map";
  if (name === current) return;
  if (current !== null) views.get(current).part?.stop();
  current = name;
  for (const [each, { element, link }] of views) {
    element.hidden = each !== name;
    if (each === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { part, link } = views.get(name);
  const { offsetLeft, offsetWidth, parentElement } = link;
  parentElement.scrollLeft = offsetLeft - (parentElement.clientWidth - offsetWidth) / 2;
  document.title = `${link.textContent} · ${overview.name}`;
  part?.start();
  refresh();
}

/** Draws the charts that are in view. */
function refresh() {
  for (const chart of charts) if (chart.element.offsetParent !== null) chart.draw();
}

// --- What is always in view ---

function figures() {
  const { last } = seconds;
  if (!last) return;
  const slowest = last.commands.reduce((most, { p99_us }) => Math.max(most, p99_us), 0);
  const shown = {
    calls: format.count(callsOf(last)),
    p99: last.commands.length > 0 ? format.micros(slowest) : "–",
    clients: format.count(last.clients),
    keys: format.count(last.keys),
    memory: format.bytes(last.memory.used),
  };
  for (const [id, text] of Object.entries(shown)) say(byId(id), text);
}

function identity() {
  if (!overview) return;
  const up = overview.uptime_s + (Date.now() - readAt) / 1000;
  const facts = [`${overview.name} ${overview.version}`, overview.engine, overview.role, `up ${format.duration(up)}`];
  say(byId("identity"), facts.filter(Boolean).join("  ·  "));
}

function state() {
  const element = byId("state");
  element.dataset.state = live.state;
  const ago = format.duration((Date.now() - live.since) / 1000);
  const words = { connecting: "connecting", live: "live", stalled: "no data", lost: "disconnected" };
  say(element.querySelector(".word"), words[live.state]);
  const banner = byId("lost");
  banner.hidden = live.state === "live" || live.state === "connecting";
  const why = live.state === "lost" ? "The server does not answer" : "The server has sent nothing";
  say(banner.querySelector(".why"), `${why}. What is shown is from before; the page connects again by itself.`);
  say(banner.querySelector(".ago"), ago);
  identity();
}

// --- Reading ---

/** Reads what the program is and which maps it has; asks for a login if nothing is shown without. */
async function read() {
  const before = overview;
  overview = await get("overview");
  // A server that has started anew knows no token of the one before.
  if (before && overview.uptime_s < before.uptime_s) session.forget();
  readAt = Date.now();
  session.set(overview.writes);
  identity();
  while (session.isShut) await session.ask("");
  const { maps } = await get("maps");
  if (views.size === 0) {
    // Of a program that has just started there is no more to see.
    if (overview.uptime_s < YOUNG) panel.view.zoom(60_000);
    build();
  }
  panel.list(maps);
  tree.show(panel.map);
}

async function history() {
  seconds.merge((await get("history")).seconds);
  figures();
  refresh();
}

async function start() {
  for (;;) {
    try {
      await read();
      await history();
      byId("waiting").hidden = true;
      return;
    } catch (error) {
      if (error.status === 401) session.forget();
      say(byId("why-waiting"), `The server does not answer yet: ${error.message}.`);
      await new Promise((done) => setTimeout(done, 1500));
    }
  }
}

/** After a loss the server may be another one: what was missed is read again. */
async function resume() {
  panel.view.data?.refresh();
  try {
    await read();
    await history();
  } catch (error) {
    if (error.status === 401) session.forget();
  }
}

live.addEventListener("second", ({ detail }) => {
  seconds.add(detail);
  figures();
  refresh();
});
live.addEventListener("map", ({ detail }) => panel.push(detail));
live.addEventListener("state", state);
live.addEventListener("resumed", () => void resume());
setInterval(() => {
  if (live.state !== "live") return;
  panel.view.data?.refreshCoarse();
  if (!session.dialog.open) read().catch(() => {});
}, EVERY);

// --- The scheme of colours ---

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  say(byId("theme"), { auto: "Auto", light: "Light", dark: "Dark" }[name]);
  try {
    localStorage.setItem("theme", name);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  restyle();
}

function restyle() {
  panel.restyle();
  tree.draw();
  for (const chart of charts) chart.restyle();
}

function storedTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

let chosen = THEMES.indexOf(storedTheme());
if (chosen < 0) chosen = 0;
theme(THEMES[chosen]);
byId("theme").addEventListener("click", () => {
  chosen = (chosen + 1) % THEMES.length;
  theme(THEMES[chosen]);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
window.addEventListener("hashchange", show);

/** What the page shows, as data: for tests, and for a look from the browser's own console. */
window.tremula = {
  map: panel.view,
  live,
  seconds,
  tree,
  get overview() {
    return overview;
  },
};

void start();

return {  };
})();
