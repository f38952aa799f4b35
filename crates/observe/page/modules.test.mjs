// The page's modules without a browser: `node --test`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Axis, MOST_BOUNDS, lastNotAbove } from "./src/axis.js";
import { shade } from "./src/colour.js";
import { BoundsTable, FIGURES, Tier, bucketAt, decode, hottest, share } from "./src/columns.js";
import * as format from "./src/format.js";
import { LAYERS, along, figures, ticks } from "./src/paint.js";
import { Seconds } from "./src/seconds.js";
import { commandAt, completions, shown, split } from "./src/words.js";

const hex = (text) => Buffer.from(text).toString("hex");
const table = new BoundsTable();
const boundsOf = (keys) => table.of(keys.map(hex), keys);

/** A column as a server sends it; each figure is given or zero. */
function sent(end, keys, given = {}, width = 1000) {
  const column = { at: end, width_ms: width, bounds: keys, raw: keys?.map(hex), marks: [] };
  const buckets = keys?.length ?? given.buckets;
  for (const name of FIGURES) column[name] = given[name] ?? Array(buckets).fill(0);
  return column;
}

const read = (...args) => decode(sent(...args), null, table);

test("the latest column's buckets have equal heights, and others' bounds lie in them in order", () => {
  const latest = boundsOf(["", "d", "m", "t"]);
  const axis = new Axis(latest, [latest, boundsOf(["", "e", "f", "t"]), boundsOf(["", "a"])]);
  assert.deepEqual([...axis.edges(latest)], [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(axis.text, ["", "a", "d", "e", "f", "m", "t"]);
  assert.deepEqual([...axis.at].map((at) => at.toFixed(4)), ["0.0000", "0.1250", "0.2500", "0.3333", "0.4167", "0.5000", "0.7500"]);
  assert.equal(axis.position(hex("g")), axis.position(hex("f")));
  assert.equal(axis.text[axis.indexAt(0.3)], "d");
});

test("keys keep their order on the axis, whatever the columns' bounds", () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round += 1) {
    const some = () => ["", ...new Set(Array.from({ length: 1 + Math.floor(random() * 9) }, () => String.fromCharCode(97 + Math.floor(random() * 26)) + (random() < 0.3 ? "\u00e9" : "")))].sort((one, other) => (hex(one) < hex(other) ? -1 : 1));
    const sets = [some(), some(), some()].map(boundsOf);
    const axis = new Axis(sets[0], sets);
    for (let index = 1; index < axis.at.length; index += 1) {
      assert.ok(axis.raw[index - 1] < axis.raw[index]);
      assert.ok(axis.at[index - 1] < axis.at[index], `${axis.text}: ${axis.at}`);
    }
    for (const bounds of sets) {
      const edges = axis.edges(bounds);
      assert.equal(edges[0], 0);
      assert.equal(edges.at(-1), 1);
      for (let index = 1; index < edges.length; index += 1) assert.ok(edges[index - 1] < edges[index]);
    }
  }
});

test("an axis has a limit of bounds, and older columns fit it still", () => {
  const latest = boundsOf(["", "5"]);
  const others = Array.from({ length: 40 }, (_, index) => boundsOf(["", ...Array.from({ length: 200 }, (_, each) => `${index + 10}-${String(each).padStart(3, "0")}`)]));
  const axis = new Axis(latest, [latest, ...others]);
  assert.ok(axis.raw.length <= MOST_BOUNDS + 202, `${axis.raw.length}`);
  assert.ok(axis.raw.includes(hex("5")));
  assert.equal(axis.edges(others[39]).at(-1), 1);
});

test("the last value that is not above another is found", () => {
  const values = [0, 2, 2, 5];
  assert.deepEqual([-1, 0, 1, 2, 4, 5, 9].map((value) => lastNotAbove(values, value)), [0, 0, 0, 2, 2, 3, 3]);
});

test("a column without bounds has those of the one before, and one without figures is refused", () => {
  const first = read(1000, ["", "b"]);
  assert.equal(decode(sent(2000, null, { buckets: 2 }), first.bounds, table).bounds, first.bounds);
  assert.equal(decode(sent(2000, null, { buckets: 2 }), null, table), null);
  assert.equal(decode(sent(2000, null, { buckets: 3 }), first.bounds, table), null);
  assert.deepEqual([first.at, first.end], [0, 1000]);
});

