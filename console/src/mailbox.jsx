// The mailbox of a subscription or of a channel: the newest matches, and those that arrive.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, may, messages, query as toQuery, session } from "./api.js";
import { NameInput, askFor, boxOf, headersOf, pathOfBox } from "./boxes.jsx";
import { moment, number, plural, spell } from "./format.js";
import { linkTo, note, useDelayed, useLoaded } from "./hooks.js";
import { Story } from "./reading.jsx";
import { useStore } from "./store.js";
import { Badge, Card, Code, Empty, Loaded, ProblemNote, Table, Text } from "./ui.jsx";

const MOST = 100; // matches that are shown
const WINDOWS = [1_000, 20_000, 1_000_000, Infinity]; // events to look back for them

const numberOf = (cursor) => Number(cursor.split(":").pop());

// Calls `take` with each page of the events after a number. A page may be short although more
// follow: the cursor says how far it has looked.
async function readPages(box, { epoch, after, last, ...more }, signal, take) {
  for (let at = after; at < last;) {
    const page = await get(`${pathOfBox(box)}/matches${toQuery({ after: `${epoch}:${at}`, ...more })}`, { signal, headers: headersOf(box) });
    take(page);
    const next = numberOf(page.cursor);
    if (next <= at) break;
    at = next;
  }
}

// The newest matches. Mailboxes are read forwards, so ever larger windows are tried.
async function readNewest(box, signal) {
  const { last_event: last, epoch } = await get("/readyz", { signal });
  let found = [];
  let missed = null;
  for (const size of WINDOWS) {
    found = [];
    missed = null;
    await readPages(box, { epoch, last, after: Math.max(0, last - size), limit: 1000 }, signal, (page) => {
      found = found.concat(page.matches).slice(-MOST);
      missed ??= page.missed;
    });
    if (found.length >= MOST || size >= last) break;
  }
  if (last === 0) await get(`${pathOfBox(box)}/matches${toQuery({ limit: 1 })}`, { signal, headers: headersOf(box) }); // may it be read?
  return { matches: found.reverse(), missed, epoch, end: `${epoch}:${last}` };
}

// Where the words of the subscription are, by event, of the matches that are shown.
function useHighlights(box, shown, epoch, isWanted) {
  const [known, setKnown] = useState(() => new Map());
  const open = isWanted ? shown.filter((own) => !known.has(own.event)).map((own) => own.event) : [];
  const key = open.length ? `${Math.min(...open)}-${Math.max(...open)}` : "";
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const next = new Map(known);
      try {
        await readPages(box, { epoch, after: Math.min(...open) - 1, last: Math.max(...open), limit: MOST, highlights: true }, stop.signal, (page) => {
          for (const own of page.matches) next.set(own.event, own.highlights);
        });
      } catch {
        return; // it is readable without
      }
      for (const event of open) if (!next.has(event)) next.set(event, {});
      setKnown(next);
    }, 200);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return known;
}

export function Mailbox({ query }) {
  const [box, setBox] = useState(boxOf(query) ?? { kind: "subscription", name: "" });
  const wanted = useDelayed(box, 300);
  const opened = { ...wanted, name: wanted.name.trim() };
  useEffect(() => note(["deliveries", "mailbox"], askFor(opened)), [wanted]);
  const isChannel = box.kind === "channel";
  return (
    <>
      <div class="filters box">
        <select aria-label="Kind of mailbox" value={box.kind} onChange={(event) => setBox({ kind: event.target.value, name: "" })}>
          <option value="subscription">Subscription</option>
          <option value="channel">Channel</option>
        </select>
        <NameInput aria-label={isChannel ? "Name of a channel" : "Id of a subscription"} placeholder={isChannel ? "Name of a channel" : "Id of a subscription"} box={box} onChange={setBox} />
      </div>
      {opened.name ? <Opened key={`${opened.kind} ${opened.name}`} box={opened} /> : (
        <>
          <Empty title="No mailbox is open"><p>Each subscription has a mailbox with the events that matched, and a channel is one that several share. Write the id of a subscription, or open it from <a href={linkTo(["subscriptions"])}>the list</a>.</p></Empty>
          {may("read") && <Channels />}
        </>
      )}
    </>
  );
}

const MOST_CHANNELS = 1000;

function Channels() {
  const found = useLoaded((signal) => get(`/v1/channels?limit=${MOST_CHANNELS}`, { signal }), []);
  if (!found.value?.channels.length) return null;
  return (
    <Card title="Channels">
      <Table label="Channels" rows={found.value.channels} columns={[
        ["Name", (own) => <a href={linkTo(["deliveries", "mailbox"], { channel: own.name })}><Text>{own.name}</Text></a>, "first"],
        ["Owner", (own) => <Text>{own.owner || "–"}</Text>],
        ["Made", (own) => moment(own.created), "tight"],
      ]} />
      {found.value.cursor !== null && <p class="hint">The first {number(MOST_CHANNELS)} channels. Open another one by its name.</p>}
    </Card>
  );
}

const MOST_MEMBERS = 100;

function Members({ box }) {
  const found = useLoaded((signal) => get(`${pathOfBox(box)}/members?limit=${MOST_MEMBERS}`, { signal }), [box.name]);
  if (!found.value) return null;
  const { members, cursor } = found.value;
  return (
    <Card title="Subscriptions of the channel">
      {members.length === 0 ? <p class="hint">None, so nothing arrives.</p> : (
        <p class="attributes">{members.map((own) => <a class="tag" key={own.number} href={linkTo(["edit", own.id])}><Text>{own.id}</Text></a>)}{cursor !== null && <small>and more</small>}</p>
      )}
    </Card>
  );
}

