// The page: it reads what the program has, makes the views of that, and feeds them.

import { get } from "./api.js";
import { CHARTS, Chart } from "./charts.js";
import { Console } from "./console.js";
import { h, say } from "./dom.js";
import * as format from "./format.js";
import { Live } from "./live.js";
import { MapPanel } from "./mappanel.js";
import { Seconds, callsOf } from "./seconds.js";
import { Session } from "./session.js";
import { TABLES, Table } from "./tables.js";
import { Tree } from "./tree.js";

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
