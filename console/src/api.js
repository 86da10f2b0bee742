// Requests to the server, and what they say about the connection and the session.
import { createStore } from "./store.js";

// phase: starting | ready | signed-out | lost
export const session = createStore({ phase: "starting", reason: null, who: null, generation: 0, retryAt: null });

export class Problem extends Error {
  constructor(status, details) {
    super(details.detail ?? details.message ?? `the server answered with the status ${status}`);
    this.status = status;
    this.details = details;
    this.code = details.code ?? "unknown";
    this.hint = details.hint ?? null;
  }
}

const LOST = { code: "no-connection", detail: "there is no connection to the server" };

// Integers and decimals that JavaScript cannot hold stay as they are written.
function keepNumbers(_, value, context) {
  if (typeof value !== "number" || !context?.source || !JSON.rawJSON) return value;
  return String(value) === context.source ? value : JSON.rawJSON(context.source);
}

export function parseExactly(text) {
  return JSON.parse(text, keepNumbers);
}

// An answer: numbers of events stay as they are written, all others are numbers.
export function parseJson(text) {
  return unwrap(parseExactly(text));
}

const FROM_EVENTS = new Set(["content", "values"]);

function unwrap(value) {
  if (value === null || typeof value !== "object") return value;
  if (JSON.isRawJSON?.(value)) return Number(value.rawJSON);
  for (const [name, own] of Object.entries(value)) {
    const plain = FROM_EVENTS.has(name) ? own : unwrap(own);
    if (plain !== own) value[name] = plain;
  }
  return value;
}

async function send(method, path, { body, text, headers = {}, signal } = {}) {
  const shown = { accept: "application/json", ...headers };
  const { who } = session.get();
  if (who?.token) shown["tamis-token"] = who.token;
  if (body !== undefined) text = JSON.stringify(body);
  if (text !== undefined && !shown["content-type"]) shown["content-type"] = "application/json";
  try {
    return await fetch(path, { method, headers: shown, body: text, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lose();
    throw new Problem(0, LOST);
  }
}

async function fail(answer) {
  let details = {};
  try {
    details = parseJson(await answer.text());
  } catch {
    // Not ours: a proxy, or a connection that broke.
  }
  const problem = new Problem(answer.status, details);
  if (answer.status === 401 && session.get().phase === "ready") refresh();
  throw problem;
}

export async function ask(method, path, options) {
  const answer = await send(method, path, options);
  if (!answer.ok) await fail(answer);
  if (answer.status === 204) return null;
  try {
    return parseJson(await answer.text());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lose();
    throw new Problem(0, LOST);
  }
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body, options) => ask("POST", path, { ...options, body });

// The lines of JSON of an answer, as they come.
export async function* lines(method, path, options) {
  const answer = await send(method, path, options);
  if (!answer.ok) await fail(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const found = (rest + value).split("\n");
    rest = found.pop();
    for (const line of found) if (line) yield parseJson(line);
  }
  if (rest) yield parseJson(rest);
}

// The messages of a stream of Server-Sent Events; EventSource hides why a stream ends. The first one
// has no data: it says that the stream is open.
export async function* messages(path, signal, headers = {}) {
  const answer = await send("GET", path, { headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!answer.ok) await fail(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (signal?.aborted) return;
      lose();
      throw new Problem(0, LOST);
    }
    if (piece.done) return;
    const found = (rest + piece.value).split("\n\n");
    rest = found.pop();
    for (const message of found) {
      const fields = {};
      for (const line of message.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
      }
      yield { id: fields.id ?? null, kind: fields.event, data: fields.data === undefined ? null : parseJson(fields.data) };
    }
  }
}

export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") found.set(name, value);
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

export const pathOf = (id) => {
  const encoded = encodeURIComponent(id.toWellFormed()).replace(/\./g, "%2E");
  // Two paths of the interface look like ids; an encoded letter tells them apart.
  return encoded === "import" || encoded === "export" ? `%${encoded.charCodeAt(0).toString(16)}${encoded.slice(1)}` : encoded;
};

// ── the session ────────────────────────────────────────────────────────────────────────────

let waiting = null;
let attempt = 0;

export async function refresh() {
  clearTimeout(waiting);
  waiting = null;
  let who;
  try {
    who = await get("/v1/session");
  } catch (problem) {
    if (problem.status) session.set({ phase: "lost", reason: problem.message, retryAt: later() });
    return;
  }
  attempt = 0;
  const before = session.get();
  const isIn = who.state === "open" || who.state === "signed-in";
  if (!isIn) {
    session.set({ phase: "signed-out", reason: who.state === "ended" ? "ended" : null, who, retryAt: null });
    return;
  }
  let reason = null;
  if (before.who && before.who.version !== who.version) reason = "updated";
  else if (before.who && before.who.instance !== who.instance) reason = "restarted";
  else if (before.phase === "lost") reason = "back";
  session.set({ phase: "ready", reason, who, generation: before.generation + 1, retryAt: null });
}

function later() {
  const seconds = Math.min(8, 2 ** attempt++);
  clearTimeout(waiting);
  waiting = setTimeout(refresh, seconds * 1000);
  return Date.now() + seconds * 1000;
}

function lose() {
  if (waiting && session.get().phase === "lost") return;
  session.set({ phase: "lost", reason: null, retryAt: later() });
}

export async function signIn(key) {
  const who = await ask("POST", "/v1/session", { headers: { authorization: `Bearer ${key}` } });
  session.set({ phase: "ready", reason: null, who, generation: session.get().generation + 1 });
}

export async function signOut() {
  await ask("DELETE", "/v1/session");
  await refresh();
}

export function may(role) {
  return Boolean(session.get().who?.roles.includes(role));
}

// ── tickets ────────────────────────────────────────────────────────────────────────────────

// Of subscriptions that were made in this tab; they are gone when it is closed.
const TICKETS = "tamis-tickets";

function readTickets() {
  try {
    return JSON.parse(sessionStorage.getItem(TICKETS)) ?? {};
  } catch {
    return {};
  }
}

export function ticketOf(id) {
  const found = readTickets();
  return Object.hasOwn(found, id) ? found[id] : null;
}

export function keepTicket(id, ticket) {
  const found = readTickets();
  Object.defineProperty(found, id, { value: ticket, enumerable: true, configurable: true, writable: true });
  sessionStorage.setItem(TICKETS, JSON.stringify(found));
}

export function withTicket(id, headers = {}) {
  const ticket = ticketOf(id);
  return ticket ? { ...headers, "tamis-ticket": ticket } : headers;
}
