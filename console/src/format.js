// Numbers, moments and texts as people read them.
import { parseExactly } from "./api.js";

const NUMBER = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));
export const short = (value) => (value < 10_000 ? NUMBER.format(value) : SHORT.format(value));

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.1 ? 1 : 0)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} d`;
}

const DATE = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

export function moment(text) {
  if (!text) return "–";
  const found = new Date(text);
  return Number.isNaN(found.getTime()) ? visible(text) : DATE.format(found).replace(",", "");
}

const CAUSES = [
  [/gaierror|Errno -[235]\b|Name or service not known|getaddrinfo/i, "the name of the host is not known"],
  [/Errno 111|ECONNREFUSED|refused|All connection attempts failed/i, "the host does not accept connections"],
  [/timed? ?out/i, "the host did not answer in time"],
  [/Errno (101|113)|unreachable|No route/i, "the host cannot be reached"],
  [/certificate|SSL|TLS/i, "the host could not prove who it is, or speaks no TLS"],
  [/reset by peer|Errno 104|disconnected|closed/i, "the host closed the connection"],
];

// Why a request to another host failed, in words.
export function cause(text) {
  if (!/Error|Errno|Exception|Timeout|^\w+: /.test(text ?? "")) return text;
  const found = CAUSES.find(([sign]) => sign.test(text));
  return found ? found[1] : text;
}

export const clock = (text) => CLOCK.format(new Date(text));

// How far away a moment is: "in 3 h", "2 d ago".
export function distance(text, now = Date.now()) {
  const gap = (new Date(text).getTime() - now) / 1000;
  const size = Math.abs(gap);
  const shown = size < 60 ? `${Math.round(size)} s` : size < 3600 ? `${Math.round(size / 60)} min` : size < 172800 ? `${Math.round(size / 3600)} h` : `${NUMBER.format(Math.round(size / 86400))} d`;
  return gap < 0 ? `${shown} ago` : `in ${shown}`;
}

export const plural = (count, word, many = `${word}s`) => `${number(count)} ${count === 1 ? word : many}`;

// Characters that change how others are shown, or are not shown at all. What chooses the look of an
// emoji belongs to it.
export const ODD = /(?![\ufe0e\ufe0f])[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Surrogate}\u2028\u2029\u2800\ufff9-\ufffb]|(?<!\p{Extended_Pictographic})[\ufe0e\ufe0f]/gu;

export const nameOdd = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// A text for places that show nothing but texts, such as names for screen readers.
export const visible = (text) => String(text).replace(ODD, (own) => `⟨${nameOdd(own)}⟩`);

export const spell = (value) => JSON.stringify(value);

export function pretty(value) {
  return JSON.stringify(value, null, 2);
}

export function readEvent(text) {
  const found = parseExactly(text);
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new SyntaxError("an event is an object: { … }");
  return found;
}
