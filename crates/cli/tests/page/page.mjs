// Drives a real browser over the page of a server: `node page.mjs OPTIONS`, with `--mock`, or with
// `--address`, `--token`, `--hot LOW HIGH` of a server that runs. Screenshots go to `--shots`.
// With `--user`, `--password` and `--mailbox` it looks at a server that needs a login, and with
// `--embedded` at a program with maps of its own; at no more than is different there.
//
// It prints `kill` or `start` when the server shall die or live again, and waits for a line then.
// `passed` is its last line. A check that fails ends it, with what was seen.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const here = dirname(fileURLToPath(import.meta.url));

/** How long anything may take to appear; only a page that never shows it fails. */
const PATIENCE = 60_000;
const PHONE = { width: 360, height: 780 };
const WIDE = { width: 1600, height: 1000 };
const { values: options } = parseArgs({
  options: {
    address: { type: "string" },
    token: { type: "string" },
    low: { type: "string" },
    high: { type: "string" },
    map: { type: "string" },
    shots: { type: "string" },
    mock: { type: "boolean", default: false },
    user: { type: "string" },
    password: { type: "string" },
    mailbox: { type: "string" },
    embedded: { type: "boolean", default: false },
  },
});

// --- The server ---

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let mock = null;

async function startMock(port) {
  const program = join(here, "../../../observe/page/mock.mjs");
  const child = spawn(process.execPath, [program, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  mock = child;
  const [line] = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data).split("\n"))));
  return line;
}

/** Has the server killed, or started again at its address. */
async function ask(what) {
  if (!options.mock) {
    console.log(what);
    await lines.next();
  } else if (what === "kill") {
    mock.kill("SIGKILL");
    await new Promise((resolve) => mock.once("exit", resolve));
  } else {
    await startMock(Number(new URL(base).port));
  }
}

const base = options.mock ? await startMock(0) : `http://${options.address}/`;
const hot = { low: options.low ?? "user:4100", high: options.high ?? "user:4400" };
let token = options.token ?? "mock";
mkdirSync(options.shots, { recursive: true });

// --- The browser, and what must never happen in it ---

const browser = await chromium.launch({ executablePath: process.env.TREMULA_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-background-networking"] });
process.on("exit", () => mock?.kill("SIGKILL"));

/** Opens a page. Whatever goes wrong in it is noted in `wrong`. */
async function open(size, scheme, path = "") {
  const context = await browser.newContext({ viewport: size, colorScheme: scheme, reducedMotion: "reduce", hasTouch: size === PHONE });
  await context.addInitScript(AXE);
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => window.violations.push(`${violatedDirective} ${blockedURI}`));
  });
  await context.addInitScript(() => {
    window.pressed = [];
    const note = ({ type, target, clientX, clientY }) => window.pressed.push([type, target.className, clientX, clientY].join(" "));
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel", "wheel", "scroll"]) window.addEventListener(type, note, { capture: true, passive: true });
  });
  const page = await context.newPage();
  const wrong = (page.wrong = []);
  page.on("pageerror", (error) => wrong.push(`an error: ${error.stack}`));
  page.on("console", (message) => {
    // What the browser itself says of a request that fails is expected while the server is dead.
    if (message.type() === "error" && !(page.serverIsDead && /Failed to load resource/.test(message.text()))) wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base)) wrong.push(`an outside request: ${request.url()}`);
  });
  await page.goto(base + path);
  return { page, wrong, close: () => context.close() };
}

async function clean({ page, wrong }, where) {
  const violations = await page.evaluate(() => window.violations);
  assert.deepEqual([...wrong, ...violations], [], where);
}

/** Waits until something about the page holds; says what was seen if it never does. */
async function until(page, what, condition, argument) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const seen = await page.evaluate(condition, argument);
    if (seen) return seen;
    if (Date.now() > deadline) {
      const snapshot = await page.evaluate(() => JSON.stringify({ pressed: window.pressed.slice(-12), readout: document.getElementById("place")?.textContent, state: window.tremula?.live.state, map: window.tremula?.map.snapshot() })).catch(String);
      await page.screenshot({ path: join(options.shots, "failed.png") });
      assert.fail(`never: ${what}\n${page.wrong.join("\n")}\n${snapshot.slice(0, 2000)}`);
    }
    await new Promise((done) => setTimeout(done, 100));
  }
}