test("columns are kept once, in order, and touch when ticks are uneven", () => {
  const tier = new Tier(1000);
  tier.add([read(1000, [""]), read(2013, [""])]);
  tier.add([read(2990, [""])]);
  tier.add([read(2013, [""]), read(2990, [""])]);
  tier.add([read(9000, [""])]);
  assert.deepEqual(tier.columns.map(({ at, end }) => [at, end]), [[0, 1000], [1000, 2013], [2013, 2990], [8000, 9000]]);
  assert.equal(tier.at(2500).end, 2990);
  assert.equal(tier.at(2010).end, 2013, "a column that took longer covers all of its time");
  assert.equal(tier.at(5000), null);
  tier.add([read(6000, [""])]);
  assert.deepEqual(tier.columns.map(({ end }) => end), [1000, 2013, 2990, 6000, 9000]);
});

test("an hour of columns is kept, and the oldest go", () => {
  const tier = new Tier(1000);
  for (let index = 1; index <= 3700; index += 1) tier.add([read(index * 1000, [""])]);
  assert.equal(tier.columns.length, 3600);
  assert.equal(tier.columns[0].end, 101_000);
});

test("the bucket that waited most is the hottest, and a share needs an acquisition", () => {
  const column = read(1000, ["", "b", "c"], { waits: [1, 9, 2], acquisitions: [0, 18, 100] });
  assert.equal(hottest(column), 1);
  assert.deepEqual([0, 1, 2].map((bucket) => share(column, bucket)), [null, 0.5, 0.02]);
  assert.equal(hottest(read(1000, ["", "b"])), -1);
  const axis = new Axis(column.bounds, [column.bounds]);
  assert.deepEqual([0, 0.34, 0.99, 1].map((position) => bucketAt(axis, column, position)), [0, 1, 2, 2]);
});

const view = { from: 0, to: 4000, low: 0, high: 1 };

test("a pixel shows the figure of its bucket at its time", () => {
  const columns = [read(1000, ["", "m"], { acquisitions: [10, 10], waits: [5, 0], writes: [30, 7] }), read(3000, ["", "m"], { acquisitions: [0, 10], waits: [0, 1], writes: [0, 9] })];
  const axis = new Axis(columns[1].bounds, [columns[1].bounds]);
  const slice = { columns, first: 0, end: 2 };
  const waits = figures("waits", slice, axis, view, 4, 4);
  const grid = (cells) => [0, 1, 2, 3].map((y) => [...cells.subarray(y * 4, y * 4 + 4)].map((value) => (Number.isNaN(value) ? null : +value.toFixed(3))));
  assert.deepEqual(grid(waits.cells), [[0.5, null, -1, null], [0.5, null, -1, null], [0, null, 0.1, null], [0, null, 0.1, null]]);
  const writes = figures("writes", slice, axis, view, 4, 2);
  assert.deepEqual(grid(new Float32Array([...writes.cells, ...writes.cells])).slice(0, 2), [[30, null, 0, null], [7, null, 9, null]]);
  assert.equal(writes.most, 30);
});

test("a pixel of many columns shows their share and their mean rate, and one of many buckets their sum", () => {
  const columns = [1, 2, 3, 4].map((second) => read(second * 1000, ["", "b", "c", "d"], { acquisitions: [second, 0, 0, 0], waits: [second === 4 ? 4 : 0, 0, 0, 0], writes: [8, 4, 2, 2] }));
  const axis = new Axis(columns[0].bounds, [columns[0].bounds]);
  const slice = { columns, first: 0, end: 4 };
  assert.equal(figures("waits", slice, axis, view, 1, 4).cells[0], Math.fround(0.4));
  assert.equal(figures("writes", slice, axis, view, 1, 4).cells[0], 8);
  assert.equal(figures("writes", slice, axis, view, 1, 1).cells[0], 16);
});

test("scales run from nothing to their top, and small figures are seen", () => {
  assert.equal(along("waits", 0, 1), 0);
  assert.equal(along("waits", 1, 1), 1);
  assert.ok(along("waits", 0.01, 1) >= 0.1);
  assert.deepEqual([0, 7, 20, 101].map(LAYERS.writes.top), [1, 10, 20, 200]);
});

