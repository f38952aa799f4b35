// The figures of each second, the last hour of them.

const MOST = 3600;

export class Seconds {
  constructor() {
    /** Oldest first. */
    this.all = [];
  }

  get last() {
    return this.all.at(-1);
  }

  /** Adds a second that is newer than all others; others are there already. */
  add(second) {
    if (this.last && second.at <= this.last.at) return;
    this.all.push(second);
    if (this.all.length > MOST) this.all.splice(0, this.all.length - MOST);
  }

  /** Adds a history, oldest first, to what is there. */
  merge(history) {
    const byTime = new Map(this.all.map((second) => [second.at, second]));
    for (const second of history) byTime.set(second.at, second);
    this.all = [...byTime.values()].sort((one, other) => one.at - other.at).slice(-MOST);
  }

  /** The seconds of the last `span` seconds. */
  within(span) {
    if (!this.last) return [];
    const from = this.last.at - span * 1000;
    let first = this.all.length;
    while (first > 0 && this.all[first - 1].at > from) first -= 1;
    return this.all.slice(first);
  }

  /** The commands with most calls among some seconds, by name, busiest first. */
  static busiest(seconds) {
    const calls = new Map();
    for (const second of seconds) {
      for (const { name, calls: more } of second.commands) calls.set(name, (calls.get(name) ?? 0) + more);
    }
    return [...calls].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).map(([name]) => name);
  }
}

export function callsOf(second) {
  return second.commands.reduce((sum, command) => sum + command.calls, 0);
}
