// Making elements. No HTML is parsed anywhere: text from the server stays text.

/**
 * An element with attributes and children. `on...` adds a listener, `true` an empty attribute;
 * `null`, `undefined` and `false` leave an attribute or a child out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
export function h(tag, attributes = {}, ...children) {
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
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Replaces text only if it changed, so that a screen reader is not made to read it again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The colour that a custom property of the style sheet has now, in the scheme in use. */
export function colourOf(name) {
  const probe = document.getElementById("probe");
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** The same as three bytes. */
export function bytesOf(name) {
  return colourOf(name).match(/\d+/g).slice(0, 3).map(Number);
}

/** Calls `paint` once before the next frame, however often it is asked. */
export function onNextFrame(paint) {
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
export function fit(canvas) {
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
export function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), h("p", {}, text));
}
