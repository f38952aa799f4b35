// The token or the login that commands that write need.

import { command, hasToken, login, setGuarded, setToken } from "./api.js";
import { h, say } from "./dom.js";

export class Session {
  constructor(button) {
    this.button = button;
    this.way = "none";
    this.user = null;
    this.why = h("p", { id: "why" });
    this.fields = h("div", { class: "fields" });
    this.trouble = h("p", { class: "error", role: "alert" });
    const cancel = h("button", { type: "button", onclick: () => this.dialog.close("") }, "Cancel");
    this.go = h("button", { type: "submit", class: "primary" }, "Sign in");
    const form = h("form", { onsubmit: (event) => this.submit(event) }, h("h2", { id: "sign-in" }, "Sign in"), this.why, this.fields, this.trouble, h("div", { class: "buttons" }, cancel, this.go));
    this.dialog = h("dialog", { "aria-labelledby": "sign-in", "aria-describedby": "why", onclose: () => this.closed() }, form);
    button.addEventListener("click", () => (hasToken() ? this.leave() : void this.ask()));
    this.show();
  }

  /** Takes over how the server lets one write: "token", "login" or "none". */
  set(way) {
    this.way = way;
    setGuarded(way === "login");
    this.show();
  }

  /** Whether nothing can be read before somebody signs in. */
  get isShut() {
    return this.way === "login" && !hasToken();
  }

  show() {
    this.button.hidden = this.way === "none";
    say(this.button, hasToken() ? (this.user ? `Sign out ${this.user}` : "Sign out") : "Sign in");
  }

  leave() {
    setToken(null);
    this.user = null;
    this.show();
    // What only a user may see does not stay on the screen.
    if (this.way === "login") location.reload();
  }

  /** Drops a token that the server does not know. */
  forget() {
    setToken(null);
    this.user = null;
    this.show();
  }

  /** Opens the dialog. True when the page may write. */
  ask(why) {
    if (this.way === "none") return Promise.resolve(false);
    const byToken = this.way === "token";
    say(this.why, byToken ? "Commands that write need the token that the server printed when it started." : "Enter a user of this server, and its password.");
    const field = (id, label, type, hint) => [h("label", { for: id }, label), h("input", { id, type, required: true, autocomplete: hint, spellcheck: "false" })];
    const fields = byToken ? field("token", "Token", "password", "off") : [...field("user", "User", "text", "username"), ...field("password", "Password", "password", "current-password")];
    this.fields.replaceChildren(...fields);
    say(this.trouble, why ?? "");
    this.dialog.returnValue = "";
    this.dialog.showModal();
    this.fields.querySelector("input").focus();
    return new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  async submit(event) {
    event.preventDefault();
    const value = (id) => this.fields.querySelector(`#${id}`).value;
    try {
      if (this.way === "token") {
        setToken(value("token").trim());
        await command(["PING"]);
      } else {
        this.user = await login(value("user"), value("password"));
      }
      this.dialog.close("yes");
    } catch (error) {
      setToken(null);
      say(this.trouble, error.message);
    }
  }

  closed() {
    this.fields.replaceChildren();
    this.resolve?.(this.dialog.returnValue === "yes");
    this.resolve = null;
    this.show();
  }
}
