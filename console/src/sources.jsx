// Sources: feeds of others that the server reads. What it offers to others are result feeds.
import { useRef, useState } from "preact/hooks";
import { ask, get, post, query } from "./api.js";
import { distance, moment, number, plural, visible } from "./format.js";
import { useAction, useLoaded, useNarrow, useTitle } from "./hooks.js";
import { Rows, usePages } from "./rows.jsx";
import { Badge, Card, Confirm, Empty, Field, Loading, Page, ProblemNote, Text, toast } from "./ui.jsx";

const STATES = [["", "All"], ["failing", "Failing"], ["active", "Active"], ["paused", "Paused"], ["gone", "Gone"], ["moved", "Moved"]];
const readTags = (text) => [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];

function stateOf(own) {
  if (own.state !== "active") return own.state === "paused" ? ["warn", "Paused"] : ["bad", own.state === "gone" ? "Gone" : "Moved"];
  if (own.n_failed) return ["bad", "Failing"];
  return own.last_fetch ? ["good", "Active"] : ["", "Not read yet"];
}

export function Sources({ route }) {
  useTitle("Sources");
  const isNarrow = useNarrow();
  const [state, setState] = useState(route.query.state ?? "");
  const filters = state === "failing" ? { failing: true } : { state };
  const pages = usePages(async (cursor, signal) => {
    const page = await get(`/v1/sources${query({ ...filters, cursor, limit: 100 })}`, { signal });
    return { items: page.sources, cursor: page.cursor };
  }, [state]);
  const [asked, setAsked] = useState(null);
  const act = useAction(async (own, what) => {
    if (what === "fetch") {
      const found = await ask("POST", `/v1/sources/${own.number}/fetch`);
      toast(found.last_error ? `It could not be read: ${found.last_error}.` : `It is read; it has ${plural(found.n_items, "item")} so far.`, found.last_error ? "bad" : "good");
    } else {
      await ask("PATCH", `/v1/sources/${own.number}`, { body: { state: what } });
    }
    pages.again();
  });
  const remove = useAction(async () => {
    await ask("DELETE", `/v1/sources/${asked.number}`);
    toast("The source is removed.");
    setAsked(null);
    pages.again();
  });
  return (
    <Page title="Sources" actions={<a class="button" href="/v1/sources/opml" download="sources.opml">Export as OPML</a>}>
      <p class="hint">Feeds of others that this server reads: each new item becomes an event. The feeds that it offers are <a href="#/deliveries/feeds">result feeds</a>.</p>
      <NewSource again={pages.again} />
      <div class="filters two">
        <select aria-label="State" value={state} onChange={(event) => setState(event.target.value)}>{STATES.map(([name, label]) => <option key={name} value={name}>{label}</option>)}</select>
        <button type="button" onClick={pages.again}>Look again</button>
      </div>
      <ProblemNote problem={pages.problem ?? act.problem} />
      {pages.isFirst && pages.isLoading && <Loading />}
      {!pages.isLoading && !pages.problem && pages.items.length === 0 && (state
        ? <Empty title="No source is in this state"><p><button type="button" class="link" onClick={() => setState("")}>Show all.</button></p></Empty>
        : <Empty title="There are no sources yet"><p>Add the address of a feed, or of a web page that names one. What is in it can then be searched and subscribed to.</p></Empty>)}
      {pages.items.length > 0 && (
        <>
          <Rows
            items={pages.items} height={isNarrow ? 168 : 88} label="Sources" hasMore={pages.cursor !== null} onEnd={pages.more} class="sources"
            head={<div class="row head" role="row" aria-rowindex={1}>{["Source", "State", "Items", "Fetched", "Actions"].map((name) => <span role="columnheader" key={name} class={name === "Source" ? "" : "wide"}>{name}</span>)}</div>}
            render={(own) => <Row own={own} isBusy={act.isBusy} onAct={(what) => act.run(own, what)} onRemove={() => setAsked(own)} />}
          />
          <p class="count" role="status">{pages.cursor === null ? plural(pages.items.length, "source") : `The first ${number(pages.items.length)}; scroll for more`}</p>
        </>
      )}
      {asked && <Confirm title="Remove this source?" action="Remove" onClose={() => setAsked(null)} onDo={remove.run} problem={remove.problem} isBusy={remove.isBusy}><p><Text>{asked.url}</Text> is read no more. What was published stays in the archive. If it is added again, all items that it shows are new.</p></Confirm>}
    </Page>
  );
}

