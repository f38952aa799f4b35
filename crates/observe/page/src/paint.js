// Paints the map's cells: a picture of device pixels, one figure a pixel, coloured by a scale.

import { ramp } from "./colour.js";

/**
 * The layers. `parts` gives what a bucket adds to a pixel's sum and weight: the pixel shows the
 * one over the other. `curve` bends the scale so that small figures can be distinguished.
 */
export const LAYERS = {
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
export const NONE = -1;

/** The figure that a layer reads from a column. */
const FIGURE = { writes: "writes", reads: "reads", memory: "bytes" };

/** 1, 2 or 5 times a power of ten, not below the value. */
function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

/** How far along its scale a figure is, from 0 to 1. */
export function along(layer, value, top) {
  return Math.min(1, Math.max(0, value / top)) ** LAYERS[layer].curve;
}

/**
 * The figures of every pixel: NaN where nothing was recorded, NONE where no lock was taken.
 * @param {{columns: any[], first: number, end: number}} slice The columns in view.
 * @param {import("./axis.js").Axis} axis
 * @param {{from: number, to: number, low: number, high: number}} view Times, and heights from 0 to 1.
 */
export function figures(layer, slice, axis, view, width, height) {
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
export function colours(layer, scheme, { cells }, top, none) {
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
export function ticks(from, to, width, apart = 96) {
  const least = ((to - from) / width) * apart;
  const step = STEPS.find((step) => step >= least) ?? STEPS.at(-1);
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const times = [];
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) times.push(time);
  return { times, step };
}
