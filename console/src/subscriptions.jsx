// The list of subscriptions: search, filters, what each one does, and changes of many at once.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, get, may, pathOf, post, query, session, withTicket } from "./api.js";
import { distance, moment, number, plural, short, visible } from "./format.js";
import { linkTo, note, useAction, useDelayed, useNarrow, useTitle } from "./hooks.js";
import { Rows, usePages } from "./rows.jsx";
import { useStore } from "./store.js";
import { Badge, Code, Confirm, Empty, Loading, Page, ProblemNote, Sparkline, Text, toast } from "./ui.jsx";

const DAYS = 7; // of the sparklines

const STATES = [
  ["", "All"],
  ["valid", "Live"],
  ["expiring", "Expiring soon"],
  ["waiting", "Not begun"],
  ["expired", "Expired"],
  ["noisy", "Noisy: the most matches"],
  ["silent", "Silent: no match"],
];
const BROKEN = ["broken", "Broken: an operator fails"]; // who may not see faults of operators cannot choose it

export function stateOf(own, now = Date.now()) {
  if (own.valid_until && new Date(own.valid_until).getTime() <= now) return ["expired", "bad", "Expired"];
  if (own.valid_from && new Date(own.valid_from).getTime() > now) return ["waiting", "quiet", "Not begun"];
  if (own.isBroken) return ["broken", "bad", "Broken"];
  if (own.expires_soon && new Date(own.expires_soon).getTime() < now) return ["expiring", "warn", "Expiring"];
  return ["valid", "good", "Live"];
}

const PAGE = 50; // subscriptions that are asked one by one

// A page of those that a failing operator left undecided since the server started.
async function loadBroken({ text, tag, owner }, cursor, signal) {
  const { operators } = await get("/v1/stats", { signal });
  const ids = [...new Set(operators.faults.flatMap((fault) => fault.subscription_ids))].sort();
  const has = (own) => `${own.id}\n${own.expression}`.toLowerCase().includes(text.toLowerCase());
  let left = ids.filter((id) => cursor === null || id > cursor);
  let items = [];
  while (left.length && !items.length) {
    const page = left.slice(0, PAGE);
    const found = await Promise.all(page.map((id) => get(`/v1/subscriptions/${pathOf(id)}`, { signal }).catch((problem) => {
      if (problem.status === 404) return null; // it has ended
      throw problem;
    })));
    items = found.filter((own) => own && has(own) && (!tag || own.tags.includes(tag)) && (!owner || own.owner === owner)).map((own) => ({ ...own, isBroken: true }));
    left = left.slice(PAGE);
    cursor = left.length ? page.at(-1) : null;
  }
  return { items, cursor };
}

// A page of the list. Noisy and silent ones come from the archive, the others from the store.
async function loadPage(filters, cursor, signal) {
  const { text, tag, owner } = filters;
  if (filters.state === "noisy" || filters.state === "silent") {
    const order = filters.state === "noisy" ? "most" : "none";
    const found = await get(`/v1/activity${query({ order, days: DAYS, text, tag, owner, details: true, cursor, limit: 100 })}`, { signal });
    // Without details, it has ended in the meantime.
    return { items: found.subscriptions.map((own) => own.subscription).filter(Boolean), cursor: found.cursor };
  }
  if (filters.state === "broken") return loadBroken(filters, cursor, signal);
  const page = await get(`/v1/subscriptions${query({ text, tag, owner, state: filters.state, cursor, limit: 100 })}`, { signal });
  return { items: page.subscriptions, cursor: page.cursor };
}

// The matches of the rows in view, asked for some rows at a time.
function useActivity(items) {
  const [counts, setCounts] = useState(() => new Map());
  const asked = useRef(new Set());
  const { generation } = useStore(session);
  useEffect(() => {
    asked.current = new Set();
    setCounts(new Map());
  }, [generation]);
  return {
    counts,
    want(from, to) {
      const ids = items.slice(from, to).map((own) => own.id).filter((id) => !asked.current.has(id));
      if (!ids.length) return;
      ids.forEach((id) => asked.current.add(id));
      post("/v1/activity", { subscriptions: ids, days: DAYS, parts: 28 }).then(
        (found) => setCounts((own) => {
          const next = new Map(own);
          for (const [id, values] of Object.entries(found.counts)) next.set(id, values);
          return next;
        }),
        () => ids.forEach((id) => asked.current.delete(id)),
      );
    },
  };
}