const isLive = () => window.tremula?.live.state === "live" && window.tremula.map.snapshot().columns >= 3;
const shoot = (page, name) => page.screenshot({ path: join(options.shots, `${options.mock ? "mock" : "real"}-${name}.png`) });
const names = (page) => page.$$eval("#views a", (links) => links.map((link) => link.hash.slice(1)));

// --- Checks ---

async function choose(page) {
  if (!options.map) return;
  await page.selectOption("#map", options.map);
  await until(page, "columns of the chosen map", isLive);
}

/** The map has the hot keys where they are, and splits there. */
async function hotRange(page) {
  const written = ([low, high]) => {
    const encode = (text) => [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const [from, to] = [encode(low), encode(high)];
    let [inside, all, most, hottest] = [0, 0, -1, null];
    for (const column of window.tremula.map.recent(10)) {
      column.raw.forEach((raw, bucket) => {
        const end = column.raw[bucket + 1] ?? "~";
        const isInside = raw < to && end > from;
        all += column.writes[bucket];
        if (isInside) inside += column.writes[bucket];
        if (column.writes[bucket] > most) [most, hottest] = [column.writes[bucket], { isInside, low: column.bounds[bucket], end: column.bounds[bucket + 1] }];
      });
    }
    // The buckets around the hot keys are a small part of the axis, and have the larger part of the writes.
    return hottest?.isInside && inside > all / 2 ? { inside, all, hottest } : null;
  };
  const found = await until(page, `most writes between ${hot.low} and ${hot.high}`, written, [hot.low, hot.high]);
  console.log(`hot: ${JSON.stringify(found)}`);
  const split = ([low, high]) => {
    const { map } = window.tremula;
    return map.recent(3600).some(({ bounds, marks }) => marks.some(({ bucket, kind }) => kind === "split" && (bounds[bucket + 1] ?? "~") > low && bounds[bucket] < high));
  };
  await until(page, `a split between ${hot.low} and ${hot.high}`, split, [hot.low, hot.high]);
  const parts = ([low, high]) => {
    const { bounds } = window.tremula.map.snapshot().latest;
    return bounds.filter((bound) => bound >= low && bound < high).length >= 2;
  };
  await until(page, "bounds between the hot keys", parts, [hot.low, hot.high]);
}

/** The picture has another colour where writes are than where they are not. */
async function picture(page) {
  const differs = async () =>
    page.evaluate(
      ([low, high]) => {
        const { map } = window.tremula;
        const { axis, plot } = map;
        if (!axis || !plot) return false;
        const cells = document.querySelector("canvas.cells");
        const scale = cells.width / cells.getBoundingClientRect().width;
        const inside = axis.text.findIndex((text) => text >= low && text < high);
        if (inside < 0) return false;
        const row = (position) => Math.round((plot.top + position * plot.height) * scale) + 1;
        const context = cells.getContext("2d");
        const light = (y) => {
          const { data } = context.getImageData(Math.round((plot.left + plot.width * 0.98) * scale) - 8, y, 8, 1);
          return data[3] === 0 ? null : data[0] + data[1] + data[2];
        };
        const hot = light(row(axis.at[inside]));
        const rest = light(row(0.98));
        return hot !== null && rest !== null && Math.abs(hot - rest) > 60 ? { hot, rest } : false;
      },
      [hot.low, hot.high],
    );
  await page.click("label[for=layer-writes]");
  await page.click('[data-span="60000"]');
  const deadline = Date.now() + PATIENCE;
  while (!(await differs())) {
    if (Date.now() > deadline) await shoot(page, "no-picture");
    assert.ok(Date.now() < deadline, "the picture never shows the hot keys");
    await new Promise((done) => setTimeout(done, 200));
  }
  for (const layer of ["reads", "memory", "waits"]) {
    await page.click(`label[for=layer-${layer}]`);
    await until(page, `the layer ${layer}`, (layer) => window.tremula.map.snapshot().layer === layer, layer);
  }
}

/** The cursor, the keys under it, zoom and pan, with the keyboard alone. */
async function keyboard(page) {
  await page.focus("canvas.over");
  await page.keyboard.press("ArrowLeft");
  await until(page, "a readout", () => /writes\/s/.test(document.getElementById("place").textContent));
  const before = await page.textContent("#place");
  await page.keyboard.press("ArrowDown");
  await until(page, "another range", (before) => document.getElementById("place").textContent.split("·")[1] !== before.split("·")[1], before);
  await page.keyboard.press("Enter");
  await until(page, "the keys of a range", () => /keys now|No key lies here/.test(document.querySelector(".detail")?.textContent ?? ""));
  await shoot(page, "keys");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.className), "over", "the focus returns to the map");
  await page.keyboard.press("Shift+ArrowLeft");
  await until(page, "the past", () => !window.tremula.map.snapshot().follows);
  await page.keyboard.press("End");
  await until(page, "the newest", () => window.tremula.map.snapshot().follows);
  for (let times = 0; times < 12; times += 1) await page.keyboard.press("-");
  assert.equal(await page.evaluate(() => window.tremula.map.span), 86_400_000, "a day at most");
  for (let times = 0; times < 20; times += 1) await page.keyboard.press("+");
  assert.equal(await page.evaluate(() => window.tremula.map.span), 10_000, "ten seconds at least");
}

