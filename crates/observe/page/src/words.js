// Command lines: how they are cut into words, and how replies are shown.

/**
 * Cuts a line as redis-cli does: words are separated by blanks; "..." knows \n, \r, \t, \", \\ and
 * \xHH; '...' knows \'. Throws if a quote does not end, or if a word follows it at once.
 */
export function split(line) {
  const words = [];
  let at = 0;
  while (at < line.length) {
    if (/\s/.test(line[at])) {
      at += 1;
      continue;
    }
    const quote = line[at];
    if (quote !== '"' && quote !== "'") {
      const end = line.slice(at).search(/\s/);
      words.push(end < 0 ? line.slice(at) : line.slice(at, at + end));
      at = end < 0 ? line.length : at + end;
      continue;
    }
    let word = "";
    at += 1;
    while (line[at] !== quote) {
      if (at >= line.length) throw new Error(`the quote ${quote} does not end`);
      if (line[at] === "\\" && at + 1 < line.length) {
        const hex = quote === '"' ? /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at)) : null;
        if (hex) {
          word += String.fromCharCode(parseInt(hex[1], 16));
          at += 4;
          continue;
        }
        const letter = line[at + 1];
        const known = quote === '"' ? { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" } : { "'": "'" };
        word += letter in known ? known[letter] : quote === '"' ? letter : "\\" + letter;
        at += 2;
        continue;
      }
      word += line[at];
      at += 1;
    }
    at += 1;
    if (at < line.length && !/\s/.test(line[at])) throw new Error(`a blank must follow the closing quote ${quote}`);
    words.push(word);
  }
  return words;
}

/** Elements of a list that are shown. */
const MOST_SHOWN = 500;

/** A reply as lines of text, as redis-cli shows it. */
export function shown(reply, indent = "") {
  if (reply === null || reply === undefined) return "(nil)";
  if (typeof reply === "boolean") return reply ? "(true)" : "(false)";
  if (typeof reply === "number") return `(number) ${reply}`;
  if (typeof reply === "string") return reply;
  if ("status" in reply) return reply.status;
  if ("error" in reply) return `(error) ${reply.error}`;
  if ("bulk" in reply) return `"${reply.bulk}"`;
  if ("array" in reply) return list(reply.array, indent, (each, inner) => shown(each, inner));
  if ("map" in reply) return list(reply.map, indent, ([key, value], inner) => `${shown(key, inner)} => ${shown(value, inner)}`);
  return JSON.stringify(reply);
}

function list(elements, indent, one) {
  if (elements.length === 0) return "(empty)";
  const digits = String(Math.min(elements.length, MOST_SHOWN)).length;
  const inner = indent + " ".repeat(digits + 2);
  const lines = elements.slice(0, MOST_SHOWN).map((element, index) => {
    const number = `${String(index + 1).padStart(digits)}) `;
    return (index === 0 ? "" : indent) + number + one(element, inner);
  });
  if (elements.length > MOST_SHOWN) lines.push(`${indent}… and ${elements.length - MOST_SHOWN} more`);
  return lines.join("\n");
}

/** The commands that a line may become: those that begin with what is typed, words apart. */
export function completions(commands, line) {
  const typed = line.trimStart().toUpperCase();
  if (typed === "") return [];
  return commands.filter(({ name }) => name.toUpperCase().startsWith(typed) && name.toUpperCase() !== typed);
}

/** The command that a line calls: the longest name that it begins with. */
export function commandAt(commands, line) {
  const typed = line.trim().toUpperCase().replace(/\s+/g, " ");
  let best = null;
  for (const command of commands) {
    const name = command.name.toUpperCase().replace("|", " ");
    if ((typed === name || typed.startsWith(name + " ")) && name.length > (best?.name.length ?? 0)) best = command;
  }
  return best;
}
