// Draws what lies over the map's cells: keys and times along its sides, marks, and the cursor.

import { colourOf } from "./dom.js";
import { clock, key } from "./format.js";
import { ticks } from "./paint.js";

/** Marks nearer than this are drawn as one; nearer than more, if they are too many to be read. */
const APART = 12;
const MOST_MARKS = 250;

/** Where the cells are inside of the canvas, in CSS pixels. */
export function plotOf(width, height) {
  const narrow = width < 560;
  const left = narrow ? 74 : 148;
  return { left, top: 6, width: Math.max(1, width - left - 10), height: Math.max(1, height - 6 - 24), narrow };
}

export class Over {
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