/** A pointer: it reads, it zooms, and a click shows keys. */
async function pointer(page) {
  await page.click('[data-span="600000"]');
  const box = await page.locator("canvas.over").boundingBox();
  await page.mouse.move(box.x + box.width - 14, box.y + box.height / 2);
  await until(page, "a readout under the pointer", () => /entries/.test(document.getElementById("place").textContent));
  await page.mouse.wheel(0, 400);
  await until(page, "a longer span", () => window.tremula.map.span > 600_000);
  // The newest column may be younger than what is under the pointer: then it is clicked again.
  const press = async () => {
    await page.mouse.click(box.x + box.width - 14, box.y + box.height / 2);
    await page.waitForTimeout(1000);
    return page.evaluate(() => document.querySelector(".detail")?.hidden === false);
  };
  for (let times = 0; !(await press()); times += 1) assert.ok(times < 10, "a click never shows keys");
  await page.click(".detail [aria-label=Close]");
  await page.click("button:text-is('Table')");
  await until(page, "the map as a table", () => document.querySelectorAll("#map-table tbody tr").length > 0);
  await page.click("button:text-is('Table')");
}

/** A whole day: all of it is there, and it is drawn. Only made-up figures have one. */
async function day(page) {
  await page.click('[data-span="86400000"]');
  await until(page, "a day of columns", () => window.tremula.map.snapshot().columns > 8000);
  await shoot(page, "day");
  await page.click('[data-span="600000"]');
}

/** An engine without a walk is greyed, with the reason. */
async function unwalked(page) {
  const before = await page.inputValue("#map");
  await page.selectOption("#map", "t-sessions");
  await until(page, "the reason", () => /has no order/.test(document.querySelector(".stage .empty").textContent));
  assert.ok(await page.isDisabled("button:text-is('Follow')"));
  await shoot(page, "unwalked");
  await page.selectOption("#map", before);
  await until(page, "the map again", isLive);
}

async function leaves(page) {
  await page.goto(`${base}#tree`);
  const drawn = await until(page, "ten thousand leaves", () => document.querySelector(".tree canvas").dataset.leaves === "10000" && document.querySelectorAll("*").length);
  assert.ok(drawn < 2000, `${drawn} elements: leaves are no elements`);
}

/** The console completes, runs, and asks for the token when a command writes. */
async function shell(page) {
  await page.goto(`${base}#console`);
  await until(page, "the commands", () => /commands are known/.test(document.getElementById("help").textContent));
  await page.fill("#line", "");
  await page.type("#line", "pin");
  await page.keyboard.press("Tab");
  assert.equal((await page.inputValue("#line")).toLowerCase(), "ping ");
  await page.keyboard.press("Enter");
  await until(page, "PONG", () => document.querySelector(".replies")?.textContent.includes("PONG"));
  await page.type("#line", "set page:test 1");
  assert.match(await page.textContent("#help"), /writes/);
  await page.keyboard.press("Enter");
  await until(page, "the dialog", () => document.querySelector("dialog").open);
  await shoot(page, "sign-in");
  await page.type("dialog input", token);
  await page.keyboard.press("Enter");
  await until(page, "OK", () => [...document.querySelectorAll(".replies pre")].at(-1).textContent === "OK");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.inputValue("#line"), "set page:test 1");
  await shoot(page, "console");
}

