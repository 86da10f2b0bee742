// Search what was published: what would an expression have matched?
import { useEffect, useState } from "preact/hooks";
import { get, may, post, session } from "./api.js";
import { number, plural } from "./format.js";
import { go, linkTo, note, useAction, useLoaded, useTitle } from "./hooks.js";
import { Story } from "./reading.jsx";
import { useStore } from "./store.js";
import { Card, Code, Empty, Field, Page, ProblemNote, Text } from "./ui.jsx";

const PAGE = 20;
const START = { kind: "query", text: "", attributes: "title, body", languages: "", since: "", until: "", order: "newest" };
const HISTORIES = [["", "from now on"], ["1d", "and the last day"], ["7d", "and the last 7 days"], ["30d", "and the last 30 days"], ["0", "and all that is archived"]];

const readNames = (text) => text.split(",").map((own) => own.trim()).filter(Boolean);
const readMoment = (text) => (text ? new Date(text).toISOString() : null);

// The question as the server reads it.
function ask(asked, cursor) {
  const what = asked.kind === "query" ? { query: asked.text, attributes: readNames(asked.attributes), languages: readNames(asked.languages) } : { expression: asked.text };
  return post("/v1/search", { ...what, since: readMoment(asked.since), until: readMoment(asked.until), order: asked.order, limit: PAGE, cursor });
}

export function Search({ route }) {
  useTitle("Search");
  const { generation } = useStore(session);
  const [asked, setAsked] = useState({ ...START, ...route.query });
  const [found, setFound] = useState(null);
  const words = useLoaded((signal) => get("/v1/vocabulary", { signal }), []);
  const first = useAction(async (question) => {
    const page = await ask(question, null);
    setFound({ ...page, asked: question });
    note(["search"], Object.fromEntries(Object.entries(question).filter(([name, value]) => value !== START[name])));
  });
  const more = useAction(async () => {
    const page = await ask(found.asked, found.cursor);
    setFound((own) => ({ ...page, notes: own.notes, asked: own.asked, hits: [...own.hits, ...page.hits] }));
  });
  useEffect(() => {
    if (route.query.text) first.run({ ...START, ...route.query });
  }, [generation]);
  const change = (name) => (event) => setAsked({ ...asked, [name]: event.target.value });
  const submit = (event) => {
    event.preventDefault();
    setFound(null);
    first.run(asked);
  };
  const isQuery = asked.kind === "query";
  if (!session.get().who?.reads_archive) {
    return <Page title="Search"><Empty title="Searching is not open to your key"><p>A search reads all events. It needs the role admin, or the setting archive.readable.</p></Empty></Page>;
  }
  return (
    <Page title="Search">
      <Card title="What was published">
        <form class="stack" role="search" onSubmit={submit}>
          <div class="search-line">
            <Field label="Search by">{(id) => <select id={id} value={asked.kind} onChange={change("kind")}><option value="query">words</option><option value="expression">an expression</option></select>}</Field>
            <Field label={isQuery ? "Words" : "Expression"} class="grow">{(id) => <input id={id} class={isQuery ? "" : "code"} type="search" spellcheck={false} placeholder={isQuery ? "flood OR storm -sport \"high water\"" : "contains(title, 'flood') AND lang = 'en'"} value={asked.text} onInput={change("text")} required />}</Field>
            <button type="submit" class="primary" disabled={first.isBusy || !asked.text.trim()}>{first.isBusy ? "Searching…" : "Search"}</button>
          </div>
          <div class="form-row">
            {isQuery && (
              <Field label="In the attributes">
                {(id) => (
                  <>
                    <input id={id} list={`${id}-known`} value={asked.attributes} onInput={change("attributes")} required />
                    <datalist id={`${id}-known`}>{(words.value?.attributes ?? []).slice(0, 100).map((own) => <option key={own.name} value={own.name} />)}</datalist>
                  </>
                )}
              </Field>
            )}
            {isQuery && <Field label="With the stems of">{(id) => <input id={id} placeholder="en, de" spellcheck={false} value={asked.languages} onInput={change("languages")} />}</Field>}
            <Field label="Since">{(id) => <input id={id} type="datetime-local" value={asked.since} onInput={change("since")} />}</Field>
            <Field label="Until">{(id) => <input id={id} type="datetime-local" value={asked.until} onInput={change("until")} />}</Field>
            <Field label="Order">{(id) => <select id={id} value={asked.order} onChange={change("order")}><option value="newest">the newest first</option><option value="relevance">the most relevant first</option></select>}</Field>
          </div>
          {isQuery && <p class="hint">Words of which all are wanted; <code>OR</code>, <code>-word</code>, <code>"a phrase"</code>, <code>child*</code>, <code>title:fed</code>, <code>"back pain"~3</code>.</p>}
        </form>
        <ProblemNote problem={first.problem} />
      </Card>
      {found && <Found found={found} more={more} />}
      {!found && !first.isBusy && !first.problem && <Empty title="Nothing is searched yet"><p>A search finds the archived events that a subscription with the same expression would have matched: exactly those. It can be saved as one.</p></Empty>}
    </Page>
  );
}

function Found({ found, more }) {
  const [history, setHistory] = useState("7d");
  const save = () => go(["new"], { expression: found.expression, history });
  return (
    <>
      <Card title="The expression" actions={may("subscribe") && (
        <div class="together">
          <select aria-label="What the subscription begins with" value={history} onChange={(event) => setHistory(event.target.value)}>
            {HISTORIES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
          </select>
          <button type="button" onClick={save}>Save this search</button>
        </div>
      )}>
        <p><Code lines>{found.expression}</Code></p>
        {found.notes.map((text) => <p class="note warn" key={text}><Text>{text}</Text></p>)}
      </Card>
      <Card title={found.cursor ? `The first ${plural(found.hits.length, "event")}` : plural(found.hits.length, "event")}>
        {found.hits.length === 0 && found.is_complete && <Empty title="Nothing was found"><p>Use other or fewer words, or another span of time. <a href={linkTo(["playground"], { draft: found.expression })}>The playground</a> shows why an event does not match.</p></Empty>}
        <ol class="stories" aria-label="Found events">{found.hits.map((own) => <Story key={own.event} found={own} />)}</ol>
        {!found.is_complete && <p class="note warn">A limit of the server ended the search after {number(found.events)} events.{found.cursor ? " It goes on from there." : " A ranking cannot go on: narrow the search."}</p>}
        <ProblemNote problem={more.problem} />
        {found.cursor && <div class="actions start"><button type="button" disabled={more.isBusy} onClick={() => more.run()}>{more.isBusy ? "Searching…" : "Show more"}</button></div>}
      </Card>
    </>
  );
}
