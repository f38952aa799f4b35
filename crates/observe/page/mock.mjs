// A server with made-up figures, which speaks the page's whole interface: for work on the page, and
// for its tests. `node mock.mjs [PORT]` prints its address. It listens on the loopback only.
//
// The figures follow from the time alone, so that a column is the same however often it is asked for:
// keys of users, of which `user:4100` to `user:4400` are hot, and buckets that split there.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TOKEN = "mock";
export const HOT = ["user:4100", "user:4400"];
/** The content policy of the real server. */
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

const hex = (text) => Buffer.from(text).toString("hex");
const unhex = (text) => Buffer.from(text, "hex").toString();

/** A number from 0 to 1 that follows from others. */
function chance(...seeds) {
  let state = 2166136261;
  for (const seed of seeds) {
    state = Math.imul(state ^ (seed & 0xffffffff), 16777619);
    state ^= state >>> 13;
    state = Math.imul(state, 1274126177);
    state ^= state >>> 16;
  }
  return (state >>> 0) / 4294967296;
}

/** Something that rises and falls, from 0 to 1. */
const wave = (at, period, shift = 0) => 0.5 + 0.5 * Math.sin((at / period + shift) * 2 * Math.PI);

const MAPS = [
  { id: "db0", name: "database 0", kind: "database", engine: "aspen", keys: 412_330, buckets: 128 },
  { id: "t-scores", name: "scores", kind: "table", engine: "ca-tree", keys: 61_204, buckets: 48 },
  { id: "t-large", name: "large", kind: "table", engine: "b-tree", keys: 2_004_110, buckets: 256 },
  { id: "t-sessions", name: "sessions", kind: "table", engine: "hash", keys: 9_001, reason: "A hash table has no order: its keys have no ranges to show." },
];

// --- Columns ---

/** The lowest keys of the buckets at a time: those of hot keys split and join in turn. */
function boundsAt(map, at) {
  const era = Math.floor(at / 47_000);
  const keys = [""];
  for (let index = 1; index < map.buckets; index += 1) keys.push(`user:${String(Math.floor((index / map.buckets) * 10_000)).padStart(4, "0")}`);
  for (let fine = 0; fine < 2 + (era % 7); fine += 1) keys.push(`user:${4100 + fine * 41 + 7}`);
  const bounds = [...new Set(keys)].sort().slice(0, 256);
  return { era, bounds, raw: bounds.map(hex) };
}

function columnAt(map, at, width) {
  const { era, bounds, raw } = boundsAt(map, at);
  const seconds = width / 1000;
  const column = { at: at + width, width_ms: width, bounds, raw, entries: [], bytes: [], acquisitions: [], waits: [], writes: [], reads: [], marks: [] };
  const load = 0.4 + 0.6 * wave(at, 5 * HOUR, 0.1);
  // Writers that append go through the keys once in some minutes.
  const front = `user:${String(Math.floor(((at % 540_000) / 540_000) * 10_000)).padStart(4, "0")}`;
  bounds.forEach((low, bucket) => {
    const end = bounds[bucket + 1] ?? "\uffff";
    const isHot = low >= HOT[0] && low < HOT[1];
    const isFront = low <= front && front < end;
    const noise = chance(at / 1000, bucket, map.buckets);
    const busy = isHot ? 90 : isFront ? 16 : 1 + 2 * wave(bucket, 37);
    const writes = Math.round(seconds * load * busy * (3 + 12 * noise));
    const taken = Math.round(writes * (1.6 + noise));
    const share = isHot ? 0.2 + 0.35 * noise * load : isFront ? 0.04 + 0.05 * noise : 0.006 * noise * noise;
    column.writes.push(writes);
    column.reads.push(Math.round(seconds * load * (20 + 60 * chance(bucket, 7)) * (0.7 + noise)));
    column.acquisitions.push(noise < 0.03 && !isHot ? 0 : taken);
    column.waits.push(Math.round(taken * share));
    const entries = Math.round((map.keys / bounds.length) * (0.8 + 0.4 * chance(bucket, era)));
    column.entries.push(entries);
    column.bytes.push(entries * Math.round(60 + 200 * chance(bucket, 3)));
    if (isHot && chance(at, bucket, 1) < 0.015 * Math.sqrt(seconds)) column.marks.push({ bucket, kind: "split", n: 1 + Math.floor(3 * noise) });
    if (!isHot && chance(at, bucket, 2) < 0.0002 * Math.sqrt(seconds)) column.marks.push({ bucket, kind: "join", n: 1 });
    if (chance(at, bucket, 4) < 0.0001 * Math.sqrt(seconds)) column.marks.push({ bucket, kind: "format", n: 1 });
  });
  return { column, era };
}