/** A view shows what it is for. */
async function filled(page, view) {
  const drawn = () => {
    const charts = [...document.querySelectorAll(".chart")].filter((chart) => chart.offsetParent !== null);
    const empty = charts.filter((chart) => !chart.querySelector("canvas")?.offsetParent && chart.querySelector(".note").hidden);
    return charts.length > 0 && empty.length === 0 && document.querySelector('.chart[data-chart="throughput"] canvas') !== null;
  };
  const listed = (view) => {
    const table = document.querySelector(`[data-table="${view}"]`);
    return !table || table.querySelectorAll("tbody tr").length > 0 || !table.querySelector(".empty").hidden;
  };
  if (view === "map" || view === "charts") await until(page, `the charts of ${view}`, drawn);
  await until(page, `the rows of ${view}`, listed, view);
  if (view === "tree") await until(page, "leaves", () => Number(document.querySelector(".tree canvas").dataset.leaves) > 0);
}

/** Every view in both schemes and at both sizes: it fits, and axe-core finds nothing serious. */
async function views() {
  for (const [size, width] of [[PHONE, 360], [WIDE, 1600]]) {
    for (const scheme of ["light", "dark"]) {
      const opened = await open(size, scheme);
      const { page } = opened;
      await until(page, "the first columns", isLive);
      await choose(page);
      for (const view of await names(page)) {
        await page.goto(`${base}#${view}`);
        await until(page, view, (view) => document.querySelector("#views [aria-current]")?.hash === `#${view}`, view);
        await page.waitForTimeout(700);
        await filled(page, view);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(over <= 0, `${view} is ${over} pixels wider than ${width}`);
        const found = await page.evaluate(async () => {
          const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
          return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).slice(0, 3).join("; ")}`);
        });
        assert.deepEqual(found, [], `${view}, ${scheme}, ${width}`);
        await shoot(page, `${view}-${width}-${scheme}`);
      }
      await clean(opened, `${scheme} at ${width}`);
      await opened.close();
    }
  }
}

/** A page of another origin cannot write, whatever it sends; nor can a program that names one. */
async function crossOrigin() {
  const forged = { method: "POST", headers: { "Content-Type": "application/json", "Tremula-Token": token, Origin: "http://evil.example" }, body: JSON.stringify({ args: ["SET", "page:forged", "1"] }) };
  const refused = await fetch(`${base}api/command`, forged);
  assert.equal(refused.status, 403, `a foreign Origin: ${await refused.text()}`);
  const page = `<!doctype html><title>other</title><form action="${base}api/command" method="post" enctype="text/plain"><input name='{"args":["SET","page:forged","1"],"x":"' value='"}'></form>`;
  const server = createServer((_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end(page));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const context = await browser.newContext();
  const other = await context.newPage();
  const statuses = [];
  other.on("response", (response) => response.url().startsWith(base) && statuses.push(response.status()));
  await other.goto(`http://127.0.0.1:${server.address().port}/`);
  const outcomes = await other.evaluate(
    async ([base, token]) => {
      const body = JSON.stringify({ args: ["SET", "page:forged", "1"] });
      const send = (init) => fetch(`${base}api/command`, { method: "POST", body, ...init }).then((answer) => answer.type === "opaque" || `status ${answer.status}`, () => "refused");
      return [
        await send({ headers: { "Content-Type": "application/json", "Tremula-Token": token } }),
        await send({ mode: "no-cors", headers: { "Content-Type": "text/plain" } }),
        await fetch(`${base}api/overview`).then((answer) => answer.text(), () => "refused"),
      ];
    },
    [base, token],
  );
  assert.equal(outcomes[0], "refused", "a request with a token from another origin");
  assert.equal(outcomes[2], "refused", "another origin reads");
  await Promise.all([other.waitForNavigation(), other.evaluate(() => document.forms[0].submit())]);
  assert.ok(statuses.length > 0 && statuses.every((status) => status >= 400), `another origin was answered with ${statuses}`);
  await context.close();
  server.close();
  if (options.mock) return;
  const reply = await fetch(`${base}api/command`, { method: "POST", headers: { "Content-Type": "application/json", "Tremula-Token": token }, body: JSON.stringify({ args: ["EXISTS", "page:forged"] }) });
  assert.deepEqual((await reply.json()).reply, 0, "nothing was written");
}

/** The content policy forbids what the page does not do; and a violation of it would be noticed. */
async function policy() {
  const opened = await open(WIDE, "light");
  const { page } = opened;
  await until(page, "the first columns", isLive);
  await clean(opened, "before");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.inlineRan = true";
    document.body.append(script);
    const image = document.createElement("img");
    image.src = "http://127.0.0.1:9/outside.png";
    document.body.append(image);
    document.body.setAttribute("style", "color: red");
  });
  await until(page, "three violations", () => new Set(window.violations.map((each) => each.split(" ")[0])).size >= 3);
  assert.equal(await page.evaluate(() => window.inlineRan), undefined, "an inline script ran");
  await assert.rejects(clean(opened, "after"), "a violation goes unnoticed");
  await opened.close();
}

/** After kill -9 the page says so, and goes on by itself when the server is back. */
async function reconnect(opened) {
  const { page } = opened;
  await page.goto(`${base}#map`);
  await until(page, "the map", isLive);
  const before = await page.evaluate(() => window.tremula.map.snapshot().latest.end);
  page.serverIsDead = true;
  await ask("kill");
  await until(page, "the loss", () => document.getElementById("state").dataset.state === "lost" && !document.getElementById("lost").hidden);
  await shoot(page, "lost");
  await ask("start");
  await until(page, "the stream again", () => document.getElementById("state").dataset.state === "live" && document.getElementById("lost").hidden);
  await until(page, "newer columns", (before) => (window.tremula.map.snapshot().latest?.end ?? 0) > before + 1000, before);
  page.serverIsDead = false;
  await shoot(page, "back");
}

/** Nothing is shown before somebody signs in; then what the user may see, in the user's name. */
async function signIn() {
  const opened = await open(WIDE, "light");
  const { page, wrong } = opened;
  const isAsked = () => document.querySelector("dialog").open && document.querySelector("#user") !== null;
  await until(page, "the dialog", isAsked);
  assert.equal(await page.$$eval("#views a", (links) => links.length), 0, "views are shown to nobody");
  await shoot(page, "login");
  const enter = async (password) => {
    await page.fill("#user", options.user);
    await page.fill("#password", password);
    await page.keyboard.press("Enter");
  };
  await enter("a guess");
  await until(page, "the refusal", (user) => document.querySelector("dialog .error").textContent.includes(user), options.user);
  await enter(options.password);
  await until(page, "the map", isLive);
  await until(page, "who has signed in", (user) => [...document.querySelectorAll("button")].some((button) => button.textContent === `Sign out ${user}`), options.user);
  await page.goto(`${base}#console`);
  await until(page, "the commands", () => /commands are known/.test(document.getElementById("help").textContent));
  await page.type("#line", "acl whoami");
  await page.keyboard.press("Enter");
  await until(page, "the user's name", (user) => [...document.querySelectorAll(".replies pre")].at(-1)?.textContent.includes(user), options.user);
  await figuresOf(page, "mailboxes", options.mailbox, { Grown: 1, Folded: 1, Senders: 1 });
  await shoot(page, "mailboxes");
  await figuresOf(page, "shards", "0", { "Moved in": 0, States: 0 });
  await shoot(page, "shards");
  await page.click(`button:text-is('Sign out ${options.user}')`);
  await until(page, "the dialog again", isAsked);
  assert.equal(await page.$$eval("#views a", (links) => links.length), 0, "what the user saw stays on the screen");
  // What is refused for want of a login is an error to the browser too.
  const others = wrong.filter((each) => !/401/.test(each));
  assert.deepEqual(others, [], "the login");
  await opened.close();
}

/** A row of a table has at least these figures, by the titles of their columns. */
async function figuresOf(page, view, name, least) {
  await page.goto(`${base}#${view}`);
  const row = ([view, name]) => {
    const table = document.querySelector(`[data-table="${view}"]`);
    const titles = [...(table?.querySelectorAll("thead th") ?? [])].map((title) => title.textContent.trim());
    const cells = [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) => [...row.children].map((cell) => cell.textContent.trim()));
    const found = cells.find((cells) => cells[0] === name);
    return found ? Object.fromEntries(titles.map((title, at) => [title.replace(/[^A-Za-z ]/g, "").trim(), found[at]])) : null;
  };
  const seen = await until(page, `${name} among the ${view}`, row, [view, name]);
  for (const [title, most] of Object.entries(least)) {
    const value = Number(String(seen[title]).replace(/[^0-9.]/g, ""));
    assert.ok(seen[title] !== undefined && value >= most, `${title} of ${name}: ${JSON.stringify(seen)}`);
  }
}