export function Subscriptions({ route }) {
  useTitle("Subscriptions");
  const isNarrow = useNarrow();
  const [filters, setFilters] = useState({ text: "", tag: "", owner: "", state: "", ...route.query });
  const settled = useDelayed(filters, 250);
  useEffect(() => note(["subscriptions"], settled), [settled]);
  const pages = usePages((cursor, signal) => loadPage(settled, cursor, signal), [JSON.stringify(settled)]);
  const activity = useActivity(pages.items);
  const [chosen, setChosen] = useState(() => new Set());
  const change = (name) => (event) => setFilters({ ...filters, [name]: event.target.value });
  const toggle = (id) => setChosen((own) => {
    const next = new Set(own);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const isFiltered = Object.values(settled).some(Boolean);
  const height = isNarrow ? 104 : 48;
  return (
    <Page title="Subscriptions" fills actions={may("subscribe") && (
      <>
        <a class="button" href={linkTo(["import"])}>Import a file</a>
        <a class="button primary" href={linkTo(["new"])}>New subscription</a>
      </>
    )}>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <input type="search" aria-label="Search in ids and expressions" placeholder="Search ids and expressions" value={filters.text} onInput={change("text")} />
        <select aria-label="State" value={filters.state} onChange={change("state")}>
          {[...STATES, ...(may("admin") ? [BROKEN] : [])].map(([name, label]) => <option key={name} value={name}>{label}</option>)}
        </select>
        <input aria-label="Tag" placeholder="Tag" value={filters.tag} onInput={change("tag")} />
        {may("admin") && <input aria-label="Owner" placeholder="Owner" value={filters.owner} onInput={change("owner")} />}
      </form>
      <ProblemNote problem={pages.problem} />
      {chosen.size > 0 && <Bulk chosen={chosen} items={pages.items} onDone={(left) => { setChosen(new Set(left)); pages.again(); }} />}
      {pages.isFirst && pages.isLoading && <Loading />}
      {!pages.isLoading && !pages.problem && pages.items.length === 0 && (isFiltered
        ? <Empty title="No subscription is like that"><p>Change the search or <button type="button" class="link" onClick={() => setFilters({ text: "", tag: "", owner: "", state: "" })}>show all</button>.</p></Empty>
        : <Empty title="There are no subscriptions yet"><p>A subscription is an expression such as <code>age &gt;= 18 AND country = 'FR'</code>. It matches each event for which it is true.</p>{may("subscribe") && <p><a href={linkTo(["new"])}>Write the first one</a> or <a href={linkTo(["import"])}>import a file</a>.</p>}</Empty>)}
      {pages.items.length > 0 && (
        <>
          <Rows
            items={pages.items} height={height} label="Subscriptions" hasMore={pages.cursor !== null} onEnd={pages.more} onView={activity.want}
            head={<Head items={pages.items} chosen={chosen} setChosen={setChosen} />}
            render={(own) => <Row own={own} counts={activity.counts.get(own.id)} isChosen={chosen.has(own.id)} onChoose={() => toggle(own.id)} isNarrow={isNarrow} />}
          />
          <p class="count" role="status">{pages.cursor === null ? plural(pages.items.length, "subscription") : `The first ${number(pages.items.length)}; scroll for more`}</p>
        </>
      )}
    </Page>
  );
}

function Head({ items, chosen, setChosen }) {
  const isAll = items.length > 0 && items.every((own) => chosen.has(own.id));
  const all = () => setChosen(isAll ? new Set() : new Set(items.map((own) => own.id)));
  return (
    <div class="row head" role="row" aria-rowindex={1}>
      <span role="columnheader"><input type="checkbox" aria-label="Choose all that are loaded" checked={isAll} onChange={all} /></span>
      <span role="columnheader">Id</span>
      <span role="columnheader" class="wide">Expression</span>
      <span role="columnheader" class="wide">Tags</span>
      <span role="columnheader" class="wide">State</span>
      <span role="columnheader" class="number wide">Matches, {DAYS} days</span>
    </div>
  );
}

function Row({ own, counts, isChosen, onChoose, isNarrow }) {
  const [, kind, label] = stateOf(own);
  const total = counts?.reduce((sum, count) => sum + count, 0);
  const until = own.valid_until ? `${label === "Expired" ? "ended" : "ends"} ${distance(own.valid_until)}` : "without end";
  return (
    <>
      <span role="cell" class="choose"><input type="checkbox" aria-label={`Choose ${visible(own.id)}`} checked={isChosen} onChange={onChoose} /></span>
      <span role="cell" class="id" title={visible(own.id)}><a href={linkTo(["edit", own.id])}><Text>{own.id}</Text></a>{own.owner && <small><Text>{own.owner}</Text></small>}</span>
      <span role="cell" class="expression"><Code>{own.expression}</Code></span>
      <span role="cell" class="tags"><Tags tags={own.tags} /></span>
      <span role="cell" class="state"><Badge kind={kind}>{label}</Badge><small title={moment(own.valid_until)}>{until}</small></span>
      <span role="cell" class="matches">{counts ? <><Sparkline counts={counts} width={isNarrow ? 72 : 84} label={`${number(total)} matches in ${DAYS} days`} /><span class="number">{short(total)}</span></> : <span class="number">…</span>}</span>
    </>
  );
}

const MOST_LETTERS = 16; // of tags that are shown whole

// As many tags as can be read, at least one; the others are counted and named.
function Tags({ tags }) {
  let shown = Math.min(1, tags.length);
  for (let letters = tags[0]?.length ?? 0; shown < tags.length; shown += 1) {
    letters += tags[shown].length;
    if (letters > MOST_LETTERS) break;
  }
  const rest = tags.slice(shown);
  return (
    <>
      {tags.slice(0, shown).map((tag) => <span class="tag" key={tag} title={visible(tag)}><Text>{tag}</Text></span>)}
      {rest.length > 0 && <span class="tag more" title={visible(rest.join(", "))}>+{rest.length}</span>}
    </>
  );
}

// ── many at once ───────────────────────────────────────────────────────────────────────────

const AT_ONCE = 8; // requests

async function forEach(ids, run) {
  const waiting = [...ids];
  const problems = [];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await run(id);
      } catch (problem) {
        problems.push([id, problem]);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return problems;
}

function Bulk({ chosen, items, onDone }) {
  const [isAsking, setAsking] = useState(false);
  const [problems, setProblems] = useState([]);
  const [tag, setTag] = useState("");
  const byId = useMemo(() => new Map(items.map((own) => [own.id, own])), [items]);
  const run = (what, each) => async () => {
    const found = await forEach(chosen, each);
    setProblems(found);
    setAsking(false);
    const done = chosen.size - found.length;
    if (done) toast(`${plural(done, "subscription")} ${what}.`);
    onDone(found.map(([id]) => id)); // what could not be changed stays chosen
  };
  const renew = useAction(run("renewed for a day", (id) => post(`/v1/subscriptions/${pathOf(id)}/renew`, { lease: 86_400 }, { headers: withTicket(id) })));
  const remove = useAction(run("deleted", (id) => ask("DELETE", `/v1/subscriptions/${pathOf(id)}`, { headers: withTicket(id) })));
  const addTag = useAction(run("tagged", (id) => ask("PATCH", `/v1/subscriptions/${pathOf(id)}`, { body: { tags: [...new Set([...(byId.get(id)?.tags ?? []), tag.trim()])] }, headers: withTicket(id) })));
  const isBusy = renew.isBusy || remove.isBusy || addTag.isBusy;
  return (
    <section class="bulk" aria-label="Changes of the chosen subscriptions">
      <strong>{plural(chosen.size, "subscription")} chosen</strong>
      <button type="button" disabled={isBusy} onClick={renew.run}>Renew for a day</button>
      <form class="together" onSubmit={(event) => { event.preventDefault(); addTag.run(); }}>
        <input aria-label="Tag to add" placeholder="Tag to add" value={tag} onInput={(event) => setTag(event.target.value)} />
        <button type="submit" disabled={isBusy || !tag.trim()}>Add tag</button>
      </form>
      <button type="button" class="danger" disabled={isBusy} onClick={() => setAsking(true)}>Delete</button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => onDone([])}>Choose none</button>
      {problems.length > 0 && (
        <div class="note bad" role="alert">
          <p><strong>{plural(problems.length, "subscription")} could not be changed.</strong></p>
          <ul>{problems.slice(0, 5).map(([id, problem]) => <li key={id}><Text>{id}</Text>: <Text>{problem.message}</Text></li>)}</ul>
        </div>
      )}
      {isAsking && (
        <Confirm title={`Delete ${plural(chosen.size, "subscription")}?`} action="Delete" isBusy={remove.isBusy} onClose={() => setAsking(false)} onDo={remove.run}>
          <p>They end now. Their mailboxes stay readable until the archive forgets them.</p>
        </Confirm>
      )}
    </section>
  );
}
