// Which subscriptions does an event satisfy, and why does one not match?
import { useEffect, useState } from "preact/hooks";
import { ask, get, may, query, session } from "./api.js";
import { number, plural, pretty, readEvent, spell, visible } from "./format.js";
import { linkTo, note, useAction, useDelayed, useLoaded, useTitle } from "./hooks.js";
import { Explanation } from "./tree.jsx";
import { Card, Code, CopyButton, Empty, Field, Loaded, Page, ProblemNote, ScrollList, Text, Truth, sentence, toast } from "./ui.jsx";

const SAMPLE = '{\n  "age": 20,\n  "country": "FR"\n}';
const MOST = 200; // matches that are listed

export function Playground({ route }) {
  useTitle("Playground");
  const [event, setEvent] = useState(route.query.event ?? SAMPLE);
  const [chosen, setChosen] = useState(route.query.subscription ?? null);
  const [draft, setDraft] = useState(route.query.draft ?? null);
  // Without an event in the address, it begins with the newest; what was typed in the meantime stays.
  useEffect(() => {
    const { number: wanted, event: given } = route.query;
    if (given || !session.get().who?.reads_archive) return;
    const fetched = wanted ? fetchEvent(wanted) : findNewest().then((last) => (last ? fetchEvent(last) : SAMPLE));
    fetched.then((text) => setEvent((own) => (own === SAMPLE ? text : own)), () => {});
  }, []);
  const settled = useDelayed(event, 150);
  const shown = { event: settled, subscription: chosen, draft };
  useEffect(() => note(["playground"], shown), [settled, chosen, draft]);
  const wrong = findError(settled);
  return (
    <Page title="Playground" actions={<CopyButton text={() => location.href}>Copy link to this view</CopyButton>}>
      <div class="columns">
        <EventCard event={event} setEvent={setEvent} wrong={wrong} />
        <Matches event={wrong ? null : settled} chosen={chosen} onChoose={(id) => { setDraft(null); setChosen(id); }} />
      </div>
      <Why event={wrong ? null : settled} chosen={chosen} setChosen={setChosen} draft={draft} setDraft={setDraft} />
    </Page>
  );
}

function findError(text) {
  try {
    readEvent(text);
    return null;
  } catch (error) {
    return error.message;
  }
}

const findNewest = async () => (await get("/readyz")).last_event;

async function fetchEvent(wanted) {
  const found = await get(`/v1/events/${encodeURIComponent(wanted)}`);
  return pretty(found.content);
}

function EventCard({ event, setEvent, wrong }) {
  const [wanted, setWanted] = useState("");
  const { who } = session.get();
  const pick = useAction(async (which) => {
    let found = which;
    if (which === "newest") {
      found = await findNewest();
      if (!found) throw new Error("no event was published yet");
      setWanted(String(found));
    }
    setEvent(await fetchEvent(found));
  });
  const publish = useAction(async () => {
    const done = await ask("POST", "/v1/events", { text: event });
    if (done.rejected.length) throw new Error(done.rejected[0].message);
    const matched = done.matches === null ? "the stream matches it later" : plural(done.matches, "match", "matches");
    toast(`Event ${number(done.first_event)} is published: ${matched}.`);
    done.notes.forEach((text) => toast(sentence(text), "warn"));
  });
  const format = () => setEvent(pretty(readEvent(event)));
  return (
    <Card title="Event">
      <Field label="The event, as JSON" class="grow">
        {(id) => <textarea id={id} class="code" rows={10} spellcheck={false} value={event} onInput={(own) => setEvent(own.target.value)} aria-invalid={wrong ? "true" : undefined} />}
      </Field>
      {wrong && <p class="note bad" role="alert">This is not an event: <Text>{wrong}</Text></p>}
      <div class="actions start">
        <button type="button" class="small" disabled={Boolean(wrong)} onClick={format}>Format</button>
        {may("publish") && <button type="button" class="small" disabled={Boolean(wrong) || publish.isBusy} onClick={() => publish.run()}>Publish this event</button>}
      </div>
      {who?.reads_archive && (
        <form class="together" onSubmit={(own) => { own.preventDefault(); pick.run(wanted); }}>
          <button type="button" class="small" onClick={() => pick.run("newest")}>Take the newest</button>
          <input class="number" inputmode="numeric" aria-label="Number of a published event" placeholder="Number" value={wanted} onInput={(own) => setWanted(own.target.value.replace(/\D/g, ""))} />
          <button type="submit" class="small" disabled={!wanted}>Take this one</button>
        </form>
      )}
      {who?.reads_archive && <Recent onTake={(content) => setEvent(pretty(content))} />}
      <ProblemNote problem={pick.problem ?? publish.problem} />
    </Card>
  );
}

const N_RECENT = 10;