function NothingYet({ box }) {
  if (box.kind === "channel") return <Empty title="Nothing has matched yet"><p>What matches one of its subscriptions appears here.</p></Empty>;
  return <Empty title="Nothing has matched yet"><p>See in <a href={linkTo(["playground"], { subscription: box.name })}>the playground</a> why an event does not match, or <a href={linkTo(["edit", box.name])}>forecast</a> how often one would have.</p></Empty>;
}

function Opened({ box }) {
  const depends = [box.kind, box.name];
  const loaded = useLoaded((signal) => readNewest(box, signal), depends);
  const consumers = useLoaded((signal) => get(`${pathOfBox(box)}/consumers`, { signal, headers: headersOf(box) }), depends);
  const { matches: arrived, isOpen } = useArriving(box, loaded.value?.end ?? null, loaded.again);
  return (
    <>
      <Card title={<>Matches of {box.kind === "channel" && "the channel "}<Text>{box.name}</Text></>} actions={loaded.value && <Badge kind={isOpen ? "good" : "warn"}>{isOpen ? "New matches appear here" : "Not connected"}</Badge>}>
        <Loaded from={loaded}>
          {({ matches, missed, epoch }) => {
            const known = new Set(arrived.map((own) => own.event));
            const shown = [...arrived, ...matches.filter((own) => !known.has(own.event))].slice(0, MOST);
            return (
              <>
                {missed && <p class="note warn">The events {number(missed.first)} to {number(missed.last)} were removed by retention before they were read.</p>}
                {shown.length === 0 ? <NothingYet box={box} /> : <Matches box={box} shown={shown} epoch={epoch} />}
                {shown.length >= MOST && <p class="hint">The newest {plural(MOST, "match", "matches")}.</p>}
              </>
            );
          }}
        </Loaded>
      </Card>
      {box.kind === "channel" && loaded.value && <Members box={box} />}
      {consumers.value?.consumers.length > 0 && (
        <Card title="Who has read how far">
          <Table label="Consumers" rows={consumers.value.consumers} keyOf={(own) => own.consumer} columns={[
            ["Consumer", (own) => <Text>{own.consumer}</Text>, "first"],
            ["Acknowledged up to event", (own) => number(own.event), "number"],
            ["When", (own) => moment(own.moment), "tight"],
          ]} />
        </Card>
      )}
      <ProblemNote problem={loaded.value && loaded.problem?.status ? loaded.problem : null} />
    </>
  );
}

// Articles are read, other events are compared: whoever looks chooses.
function Matches({ box, shown, epoch }) {
  const [chosen, setChosen] = useState(null);
  const isRead = chosen ?? shown.some((own) => typeof own.content?.title === "string");
  const highlights = useHighlights(box, shown, epoch, isRead);
  // An event of a channel is explained for the first of those that it matched.
  const explained = (own) => (box.kind === "channel" ? own.subscriptions[0] : box.name);
  const matched = ["Matched", (own) => own.subscriptions.map((id) => <a class="tag" key={id} href={linkTo(["edit", id])}><Text>{id}</Text></a>)];
  return (
    <>
      <div class="together" role="group" aria-label="How matches are shown">
        <button type="button" class="small" aria-pressed={isRead} onClick={() => setChosen(true)}>To read</button>
        <button type="button" class="small" aria-pressed={!isRead} onClick={() => setChosen(false)}>As a table</button>
      </div>
      {isRead ? (
        <ol class="stories" aria-label="Matches, the newest first">
          {shown.map((own) => <Story key={own.event} found={{ ...own, highlights: highlights.get(own.event) }} subscription={explained(own)} />)}
        </ol>
      ) : (
        <Table label="Matches, the newest first" rows={shown} keyOf={(own) => own.event} columns={[
          ["Event", (own) => <a href={linkTo(["playground"], { event: own.content === null ? "" : spell(own.content), subscription: explained(own) })}>{number(own.event)}</a>, "number"],
          ["Moment", (own) => moment(own.moment), "tight"],
          ...(box.kind === "channel" ? [matched] : []),
          ["Content", (own) => <Code class="clamp">{own.content === null ? "the text is not archived" : spell(own.content)}</Code>],
        ]} />
      )}
    </>
  );
}

// Matches that arrive after those that were read: the stream begins where they end, and goes on where
// it was cut off, so that none is left out.
function useArriving(box, start, readAgain) {
  const { phase } = useStore(session);
  const [state, setState] = useState({ matches: [], isOpen: false });
  const place = useRef({ start: null, cursor: null });
  useEffect(() => {
    const isNew = place.current.start !== start;
    if (isNew) place.current = { start, cursor: start };
    setState((own) => ({ matches: isNew ? [] : own.matches, isOpen: false }));
    if (phase !== "ready" || start === null) return undefined;
    const stop = new AbortController();
    let timer = null;
    const follow = async () => {
      let isOther = false;
      try {
        for await (const { id, kind, data } of messages(`${pathOfBox(box)}/stream${toQuery({ after: place.current.cursor })}`, stop.signal, headersOf(box))) {
          place.current.cursor = id ?? place.current.cursor;
          setState((own) => ({ isOpen: true, matches: kind === "match" ? [data, ...own.matches].slice(0, MOST) : own.matches }));
        }
      } catch (problem) {
        // The frame shows a lost connection; the list shows a refusal.
        isOther = ["history-lost", "bad-cursor"].includes(problem.code); // a backup was restored
      }
      if (stop.signal.aborted) return;
      setState((own) => ({ ...own, isOpen: false }));
      if (isOther) readAgain();
      else timer = setTimeout(follow, 2000);
    };
    follow();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [box.kind, box.name, start, phase]);
  return state;
}
