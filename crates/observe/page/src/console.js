// A console: commands with completion, history, and the help of the one at hand.

import { command, get } from "./api.js";
import { h, say } from "./dom.js";
import { commandAt, completions, shown, split } from "./words.js";

const MOST_OFFERED = 8;
/** Lines of history, and replies on the screen. */
const MOST_KEPT = 200;

export class Console {
  /** @param {{ask: (why: string) => Promise<boolean>}} session Asks for a token or a login. */
  constructor(session) {
    this.session = session;
    this.commands = [];
    this.history = [];
    this.at = 0;
    this.offered = [];
    this.chosen = -1;
    this.log = h("div", { class: "replies", role: "log", "aria-label": "Replies", tabindex: "0" });
    this.none = h("div", { class: "empty" }, h("strong", {}, "A console"), h("p", {}, "Type a command, such as PING or RANGE - + LIMIT 10. Tab completes, the up arrow brings back what was typed before."));
    this.input = h("input", {
      type: "text",
      id: "line",
      role: "combobox",
      "aria-label": "Command",
      "aria-expanded": "false",
      "aria-controls": "offers",
      "aria-autocomplete": "list",
      "aria-describedby": "help",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder: "Command",
      oninput: () => this.typed(),
      onkeydown: (event) => this.key(event),
      onblur: () => this.offer([]),
    });
    this.offers = h("ul", { class: "offers", id: "offers", role: "listbox", "aria-label": "Completions", hidden: true });
    this.help = h("div", { class: "help", id: "help" });
    const form = h("form", { class: "line", onsubmit: (event) => this.submit(event) }, h("span", { "aria-hidden": "true", class: "prompt" }, ">"), this.input, h("button", { type: "submit" }, "Run"), this.offers);
    this.element = h("section", { class: "panel console", "aria-label": "Console" }, h("header", {}, h("div", {}, h("h2", {}, "Console"))), this.none, this.log, form, this.help);
    this.log.hidden = true;
    this.explain();
  }

  async start() {
    this.input.focus({ preventScroll: true });
    if (this.commands.length > 0) return;
    try {
      this.commands = (await get("commands")).commands;
      this.typed();
    } catch (error) {
      say(this.help, `The commands cannot be read now: ${error.message}`);
    }
  }

  stop() {}

  typed() {
    this.offer(completions(this.commands, this.input.value).slice(0, MOST_OFFERED));
    this.explain();
  }

  explain() {
    const known = commandAt(this.commands, this.chosen >= 0 ? this.offered[this.chosen].name : this.input.value);
    if (!known) {
      this.help.replaceChildren(h("span", { class: "soft" }, this.commands.length > 0 ? `${this.commands.length} commands are known.` : "A command's syntax appears here."));
      return;
    }
    const writes = known.writes ? h("span", { class: "tag" }, "writes") : null;
    this.help.replaceChildren(h("code", {}, known.syntax || known.name), " ", writes, h("p", {}, known.summary));
  }

  offer(commands) {
    this.offered = commands;
    this.chosen = -1;
    this.offers.replaceChildren(
      ...commands.map((each, index) =>
        h("li", { role: "option", id: `offer-${index}`, "aria-selected": "false", onpointerdown: (event) => this.take(event, index) }, h("b", {}, each.name), h("span", {}, each.summary)),
      ),
    );
    this.offers.hidden = commands.length === 0;
    this.input.setAttribute("aria-expanded", String(commands.length > 0));
    this.input.removeAttribute("aria-activedescendant");
  }

  choose(index) {
    this.chosen = index;
    [...this.offers.children].forEach((child, each) => child.setAttribute("aria-selected", String(each === index)));
    this.offers.children[index]?.scrollIntoView({ block: "nearest" });
    if (index >= 0) this.input.setAttribute("aria-activedescendant", `offer-${index}`);
    this.explain();
  }

  take(event, index) {
    event.preventDefault();
    this.input.value = `${this.offered[index].name.replace("|", " ")} `;
    this.typed();
  }

  key(event) {
    const many = this.offered.length;
    if (event.key === "Tab" && many > 0 && !event.shiftKey) return this.take(event, Math.max(0, this.chosen));
    if (event.key === "Escape" && many > 0) return this.offer([]);
    if (event.key === "Enter" && this.chosen >= 0) return this.take(event, this.chosen);
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    const down = event.key === "ArrowDown";
    // With completions open the arrows choose one; the history is behind the first.
    if (many > 0 && (down || this.chosen > 0)) return this.choose(Math.min(many - 1, this.chosen + (down ? 1 : -1)));
    this.at = Math.min(this.history.length, Math.max(0, this.at + (down ? 1 : -1)));
    this.input.value = this.history[this.at] ?? "";
    this.offer([]);
    this.explain();
  }

  async submit(event) {
    event.preventDefault();
    const line = this.input.value.trim();
    if (line === "") return;
    this.history = [...this.history.filter((each) => each !== line), line].slice(-MOST_KEPT);
    this.at = this.history.length;
    this.input.value = "";
    this.typed();
    const reply = this.entry(line);
    try {
      await this.run(split(line), reply);
    } catch (error) {
      show(reply, `(refused) ${error.message}`, true);
    }
    this.log.scrollTop = this.log.scrollHeight;
  }

  async run(words, reply) {
    try {
      answer(reply, await command(words));
    } catch (error) {
      if (error.status !== 401 && error.status !== 403) throw error;
      show(reply, `(refused) ${error.message}`, true);
      if (!(await this.session.ask(error.message))) return;
      answer(reply, await command(words));
      this.input.focus();
    }
  }

  entry(line) {
    const reply = h("pre", {}, "…");
    this.log.append(h("div", { class: "asked" }, h("span", { "aria-hidden": "true" }, "> "), line), reply);
    while (this.log.childElementCount > 2 * MOST_KEPT) this.log.firstElementChild.remove();
    this.none.hidden = true;
    this.log.hidden = false;
    this.log.scrollTop = this.log.scrollHeight;
    return reply;
  }
}

function answer(element, { reply }) {
  show(element, shown(reply), reply !== null && typeof reply === "object" && "error" in reply);
}

function show(element, text, isError) {
  element.textContent = text;
  element.classList.toggle("error", isError);
}
