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
export function ramp(layer, scheme) {
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
export function shade(layer, scheme, share) {
  const { hues, chroma } = RAMPS[layer];
  const [from, to] = LIGHTNESS[scheme];
  const lightness = from + (to - from) * share;
  // The dark scheme runs through the same hues the other way: its bright end is the pale one.
  const along = scheme === "light" ? share : 1 - share;
  const hue = ((hues[0] + (hues[1] - hues[0]) * along) * Math.PI) / 180;
  const strength = chroma * Math.sin(Math.PI * (0.03 + 0.92 * along)) ** 0.7;
  return inGamut(lightness, strength, hue);
}

export function css([red, green, blue]) {
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
export function scheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
