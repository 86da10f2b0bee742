// A matched event as people read it: title, link, source, time, and where the found words are.
import { useState } from "preact/hooks";
import { moment, number, pretty, spell } from "./format.js";
import { linkTo } from "./hooks.js";
import { Badge, Code, Text, pieces } from "./ui.jsx";

const MOST_READ = 200_000; // UTF-16 units of a text
const EXCERPT = 360; // characters
const BEFORE = 80; // characters before the first found word
const BODIES = ["body", "summary", "text", "description", "content"];

// The value of an attribute, by its name as expressions spell it: title, a.b, `odd name`.
function valueAt(content, name) {
  let found = content;
  for (const [, quoted, plain] of name.matchAll(/`((?:[^`]|``)*)`|([^.`]+)/g)) {
    if (found === null || typeof found !== "object") return undefined;
    const key = quoted === undefined ? plain : quoted.replaceAll("``", "`");
    found = Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found;
}

// The parts of a text, found or not. Places are in characters, as the server counts them.
function split(text, spans, most) {
  const characters = Array.from(text.slice(0, MOST_READ));
  const first = spans[0]?.[0] ?? 0;
  let from = most && characters.length > most && first > BEFORE ? first - BEFORE : 0;
  while (from > 0 && from < first && characters[from - 1].trim()) from += 1; // not within a word
  const to = Math.min(characters.length, most ? from + most : characters.length);
  const parts = [];
  let at = from;
  const add = (end, isFound) => {
    if (end > at) parts.push([characters.slice(at, end).join(""), isFound]);
    at = Math.max(at, end);
  };
  for (const [begin, end] of spans) {
    add(Math.min(begin, to), false);
    add(Math.min(end, to), true);
  }
  add(to, false);
  return { parts, isBegun: from === 0, isEnded: to === characters.length && text.length <= MOST_READ };
}

export function Marked({ text, spans = [], most = 0 }) {
  const { parts, isBegun, isEnded } = split(text, spans, most);
  return (
    <bdi>
      {!isBegun && "… "}
      {parts.map(([part, isFound], at) => (isFound ? <mark key={at}>{pieces(part)}</mark> : pieces(part)))}
      {!isEnded && " …"}
    </bdi>
  );
}

// Where a link leads, if it leads to a web page.
function webAddress(text) {
  if (typeof text !== "string") return null;
  try {
    const found = new URL(text);
    return ["http:", "https:"].includes(found.protocol) ? found : null;
  } catch {
    return null;
  }
}

const isText = (value) => typeof value === "string" && value.trim() !== "";

// Where words are found in a text and in its version for a language, which is the same text.
function withoutVersions(highlights, content) {
  const merged = {};
  for (const [name, spans] of Object.entries(highlights)) {
    const plain = name.replace(/_[a-z]{2}$/, "");
    const isVersion = plain !== name && valueAt(content, plain) === valueAt(content, name);
    const key = isVersion ? plain : name;
    merged[key] = [...(merged[key] ?? []), ...spans].sort((one, other) => one[0] - other[0]);
  }
  return merged;
}

function chooseBodies(content, highlights) {
  const found = Object.keys(highlights).filter((name) => name !== "title" && isText(valueAt(content, name)));
  if (found.length) return found.slice(0, 3);
  return BODIES.filter((name) => Object.hasOwn(content, name) && isText(content[name])).slice(0, 1);
}

// A match of a mailbox, or a hit of a search. `subscription` is what it is explained for.
export function Story({ found, subscription }) {
  const content = found.content;
  if (content === null || typeof content !== "object") {
    return <li class="story"><h3>Event {number(found.event)}</h3><p class="hint">Its text is not archived.</p></li>;
  }
  const highlights = withoutVersions(found.highlights ?? {}, content);
  const hasTitle = isText(content.title);
  const address = webAddress(content.link);
  const bodies = chooseBodies(content, highlights);
  const source = [content.feed_title, webAddress(content.feed)?.host, content.source].find(isText);
  return (
    <li class="story">
      <h3>{hasTitle ? <Marked text={content.title} spans={highlights.title} /> : `Event ${number(found.event)}`}</h3>
      <p class="about">
        {source && <Text>{source}</Text>}
        <span>{moment(isText(content.published) ? content.published : found.moment)}</span>
        {address && <a href={address.href} target="_blank" rel="noopener noreferrer"><Text>{address.host}</Text></a>}
        <a href={linkTo(["playground"], { event: spell(content), subscription })}>Event {number(found.event)}</a>
        {typeof found.score === "number" && <Badge>{found.score.toFixed(2)}</Badge>}
      </p>
      {bodies.map((name) => (
        <p key={name} class="excerpt">{name !== "body" && <strong><Text>{name}</Text>: </strong>}<Marked text={valueAt(content, name)} spans={highlights[name]} most={EXCERPT} /></p>
      ))}
      {!bodies.length && !hasTitle && <Code class="one-line">{spell(content)}</Code>}
      <Raw content={content} />
    </li>
  );
}

function Raw({ content }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.target.open)}>
      <summary>As JSON</summary>
      {isOpen && <pre class="raw"><Code lines>{pretty(content)}</Code></pre>}
    </details>
  );
}