// The newest events, to pick one from.
function Recent({ onTake }) {
  const [isOpen, setOpen] = useState(false);
  const found = useLoaded(async (signal) => {
    if (!isOpen) return undefined;
    const { last_event: last } = await get("/readyz", { signal });
    const numbers = Array.from({ length: Math.min(N_RECENT, last) }, (_, at) => last - at);
    const events = await Promise.all(numbers.map((own) => get(`/v1/events/${own}`, { signal }).catch((problem) => {
      if (problem.status === 404 || problem.status === 410) return null; // its text is not archived
      throw problem;
    })));
    return events.filter(Boolean);
  }, [isOpen]);
  return (
    <details onToggle={(event) => setOpen(event.target.open)}>
      <summary>Recent events</summary>
      {isOpen && (
        <Loaded from={found}>
          {(events) => (!events?.length ? <p class="hint">There is none whose text is archived.</p> : (
            <ScrollList label="Recent events">
              {events.map((own) => <li key={own.event}><button type="button" class="choice" aria-label={`Take event ${number(own.event)}`} onClick={() => onTake(own.content)}><strong>{number(own.event)}</strong> <Code class="one-line">{spell(own.content)}</Code></button></li>)}
            </ScrollList>
          ))}
        </Loaded>
      )}
    </details>
  );
}

function Matches({ event, chosen, onChoose }) {
  const found = useLoaded(async (signal) => (event === null ? undefined : ask("POST", "/v1/match", { text: `{"event": ${event}}`, signal })), [event]);
  const [text, setText] = useState("");
  const wanted = useDelayed(text, 250);
  const others = useLoaded(async (signal) => (wanted ? get(`/v1/subscriptions${query({ text: wanted, limit: 20 })}`, { signal }) : { subscriptions: [] }), [wanted]);
  const ids = found.value?.ids ?? [];
  return (
    <Card title={found.value ? `${plural(ids.length, "match", "matches")}` : "Matches"} class="matches-card">
      <ProblemNote problem={found.problem} />
      {found.value?.ignored_values.map((own) => <p class="note warn" key={own.attribute}><Text>{own.message}</Text></p>)}
      {found.value && ids.length === 0 && <p class="hint">No subscription matches this event. Look for one below to see why it does not.</p>}
      <ScrollList label="Matching subscriptions">
        {ids.slice(0, MOST).map((id) => <Choice key={id} id={id} chosen={chosen} onChoose={onChoose} truth="true" />)}
      </ScrollList>
      {ids.length > MOST && <p class="hint">The first {MOST} of {number(ids.length)} are listed. Look for another one below.</p>}
      <Field label="Any other subscription">
        {(id) => <input id={id} type="search" placeholder="Search ids and expressions" value={text} onInput={(own) => setText(own.target.value)} />}
      </Field>
      <ScrollList label="Found subscriptions">
        {(others.value?.subscriptions ?? []).map((own) => <Choice key={own.id} id={own.id} chosen={chosen} onChoose={onChoose} truth={ids.includes(own.id) ? "true" : null} />)}
      </ScrollList>
      {wanted && others.value?.subscriptions.length === 0 && <p class="hint">No subscription has this in its id or expression.</p>}
    </Card>
  );
}

function Choice({ id, chosen, onChoose, truth }) {
  return (
    <li>
      <button type="button" class="choice" aria-pressed={id === chosen} aria-label={`Explain ${visible(id)}`} onClick={() => onChoose(id)}>
        {truth && <Truth value={truth} short />}<Text>{id}</Text>
      </button>
    </li>
  );
}

function Why({ event, chosen, setChosen, draft, setDraft }) {
  const isDraft = draft !== null;
  const wanted = useDelayed(draft, 250);
  const found = useLoaded(async (signal) => {
    if (event === null || (isDraft ? !wanted?.trim() : chosen === null)) return undefined;
    const what = isDraft ? { expression: wanted } : { subscription_id: chosen };
    return ask("POST", "/v1/explain", { text: `${JSON.stringify(what).slice(0, -1)}, "event": ${event}}`, signal });
  }, [event, chosen, wanted, isDraft]);
  const title = isDraft ? "Why, for a draft" : chosen === null ? "Why" : <>Why <Text>{chosen}</Text></>;
  return (
    <Card title={title} actions={(
      <div class="actions">
        {!isDraft && <button type="button" class="small" onClick={() => { setDraft(""); setChosen(null); }}>Try an expression</button>}
        {!isDraft && chosen !== null && <a class="button small" href={linkTo(["edit", chosen])}>Open</a>}
      </div>
    )}>
      {isDraft && (
        <Field label="Expression">
          {(id) => <textarea id={id} class="code" rows={2} spellcheck={false} value={draft} onInput={(own) => setDraft(own.target.value)} />}
        </Field>
      )}
      {event === null && <p class="hint">Correct the event first.</p>}
      {event !== null && chosen === null && !draft && <Empty title="Nothing is chosen"><p>Choose a subscription, matching or not, or try an expression. It is shown as a tree with the truth of each part.</p></Empty>}
      {event !== null && (chosen !== null || draft) && <Loaded from={found} what="Explaining">{(value) => value && <Explanation found={value} />}</Loaded>}
    </Card>
  );
}
