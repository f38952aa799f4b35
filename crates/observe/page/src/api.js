// Requests to the server that served the page.

/** What the server refused, with its own sentence and the status. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Kept in memory only: it is gone when the page is. */
let token = null;

export function setToken(value) {
  token = value;
}

export function hasToken() {
  return token !== null;
}

/** Whether the server lets only known users read. */
let guarded = false;

export function setGuarded(value) {
  guarded = value;
}

/** The token for a stream of events, whose requests take no headers; null if it needs none. */
export function streamToken() {
  return guarded ? token : null;
}

async function answer(response) {
  const text = await response.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(response.status, response.ok ? "the answer is no JSON" : text || `status ${response.status}`);
  }
  if (!response.ok) throw new Refused(response.status, body.error ?? `status ${response.status}`);
  return body;
}

/** Reads a resource of the API; `signal` ends the request. */
export async function get(path, signal) {
  const headers = guarded && token !== null ? { "Tremula-Token": token } : {};
  return answer(await fetch(`/api/${path}`, { signal, headers, cache: "no-store" }));
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token !== null) headers["Tremula-Token"] = token;
  return answer(await fetch(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

export function command(words) {
  return post("command", { args: words });
}

/** Exchanges a user's name and password for a token, and keeps that. */
export async function login(user, password) {
  const granted = await post("login", { user, password });
  setToken(granted.token);
  return granted.user;
}
