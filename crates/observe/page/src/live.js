// The stream of events, and whether it flows.
//
// The browser connects again by itself after a loss, and then asks for what it missed
// (`Last-Event-ID`). It gives up when the answer is no stream (the server is starting, say): then a
// new stream is opened here after a while.

import { streamToken } from "./api.js";

/** After so long without an event the stream counts as stalled; there is one each second. */
const SILENCE = 5000;
const RETRY = 1500;

export class Live extends EventTarget {
  constructor() {
    super();
    /** "connecting", "live", "stalled" or "lost". */
    this.state = "connecting";
    this.since = Date.now();
    this.map = null;
    this.source = null;
    this.lastEvent = 0;
    this.wasLost = false;
    setInterval(() => this.watch(), 1000);
  }

  /** Opens the stream, with the columns of a map if one is named. */
  open(map) {
    this.map = map;
    this.source?.close();
    clearTimeout(this.again);
    const query = new URLSearchParams();
    if (map !== null) query.set("map", map);
    const token = streamToken();
    if (token !== null) query.set("token", token);
    const source = new EventSource(`/api/events?${query}`);
    this.source = source;
    source.addEventListener("open", () => this.flows());
    source.addEventListener("second", (event) => this.pass("second", event));
    source.addEventListener("map", (event) => this.pass("map", event, map));
    source.addEventListener("error", () => this.lost(source));
  }

  pass(name, event, map) {
    this.lastEvent = Date.now();
    this.flows();
    let data;
    try {
      data = JSON.parse(event.data);
    } catch {
      return;
    }
    this.dispatchEvent(new CustomEvent(name, { detail: name === "map" ? { map, column: data } : data }));
  }

  flows() {
    const resumed = this.wasLost;
    this.wasLost = false;
    this.lastEvent = Date.now();
    this.become("live");
    if (resumed) this.dispatchEvent(new Event("resumed"));
  }

  lost(source) {
    if (source !== this.source) return;
    this.wasLost = true;
    this.become("lost");
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.again);
    this.again = setTimeout(() => this.open(this.map), RETRY);
  }

  watch() {
    const silence = Date.now() - this.lastEvent;
    if (this.state === "live" && silence > SILENCE) this.become("stalled");
    // A connection may die without an end: then only a new one shows whether the server is there.
    if (this.state === "stalled" && silence > 2 * SILENCE) {
      this.wasLost = true;
      this.become("lost");
      this.open(this.map);
    }
    this.dispatchEvent(new Event("state"));
  }

  become(state) {
    if (state === this.state) return;
    this.state = state;
    this.since = Date.now();
    this.dispatchEvent(new Event("state"));
  }
}
