// Builds `dist/` from `src/` and `vendor/`: `node build.mjs`. With `--check` nothing is written, and
// it fails if a file of `dist/` is not what would be written.
//
// The modules of `src/` become one file. Each is a function that returns what the module exports, and
// follows those that it imports.

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, path), "utf8");

const IMPORT = /^import (?:\{([^}]*)\}|\* as (\w+)) from "\.\/([\w-]+)\.js";\n/gm;
const EXPORTED = /^export (?:async )?(?:const|class|function) (\w+)/gm;

function fail(why) {
  console.error(why);
  process.exit(1);
}

/** The modules in an order in which each follows those that it imports. */
function ordered(entry) {
  const order = [];
  const open = new Set();
  const visit = (name) => {
    if (order.includes(name)) return;
    if (open.has(name)) fail(`src/${name}.js: its imports lead back to it`);
    open.add(name);
    for (const [, , , from] of read(`src/${name}.js`).matchAll(IMPORT)) visit(from);
    order.push(name);
  };
  visit(entry);
  return order;
}

const exportsOf = (source) => [...source.matchAll(EXPORTED)].map((match) => match[1]);

/** A module as a function. */
function enclosed(name) {
  const source = read(`src/${name}.js`);
  const imported = (_, names, namespace, from) => {
    if (namespace) return `const ${namespace} = modules.${from};\n`;
    const offered = exportsOf(read(`src/${from}.js`));
    const missing = names.split(",").map((each) => each.trim()).filter((each) => each !== "" && !offered.includes(each));
    if (missing.length > 0) fail(`src/${name}.js: ${from}.js exports no ${missing.join(", ")}`);
    return `const {${names}} = modules.${from};\n`;
  };
  const body = source.replace(IMPORT, imported).replace(/^export (?=(?:async )?(?:const|class|function) )/gm, "");
  if (/^(?:import|export)\b/m.test(body)) fail(`src/${name}.js: has an import or export that the build cannot read`);
  return `// --- ${name}.js ---\n\nmodules.${name} = (() => {\n${body.trim()}\n\nreturn { ${exportsOf(source).join(", ")} };\n})();\n`;
}

function bundle(entry) {
  const order = ordered(entry);
  const all = readdirSync(join(here, "src")).filter((name) => name.endsWith(".js"));
  const unused = all.filter((name) => !order.includes(name.replace(".js", "")));
  if (unused.length > 0) fail(`no module imports ${unused.join(", ")}`);
  return ["// Built by build.mjs from src/: change the modules there.\n\nconst modules = {};\n", ...order.map(enclosed)].join("\n");
}

const licence = read("vendor/uplot/LICENSE").trim();
const files = {
  "index.html": read("src/index.html"),
  "app.js": bundle("main"),
  "style.css": read("src/style.css"),
  "icon.svg": read("src/icon.svg"),
  "uplot.js": `/*!\n${licence}\n*/\n${read("vendor/uplot/uPlot.iife.min.js")}`,
  "uplot.css": `/*!\n${licence}\n*/\n${read("vendor/uplot/uPlot.min.css")}`,
};

mkdirSync(join(here, "dist"), { recursive: true });
if (process.argv.includes("--check")) {
  const there = readdirSync(join(here, "dist"));
  const stale = Object.keys(files).filter((name) => !there.includes(name) || read(`dist/${name}`) !== files[name]);
  const foreign = there.filter((name) => !(name in files));
  if (stale.length + foreign.length > 0) fail(`dist is not what build.mjs makes: ${[...stale, ...foreign].join(", ")}. Run: node crates/observe/page/build.mjs`);
} else {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(here, "dist", name), text);
}
