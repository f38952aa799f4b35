// Figures as text, each with its unit.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const WITH_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const WITHOUT_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Three digits that mean something: 1,234 or 12.3k or 4.56M. */
export function count(value) {
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

export function exact(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function bytes(value) {
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

export function micros(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e6) return digits(value / 1e6) + " s";
  if (value >= 1e3) return digits(value / 1e3) + " ms";
  return digits(value) + " µs";
}

export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.1) return "< 0.1 %";
  return (value < 10 ? value.toFixed(1) : value.toFixed(0)) + " %";
}

/** A length of time in its two largest units. */
export function duration(seconds) {
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

export function clock(milliseconds, seconds = true) {
  return (seconds ? WITH_SECONDS : WITHOUT_SECONDS).format(milliseconds);
}

/** A key, cut in its middle if it is long; the empty key has a name. */
export function key(text, most = 40) {
  if (text === "") return "(lowest)";
  const letters = [...text];
  if (letters.length <= most) return text;
  const kept = most - 1;
  const front = Math.ceil(kept / 2);
  return letters.slice(0, front).join("") + "…" + letters.slice(letters.length - (kept - front)).join("");
}