test("more is further from the background, evenly, in both schemes and every layer", () => {
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  for (const layer of Object.keys(LAYERS)) {
    for (const [scheme, sign] of [["light", -1], ["dark", 1]]) {
      const steps = Array.from({ length: 33 }, (_, index) => luminance(shade(layer, scheme, index / 32)) * sign);
      for (let index = 1; index < steps.length; index += 1) assert.ok(steps[index] > steps[index - 1], `${layer} ${scheme} ${index}`);
    }
  }
});

test("ticks are round times within the span", () => {
  const { times, step } = ticks(Date.UTC(2026, 0, 1, 10, 0, 7), Date.UTC(2026, 0, 1, 10, 10, 7), 1000, 100);
  assert.equal(step, 60_000);
  assert.ok(times.length === 10 && times.every((time) => time % 60_000 === 0));
});

test("figures have their units", () => {
  assert.deepEqual([0, 7, 1234, 12_345, 4_560_000, 2.5].map(format.count), ["0", "7", "1,234", "12.3k", "4.56M", "2.5"]);
  assert.deepEqual([0, 1023, 1536, 2 ** 31].map(format.bytes), ["0 B", "1023 B", "1.5 KiB", "2 GiB"]);
  assert.deepEqual([3, 1200, 2_500_000].map(format.micros), ["3 µs", "1.2 ms", "2.5 s"]);
  assert.deepEqual([0, 0.0001, 0.034, 0.5].map(format.percent), ["0 %", "< 0.1 %", "3.4 %", "50 %"]);
  assert.deepEqual([0, 59, 3661, 90_000].map(format.duration), ["0 s", "59 s", "1 h 1 min", "1 d 1 h"]);
  assert.equal(format.key("a".repeat(50), 9), "aaaa…aaaa");
  assert.equal(format.key(""), "(lowest)");
});

test("a line becomes the words that redis-cli makes of it", () => {
  assert.deepEqual(split(`  set a "b c\\n\\x41" 'd\\'e' f"g `), ["set", "a", "b c\nA", "d'e", 'f"g']);
  assert.deepEqual(split('get ""'), ["get", ""]);
  assert.throws(() => split('get "a'), /does not end/);
  assert.throws(() => split('get "a"b'), /blank must follow/);
});

test("replies look as redis-cli shows them", () => {
  assert.equal(shown({ array: [{ bulk: "a" }, { array: [1, null] }] }), '1) "a"\n2) 1) (number) 1\n   2) (nil)');
  assert.equal(shown({ error: "ERR no" }), "(error) ERR no");
  assert.equal(shown({ map: [[{ bulk: "k" }, { status: "v" }]] }), '1) "k" => v');
  assert.equal(shown({ array: [] }), "(empty)");
});

test("completion and help follow what is typed", () => {
  const commands = ["GET", "GETDEL", "CONFIG GET", "SET"].map((name) => ({ name }));
  const names = (list) => list.map(({ name }) => name);
  assert.deepEqual(names(completions(commands, "ge")), ["GET", "GETDEL"]);
  assert.deepEqual(names(completions(commands, "get")), ["GETDEL"]);
  assert.deepEqual(completions(commands, ""), []);
  assert.equal(commandAt(commands, "config  get maxmemory").name, "CONFIG GET");
  assert.equal(commandAt(commands, "getx"), null);
});

test("seconds are kept once and in order, and the busiest commands come first", () => {
  const seconds = new Seconds();
  const second = (at, calls) => ({ at, commands: Object.entries(calls).map(([name, calls]) => ({ name, calls })) });
  seconds.add(second(2000, { get: 1, set: 3 }));
  seconds.add(second(1000, { get: 99 }));
  seconds.merge([second(1000, { get: 1 }), second(2000, { get: 1, set: 3 })]);
  assert.deepEqual(seconds.all.map(({ at }) => at), [1000, 2000]);
  assert.deepEqual(Seconds.busiest(seconds.all), ["set", "get"]);
  assert.equal(seconds.within(1).length, 1);
});