function Row({ own, isBusy, onAct, onRemove }) {
  const [kind, label] = stateOf(own);
  const name = visible(own.title || own.url);
  const mended = own.notes.map((note) => `${number(note.count)} × ${note.meaning}, such as ${note.example}`).join("; ");
  return (
    <>
      <span role="cell" class="source">
        <strong><Text>{own.title || own.url}</Text></strong>
        <small title={visible(own.url)}><Text>{own.url}</Text></small>
        {own.last_error || own.reason
          ? <small class="wrong" title={visible(own.last_error ?? own.reason)}><Text>{own.last_error ?? own.reason}</Text></small>
          : mended && <small title={visible(mended)}><Text>{mended}</Text></small>}
      </span>
      <span role="cell" class="state"><Badge kind={kind}>{label}</Badge>{own.n_failed > 0 && <small>{plural(own.n_failed, "failure")}</small>}</span>
      <span role="cell" class="items">{plural(own.n_items, "item")}</span>
      <span role="cell" class="fetched"><small title={moment(own.last_fetch)}>{own.last_fetch ? distance(own.last_fetch) : "not yet"}</small><small title={moment(own.next_fetch)}>{own.state === "active" ? `next ${nextOf(own)}` : "no more"}</small></span>
      <span role="cell" class="actions start">
        <button type="button" class="small" disabled={isBusy} aria-label={`Fetch ${name} now`} onClick={() => onAct("fetch")}>Fetch now</button>
        <button type="button" class="small" disabled={isBusy} aria-label={`${own.state === "active" ? "Pause" : "Resume"} ${name}`} onClick={() => onAct(own.state === "active" ? "paused" : "active")}>{own.state === "active" ? "Pause" : "Resume"}</button>
        <button type="button" class="small danger" aria-label={`Remove ${name}`} onClick={onRemove}>Remove</button>
      </span>
    </>
  );
}

const nextOf = (own) => (new Date(own.next_fetch).getTime() <= Date.now() ? "now" : distance(own.next_fetch));

function NewSource({ again }) {
  const [url, setUrl] = useState("");
  const [title, setTitle] = useState("");
  const [tags, setTags] = useState("");
  const [imported, setImported] = useState(null);
  const input = useRef(null);
  const add = useAction(async () => {
    setImported(null);
    const made = await post("/v1/sources", { url: url.trim(), title: title.trim(), tags: readTags(tags) });
    toast(made.last_error ? `It is added, but could not be read yet: ${made.last_error}.` : `It is added, with ${plural(made.n_items, "item")}.`, made.last_error ? "warn" : "good");
    setUrl("");
    setTitle("");
    again();
  });
  const load = useAction(async (file) => {
    setImported({ ...await ask("POST", "/v1/sources/opml", { text: file, headers: { "content-type": "text/x-opml" } }), name: file.name });
    again();
  });
  const submit = (event) => {
    event.preventDefault();
    add.run();
  };
  return (
    <Card title="Add a source" actions={<button type="button" class="small" disabled={load.isBusy} onClick={() => input.current.click()}>{load.isBusy ? "Importing…" : "Import OPML"}</button>}>
      <input ref={input} type="file" class="hidden" tabIndex={-1} aria-label="OPML file" accept=".opml,.xml" onChange={(event) => { const [file] = event.target.files; event.target.value = ""; if (file) load.run(file); }} />
      <form class="form-row" onSubmit={submit}>
        <Field label="Address">{(id) => <input id={id} type="url" placeholder="https://" value={url} onInput={(event) => setUrl(event.target.value)} required />}</Field>
        <Field label="Title" >{(id) => <input id={id} placeholder="that of the feed" value={title} onInput={(event) => setTitle(event.target.value)} />}</Field>
        <Field label="Tags">{(id) => <input id={id} placeholder="with commas between them" value={tags} onInput={(event) => setTags(event.target.value)} />}</Field>
        <button type="submit" class="primary" disabled={add.isBusy || !url.trim()}>{add.isBusy ? "Reading…" : "Add"}</button>
      </form>
      <ProblemNote problem={add.problem ?? load.problem} />
      {imported && (
        <div class={`note ${imported.refused.length ? "warn" : "good"}`} role="status">
          <p><Text>{imported.name}</Text>: {plural(imported.added.length, "source")} added, {number(imported.known.length)} known before, {number(imported.refused.length)} refused.</p>
          {imported.refused.length > 0 && <ul>{imported.refused.slice(0, 10).map((text) => <li key={text}><Text>{text}</Text></li>)}</ul>}
        </div>
      )}
    </Card>
  );
}
