// The leaves of one table's tree, each a cell of one canvas: in key order from left to right, row
// by row. Ten thousand leaves are one element.

import { get } from "./api.js";
import { css, ramp, scheme, shade } from "./colour.js";
import { colourOf, fit, h, onNextFrame, say } from "./dom.js";
import * as format from "./format.js";

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

export class Tree {
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
export function gradient(name) {
  const stops = Array.from({ length: 13 }, (_, index) => css(shade(name, scheme(), index / 12)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