/** The page of a program's own maps: the map is there, and what needs a server is not. */
async function embedded() {
  for (const [size, scheme] of [[WIDE, "light"], [PHONE, "dark"]]) {
    const opened = await open(size, scheme);
    const { page } = opened;
    await until(page, "the map", isLive);
    assert.deepEqual(await names(page), ["map", "charts", "tree"], "views of what the program has not");
    assert.equal(await page.evaluate(() => [...document.querySelectorAll("button")].some((button) => button.textContent === "Sign in" && button.checkVisibility())), false, "there is nobody to sign in");
    const hottest = ([low, high]) => {
      let [inside, all] = [0, 0];
      for (const column of window.tremula.map.recent(10)) {
        column.acquisitions.forEach((count, bucket) => {
          const [from, to] = [Number(column.bounds[bucket] || 0), Number(column.bounds[bucket + 1] ?? 1e15)];
          all += count;
          if (from < high && to > low) inside += count;
        });
      }
      return all > 1000 && inside > all / 2 ? { inside, all } : null;
    };
    console.log(`embedded: ${JSON.stringify(await until(page, "most acquisitions at the hot keys", hottest, [Number(hot.low), Number(hot.high)]))}`);
    const shown = await page.evaluate(() => [...document.querySelectorAll(".figures dd")].filter((figure) => figure.checkVisibility()).map(({ id }) => id));
    assert.deepEqual(shown, ["keys", "memory"], "figures of what the program has not");
    await shoot(page, `embedded-${size.width}`);
    await page.goto(`${base}#charts`);
    const drawn = () => {
      const charts = [...document.querySelectorAll(".chart")].filter((chart) => chart.checkVisibility());
      return charts.length > 0 && charts.every((chart) => chart.querySelector("canvas") !== null) ? charts.map((chart) => [chart.dataset.chart, chart.querySelector(".latest").textContent]) : null;
    };
    const charts = Object.fromEntries(await until(page, "a line in each chart", drawn));
    assert.deepEqual(Object.keys(charts), ["memory", "keys"], "charts of what the program has not");
    assert.match(charts.memory, /^used [1-9].*keys and values [1-9]/, "memory of the process and of its maps");
    await shoot(page, `embedded-charts-${size.width}`);
    await page.goto(`${base}#tree`);
    await until(page, "leaves", () => Number(document.querySelector(".tree canvas").dataset.leaves) > 1);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `the tree is ${over} pixels too wide`);
    await clean(opened, "the embedded page");
    await opened.close();
  }
}

async function end() {
  await browser.close();
  mock?.kill("SIGKILL");
  console.log("passed");
  process.exit(0);
}

try {
  if (options.user || options.embedded) {
    await (options.embedded ? embedded() : signIn());
    await end();
  }
  const opened = await open(WIDE, "light");
  const { page } = opened;
  await until(page, "the first columns", isLive);
  await choose(page);
  await hotRange(page);
  await picture(page);
  await keyboard(page);
  await pointer(page);
  if (options.mock) {
    await day(page);
    await unwalked(page);
    await leaves(page);
  }
  await clean(opened, "the map");
  await shell(page);
  // A command that is refused for want of a token is an error to the browser too.
  const refusals = opened.wrong.filter((each) => /401/.test(each));
  assert.ok(refusals.length <= 1 && refusals.length === opened.wrong.length, opened.wrong.join("\n"));
  opened.wrong.length = 0;
  await crossOrigin();
  await policy();
  await views();
  await reconnect(opened);
  await clean(opened, "after the server came back");
  await end();
} catch (error) {
  console.log(error.stack);
  process.exit(1);
}