/** Columns from the one that holds `from`, oldest first; bounds only where they change. */
function columnsOf(map, from, to, width, now) {
  const reach = now - (width === 1000 ? HOUR : DAY);
  const columns = [];
  let before = null;
  for (let at = Math.ceil(Math.max(from, reach) / width) * width; at <= to && at + width <= now; at += width) {
    const { column, era } = columnAt(map, at, width);
    if (era === before) column.bounds = column.raw = null;
    before = era;
    columns.push(column);
  }
  return columns;
}

// --- Seconds ---

const COMMANDS = [
  ["get", 9000, 9],
  ["set", 4200, 14],
  ["range", 640, 60],
  ["incr", 380, 12],
  ["delrange", 30, 220],
  ["hset", 210, 18],
  ["expire", 160, 11],
  ["ping", 12, 3],
];

function secondAt(at) {
  const load = 0.4 + 0.6 * wave(at, 5 * HOUR, 0.1);
  const commands = COMMANDS.map(([name, calls, us], index) => {
    const noise = chance(at / 1000, index, 11);
    const p50 = us * (0.8 + 0.4 * noise);
    return { name, calls: Math.round(calls * load * (0.8 + 0.4 * noise)), p50_us: p50, p99_us: p50 * (4 + 3 * noise), p999_us: p50 * (18 + 30 * noise ** 3) };
  });
  const used = 1.1e9 + 3e8 * wave(at, 2 * HOUR);
  const cycle = (at / 1000) % 300;
  return {
    seq: Math.floor(at / 1000),
    at,
    commands,
    clients: 180 + Math.round(40 * wave(at, 600_000)),
    net_in: Math.round(2.2e6 * load * (0.9 + 0.2 * chance(at, 1))),
    net_out: Math.round(7.9e6 * load * (0.9 + 0.2 * chance(at, 2))),
    keys: 2_486_645 + Math.round(9000 * wave(at, 900_000)),
    memory: { used, limit: 2 ** 31, kinds: { keys: used * 0.81, clients: 3.1e7, log: 6.4e7, snapshots: cycle < 40 ? 9e7 : 0, other: 2e7 } },
    log: { lag_records: Math.round(40 + 300 * chance(at, 5) ** 4 * load), lag_bytes: 18_000, sync_us: 800 + 2200 * chance(at, 6) ** 3 },
    snapshots: { running: cycle < 40, progress: cycle < 40 ? cycle / 40 : null, last_at: at - cycle * 1000 + 40_000 - (cycle < 40 ? 300_000 : 0) },
    replicas: [
      { name: "node-b", role: "replica", lag_records: Math.round(30 * chance(at, 8)) },
      { name: "node-c", role: "replica", lag_records: Math.round(90 * chance(at, 9) ** 2) },
    ],
    evicted: 0,
    expired: Math.round(60 * chance(at, 10)),
  };
}

// --- Lists ---

const KNOWN = [
  ["GET", 2, "string", "Returns the value of a key", "GET key", false],
  ["SET", -3, "string", "Sets the value of a key", "SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]", true],
  ["PING", -1, "connection", "Answers", "PING [message]", false],
  ["PREV", -2, "range", "Returns the entry before a key", "PREV key", false],
  ["RANGE", -3, "range", "Returns the entries between two keys, in order", "RANGE from to [REV] [LIMIT count] [WITHVALUES]", false],
  ["DELRANGE", 3, "range", "Removes the entries between two keys", "DELRANGE from to", true],
  ["CONFIG GET", -3, "server", "Returns settings", "CONFIG GET pattern [pattern ...]", false],
  ["CONFIG SET", -4, "server", "Changes settings", "CONFIG SET name value [name value ...]", true],
];

const commands = KNOWN.map(([name, arity, group, summary, syntax, writes]) => ({ name, arity, group, summary, syntax, writes }));

function clients(now) {
  return Array.from({ length: 220 }, (_, index) => ({
    id: index + 7,
    address: `127.0.0.1:${40_000 + index * 13}`,
    name: index % 5 === 0 ? `worker-${index}` : "",
    age_s: 30 + index * 91,
    idle_s: Math.floor(chance(index, now / 2000) * 20),
    command: COMMANDS[index % COMMANDS.length][0],
    memory: 18_000 + Math.floor(40_000 * chance(index)),
    user: index % 9 === 0 ? "reports" : "default",
  }));
}

function slowlog(now) {
  const entries = [];
  for (let index = 0; index < 40; index += 1) {
    const at = now - 7000 - index * 41_000;
    entries.push({ id: 400 - index, at, us: 10_400 + 90_000 * chance(index, 21) ** 3, command: index % 3 ? ["RANGE", `[user:${4000 + index * 9}`, "+", "LIMIT", "10000"] : ["SET", `user:${4100 + index}`, "a value with blanks"], client: `127.0.0.1:${40_000 + index * 13}` });
  }
  return entries;
}

function mailboxes(now) {
  return ["orders", "mail:out", "audit", "thumbnails", "retry"].map((name, index) => {
    const length = Math.floor(8000 * wave(now, 60_000 + index * 23_000, index / 5) ** 3);
    return { name, length, capacity: 10_000, buffers: 1 + Math.floor(length / 256), grown: Math.floor(now / 9000) % 10_000, folded: Math.floor(now / 9100) % 10_000, senders: 2 + index, waiting: length === 0 ? 1 : 0 };
  });
}

function shards(now) {
  return Array.from({ length: 8 }, (_, core) => ({ core, load: 0.25 + 0.7 * wave(now, 90_000, core / 8) * (core === 2 ? 1 : 0.7), states: 120 + core * 3, moved_in: Math.floor(now / 40_000) % 1000 + core, moved_out: Math.floor(now / 41_000) % 1000 + core }));
}

function treeOf(map, now) {
  const leaves = map.id === "t-large" ? 10_000 : map.buckets * 6;
  const nodes = Array.from({ length: leaves }, (_, index) => {
    const low = index === 0 ? "" : `user:${String(Math.floor((index / leaves) * 1e6)).padStart(6, "0")}`;
    const isHot = low >= "user:41" && low < "user:44";
    const taken = Math.floor(400 * chance(index, Math.floor(now / 2000)) * (isHot ? 8 : 1));
    return { low, entries: 40 + Math.floor(chance(index) * 160), waits: Math.floor(taken * (isHot ? 0.4 : 0.01)), acquisitions: taken, bytes: 9000 + Math.floor(chance(index, 2) * 12_000), format: chance(index, 3) < 0.1 ? "sparse" : isHot ? "small" : "dense" };
  });
  return { depth: Math.ceil(Math.log2(leaves)), nodes, cut: false };
}

function keysOf(from, to) {
  const low = unhex(from);
  const end = to === null ? "\uffff" : unhex(to);
  const keys = [];
  for (let number = 0; number < 10_000 && keys.length <= 50; number += 3) {
    const text = `user:${String(number).padStart(4, "0")}`;
    if (text >= low && text < end) keys.push({ text, raw: hex(text), type: number % 7 ? "string" : "hash", size: 80 + (number % 300) });
  }
  const slow = low >= "user:40" && low < "user:45" ? slowlog(Date.now()).slice(0, 4).map(({ at, us, command }) => ({ at, us, command: command[0], key: command[1] })) : [];
  return { keys: keys.slice(0, 50), more: keys.length > 50, slow };
}

function replyTo(words) {
  const name = words[0].toUpperCase();
  if (name === "PING") return { status: words[1] ?? "PONG" };
  if (name === "SET") return { status: "OK" };
  if (name === "GET") return { bulk: `the value of ${words[1]}` };
  if (name === "RANGE") return { array: Array.from({ length: 12 }, (_, index) => ({ bulk: `user:${4100 + index}` })) };
  if (name === "CONFIG") return { map: [[{ bulk: "maxmemory" }, { bulk: "2147483648" }], [{ bulk: "io-threads" }, { bulk: "2" }]] };
  return { error: `ERR unknown command '${words[0]}'` };
}

// --- HTTP ---

export function serve(port = 0) {
  const began = Date.now();
  const server = createServer((request, response) => handle(request, response, began).catch((error) => send(response, error.status ?? 500, { error: error.message })));
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

function refuse(status, message) {
  return Object.assign(new Error(message), { status });
}

function send(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(JSON.stringify(body));
}

async function handle(request, response, began) {
  const url = new URL(request.url, `http://${request.headers.host}`);
  const { origin } = request.headers;
  if (origin !== undefined && origin !== url.origin) throw refuse(403, `the origin ${origin} is not this page's`);
  const path = url.pathname;
  if (path === "/" || path.startsWith("/assets/")) {
    const name = path === "/" ? "index.html" : path.slice(8);
    if (!/^(index\.html|app\.js|style\.css|uplot\.js|uplot\.css|icon\.svg)$/.test(name)) throw refuse(404, `no asset ${name}`);
    response.writeHead(200, { "Content-Type": TYPES[name.split(".").pop()], "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff" });
    response.end(readFileSync(join(here, "dist", name)));
    return;
  }
  const parts = path.split("/").slice(2);
  if (request.method === "POST") {
    if (request.headers["content-type"] !== "application/json") throw refuse(403, "the content type is not application/json");
    return posted(parts[0], JSON.parse(await text(request)), request.headers["tremula-token"], response);
  }
  if (parts[0] === "events") return stream(url.searchParams.get("map"), Number(request.headers["last-event-id"]), response);
  send(response, 200, read(parts, url.searchParams, began));
}

async function text(request) {
  let body = "";
  for await (const piece of request) body += piece;
  return body;
}

function posted(name, body, token, response) {
  if (name !== "command") throw refuse(404, `no resource ${name}`);
  const words = body.args;
  const known = commands.find((command) => `${words.join(" ").toUpperCase()} `.startsWith(`${command.name} `));
  if (known?.writes && token !== TOKEN) throw refuse(401, `${known.name} writes: it needs the token that the server printed`);
  send(response, 200, { reply: replyTo(words) });
}

function mapOf(id) {
  const map = MAPS.find((each) => each.id === id);
  if (!map) throw refuse(404, `no map ${id}`);
  return map;
}

function read([name, id, part], query, began) {
  const now = Date.now();
  const second = Math.floor(now / 1000) * 1000;
  if (name === "overview") return { name: "tremula", version: "0.0.0-mock", engine: "aspen", uptime_s: (now - began) / 1000, role: "leader", node: "node-a", embedded: false, writes: "token", sections: ["commands", "clients", "memory", "log", "snapshots", "replicas", "slowlog", "mailboxes", "shards", "console"] };
  if (name === "history") return { seconds: Array.from({ length: 3600 }, (_, index) => secondAt(second - (3600 - index) * 1000)) };
  if (name === "maps") return { maps: MAPS.map(({ buckets, reason, ...map }) => ({ ...map, walked: reason === undefined, reason: reason ?? null })) };
  if (name === "commands") return { commands };
  if (name === "clients") return { clients: clients(now) };
  if (name === "slowlog") return { entries: slowlog(now) };
  if (name === "mailboxes") return { mailboxes: mailboxes(now) };
  if (name === "shards") return { shards: shards(now) };
  if (name !== "map") throw refuse(404, `no resource ${name}`);
  const map = mapOf(id);
  if (part === "tree") return treeOf(map, now);
  if (part === "keys") return keysOf(query.get("from") ?? "", query.get("to"));
  const width = Number(query.get("width"));
  if (width !== 1000 && width !== 10_000) throw refuse(400, `the width ${query.get("width")} is neither 1000 nor 10000`);
  return { id, width_ms: width, columns: columnsOf(map, Number(query.get("from")), Number(query.get("to")), width, now) };
}

/** Events each second, after those that were missed. */
function stream(id, last, response) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const map = id === null ? null : mapOf(id);
  let next = Number.isFinite(last) && last > 0 ? Math.max(last + 1, Math.floor(Date.now() / 1000) - 3600) : Math.floor(Date.now() / 1000);
  let era = null;
  const push = () => {
    for (; (next + 1) * 1000 <= Date.now(); next += 1) {
      response.write(`id: ${next}\nevent: second\ndata: ${JSON.stringify(secondAt(next * 1000))}\n\n`);
      if (!map) continue;
      const sent = columnAt(map, next * 1000, 1000);
      if (sent.era === era) sent.column.bounds = sent.column.raw = null;
      era = sent.era;
      response.write(`id: ${next}\nevent: map\ndata: ${JSON.stringify(sent.column)}\n\n`);
    }
  };
  push();
  const timer = setInterval(push, 200);
  response.on("close", () => clearInterval(timer));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await serve(Number(process.argv[2] ?? 0));
  console.log(`http://127.0.0.1:${server.address().port}/`);
}
