// Write a subscription: checked as one types, with a forecast before it is saved.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, get, keepTicket, may, pathOf, post, query, session, ticketOf, withTicket } from "./api.js";
import { distance, moment, visible } from "./format.js";
import { go, linkTo, useAction, useDelayed, useLoaded, useTitle } from "./hooks.js";
import { Forecast } from "./forecast.jsx";
import { stateOf } from "./subscriptions.jsx";
import { Badge, Card, Code, Confirm, Fact, Facts, Field, Loaded, Loading, OnceShown, Page, ProblemNote, Text, sentence, toast } from "./ui.jsx";

const TEMPLATES = [
  ["A value and a range", "country = 'FR' AND age BETWEEN 18 AND 65"],
  ["One of a list", "service IN ('api', 'web') AND severity >= 4"],
  ["Part of a text", "title LIKE '%flood%' AND NOT source = 'test'"],
  ["Words in a text", "matches_any(title, 'flood storm hurricane')"],
  ["At least two of several", "at_least(2, price < 100, rating >= 4.5, in_stock = TRUE)"],
  ["An address in a network", "in_network(client_ip, '10.0.0.0/8') AND status >= 500"],
];
const LEASES = [[86_400, "1 day"], [604_800, "1 week"], [2_592_000, "30 days"], [31_536_000, "1 year"]];
const NO_WORDS = { attributes: [], functions: {}, keywords: [] };

export function NewSubscription({ route }) {
  useTitle("New subscription");
  return <Editor known={null} start={route.query.expression ?? ""} given={route.query} />;
}

export function EditSubscription({ route }) {
  const id = route.parts[1] ?? "";
  useTitle(visible(id));
  const found = useLoaded((signal) => get(`/v1/subscriptions/${pathOf(id)}`, { signal, headers: withTicket(id) }), [id]);
  if (found.value === null) {
    return (
      <Page title={<Text>{id}</Text>}>
        {found.problem?.code === "unknown-subscription" ? <Ended id={id} problem={found.problem} /> : <Loaded from={found}>{() => null}</Loaded>}
        {found.problem && <p><a href={linkTo(["subscriptions"])}>Go to the subscriptions</a></p>}
      </Page>
    );
  }
  return <Editor key={found.value.id} known={found.value} start={found.value.expression} again={found.again} />;
}

// One that has expired is listed, but can only be made again; of others nothing is known.
function Ended({ id, problem }) {
  const found = useLoaded(async (signal) => {
    const { subscriptions } = await get(`/v1/subscriptions${query({ text: id, state: "expired", limit: 1000 })}`, { signal });
    return subscriptions.find((own) => own.id === id);
  }, [id]);
  const own = found.value;
  if (own === null && !found.problem) return <Loading />;
  if (!own) return <ProblemNote problem={problem} />;
  return (
    <Card title="It has expired">
      <p>It was valid until {moment(own.valid_until)}, {distance(own.valid_until)}. An expired subscription matches nothing and cannot be renewed.</p>
      <p><Code lines>{own.expression}</Code></p>
      <div class="actions start"><a class="button primary" href={linkTo(["new"], { expression: own.expression, id: own.id, tags: own.tags.join(", "), owner: own.owner })}>Make it again</a></div>
    </Card>
  );
}

function Editor({ known, start, given: asked, again }) {
  const [expression, setExpression] = useState(start);
  // What replaces the text, such as a template. What is typed must not come back to the editor: it
  // would undo what was typed since.
  const [given, setGiven] = useState({ text: start, count: 0 });
  const replace = (text) => {
    setExpression(text);
    setGiven((own) => ({ text, count: own.count + 1 }));
  };
  const settled = useDelayed(expression, 200);
  const words = useLoaded((signal) => get("/v1/vocabulary", { signal }), []);
  const checked = useLoaded(async (signal) => (settled.trim() ? { text: settled, ...await post("/v1/check", { expression: settled, similar: false }, { signal }) } : undefined), [settled]);
  const similar = useSimilar(checked.value);
  const isChanged = known !== null && expression !== known.expression;
  const isValid = checked.value?.text === expression && checked.value.is_valid;
  return (
    <Page title={known ? <Text>{known.id}</Text> : "New subscription"} actions={<a class="button" href={linkTo(["subscriptions"])}>All subscriptions</a>}>
      <div class="columns wide-left">
        <div class="stack">
          <Card title="Expression">
            {known === null && (
              <Field label="Start from a template">
                {(id) => (
                  <select id={id} value="" onChange={(event) => event.target.value && replace(event.target.value)}>
                    <option value="">Choose…</option>
                    {TEMPLATES.map(([name, text]) => <option key={name} value={text}>{name}: {text}</option>)}
                  </select>
                )}
              </Field>
            )}
            <ExpressionField text={expression} given={given} onChange={setExpression} words={words.value ?? NO_WORDS} checked={checked} />
            <Checked checked={checked} similar={similar} current={expression} own={known?.id} />
            {isChanged && (
              <div class="note">
                <p class="label">In force now</p>
                <p><Code lines>{known.expression}</Code></p>
                <button type="button" class="small" onClick={() => replace(known.expression)}>Undo the change</button>
              </div>
            )}
          </Card>
          <Forecast expression={expression} isValid={isValid} known={known} isChanged={isChanged} />
        </div>
        <div class="stack">
          {known === null ? <Make expression={expression} isValid={isValid} start={asked} /> : <Manage known={known} expression={expression} isChanged={isChanged} isValid={isValid} again={again} />}
        </div>
      </div>
    </Page>
  );
}

// ── the text ───────────────────────────────────────────────────────────────────────────────

function ExpressionField({ text, given, onChange, words, checked }) {
  const place = useRef(null);
  const editor = useRef(null);
  const latest = useRef({ onChange, words, text });
  latest.current = { onChange, words, text };
  const [isThere, setThere] = useState(false);
  const id = useId();
  useEffect(() => {
    let isGone = false;
    import("./codemirror.js").then(({ createEditor }) => {
      if (isGone) return;
      editor.current = createEditor(place.current, { text: latest.current.text, label: "Expression", describedBy: id, words: latest.current.words, onChange: (next) => latest.current.onChange(next) });
      setThere(true);
    });
    return () => {
      isGone = true;
      editor.current?.destroy();
    };
  }, []);
  useEffect(() => {
    if (given.count) editor.current?.setText(given.text);
  }, [given, isThere]);
  useLayoutEffect(() => editor.current?.setWords(words), [words, isThere]);
  useEffect(() => {
    if (checked.value) editor.current?.setProblems(checked.value.text, checked.value.problems);
  }, [checked.value, isThere]);
  return <div ref={place} class="expression-field" data-completes={isThere && words !== NO_WORDS} />;
}

// Comparing with other subscriptions may take a while: it begins when the expression is valid and
// nobody types.
function useSimilar(checked) {
  const wanted = checked?.is_valid ? checked.text : null;
  const found = useLoaded(async (signal) => {
    if (wanted === null) return undefined;
    return { text: wanted, similar: (await post("/v1/check", { expression: wanted, similar: true }, { signal })).similar };
  }, [wanted], { delay: 600 });
  return found.value?.text === wanted ? found.value?.similar : null;
}

function Checked({ checked, similar, current, own }) {
  const found = checked.value;
  if (checked.problem) return <ProblemNote problem={checked.problem} />;
  if (!current.trim()) return <p class="hint">Write a condition on the attributes of events. Ctrl-Space lists attributes, functions and keywords.</p>;
  if (!found) return <p class="hint" role="status">Checking…</p>;
  return (
    <div class="stack" role="status" aria-label="What the server says of the expression">
      {found.problems.map((problem, at) => (
        <div class={`note ${problem.severity === "error" ? "bad" : "warn"}`} key={at}>
          <p><strong>{problem.severity === "error" ? "Error" : "Hint"}{problem.column ? `, line ${problem.line}, column ${problem.column}` : ""}:</strong> <Text>{problem.message}</Text></p>
          {problem.hint && <p><Text>{sentence(problem.hint)}</Text></p>}
        </div>
      ))}
      {found.is_valid && (
        <>
          <p class="attributes"><Badge kind="good">Valid</Badge>{found.attributes.map((each) => <span class="tag" key={each.name}><Text>{each.name}</Text>: <Text>{each.type}</Text>{each.is_known ? "" : " (new)"}</span>)}</p>
          <details>
            <summary>Canonical form</summary>
            <p><Code lines>{found.canonical}</Code></p>
          </details>
          {similar && <Similar similar={similar} own={own} />}
        </>
      )}
    </div>
  );
}

function Similar({ similar, own }) {
  const lists = [["Same condition", similar.equal], ["Wider: match all that this matches", similar.wider], ["Narrower", similar.narrower]]
    .map(([name, ids]) => [name, ids.filter((id) => id !== own)]).filter(([, ids]) => ids.length);
  if (!lists.length) return null;
  return (
    <details>
      <summary>Similar subscriptions: {lists.reduce((sum, [, ids]) => sum + ids.length, 0)}{similar.is_complete ? "" : " or more"}</summary>
      {lists.map(([name, ids]) => (
        <p key={name}>{name}: {ids.slice(0, 10).map((id, at) => <span key={id}>{at > 0 && ", "}<a href={linkTo(["edit", id])}><Text>{id}</Text></a></span>)}{ids.length > 10 && ` and ${ids.length - 10} more`}</p>
      ))}
    </details>
  );
}

// ── making ─────────────────────────────────────────────────────────────────────────────────

const readTags = (text) => [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];

const HISTORIES = [["", "from now on"], ["1d", "and those of the last day"], ["7d", "and those of the last 7 days"], ["30d", "and those of the last 30 days"], ["0", "and all that are archived"]];

function Make({ expression, isValid, start }) {
  const [id, setId] = useState(start.id ?? "");
  const [tags, setTags] = useState(start.tags ?? "");
  const [owner, setOwner] = useState(may("admin") ? start.owner ?? "" : "");
  const [lease, setLease] = useState(604_800);
  const [history, setHistory] = useState(HISTORIES.some(([value]) => value === start.history) ? start.history : "");
  const [made, setMade] = useState(null);
  const save = useAction(async () => {
    const body = { expression, tags: readTags(tags), lease: Number(lease) };
    if (id.trim()) body.id = id.trim();
    if (history) body.history = history === "0" ? 0 : history;
    if (owner.trim()) body.owner = owner.trim();
    const found = await post("/v1/subscriptions", body);
    keepTicket(found.id, found.ticket);
    setMade(found);
  });
  const submit = (event) => {
    event.preventDefault();
    save.run();
  };
  return (
    <Card title="Subscribe">
      <form class="stack" onSubmit={submit}>
        <Field label="Id" hint="Without one, the server chooses.">{(own) => <input id={own} value={id} onInput={(event) => setId(event.target.value)} autocomplete="off" />}</Field>
        <Field label="Tags" hint="With commas between them.">{(own) => <input id={own} value={tags} onInput={(event) => setTags(event.target.value)} />}</Field>
        {may("admin") && <Field label="Owner">{(own) => <input id={own} value={owner} onInput={(event) => setOwner(event.target.value)} placeholder={session.get().who?.owner} />}</Field>}
        <Field label="Valid for">{(own) => <select id={own} value={lease} onChange={(event) => setLease(event.target.value)}>{LEASES.map(([seconds, name]) => <option key={seconds} value={seconds}>{name}</option>)}</select>}</Field>
        {session.get().who?.reads_archive && <Field label="Its mailbox has the matches">{(own) => <select id={own} value={history} onChange={(event) => setHistory(event.target.value)}>{HISTORIES.map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>}</Field>}
        <ProblemNote problem={save.problem} />
        {may("subscribe")
          ? <button type="submit" class="primary" disabled={!isValid || save.isBusy}>Subscribe</button>
          : <p class="note warn">Your key does not have the role subscribe.</p>}
        {!isValid && <p class="hint">The button works when the expression is valid.</p>}
      </form>
      {made && (
        <OnceShown title="Subscribed" secret={made.ticket} onClose={() => go(["edit", made.id])}>
          <Text>{made.id}</Text> is live. This is its ticket: whoever has it may change, renew and end the subscription. It is shown only now; this tab keeps it until it is closed.
        </OnceShown>
      )}
    </Card>
  );
}

// ── changing ───────────────────────────────────────────────────────────────────────────────

function Manage({ known, expression, isChanged, isValid, again }) {
  const [tags, setTags] = useState(known.tags.join(", "));
  const [ticket, setTicket] = useState("");
  const [lease, setLease] = useState(604_800);
  const [isAsking, setAsking] = useState(false);
  const [hasTicket, setHasTicket] = useState(() => may("admin") || ticketOf(known.id) !== null);
  const path = `/v1/subscriptions/${pathOf(known.id)}`;
  const headers = () => withTicket(known.id, { "if-match": `"${known.revision}"` });
  const areTags = readTags(tags).join("\n") !== known.tags.join("\n");
  const save = useAction(async () => {
    const body = {};
    if (isChanged) body.expression = expression;
    if (areTags) body.tags = readTags(tags);
    await ask("PATCH", path, { body, headers: headers() });
    toast(`${known.id} is changed.`);
    again();
  });
  const renew = useAction(async () => {
    const found = await post(`${path}/renew`, { lease: Number(lease) }, { headers: withTicket(known.id) });
    toast(`${known.id} is valid until ${moment(found.valid_until)}.`);
    again();
  });
  const remove = useAction(async () => {
    await ask("DELETE", path, { headers: withTicket(known.id) });
    toast(`${known.id} is deleted.`);
    go(["subscriptions"]);
  });
  const [, kind, label] = stateOf(known);
  const takeTicket = (event) => {
    event.preventDefault();
    keepTicket(known.id, ticket.trim());
    setHasTicket(true);
  };
  return (
    <>
      <Card title="In force">
        <Facts>
          <Fact name="State" kind="plain"><Badge kind={kind}>{label}</Badge></Fact>
          <Fact name="Valid until" kind="plain">{known.valid_until ? <>{moment(known.valid_until)}<br /><small>{distance(known.valid_until)}</small></> : "without end"}</Fact>
          <Fact name="Owner" kind="plain"><Text>{known.owner || "–"}</Text></Fact>
          <Fact name="Revision" kind="plain">{known.revision}</Fact>
        </Facts>
        <p class="actions start">
          <a class="button small" href={linkTo(["deliveries", "mailbox"], { subscription: known.id })}>Mailbox</a>
          <a class="button small" href={linkTo(["deliveries", "webhooks"], { subscription: known.id })}>Webhooks</a>
          <a class="button small" href={linkTo(["deliveries", "feeds"], { subscription: known.id })}>Result feeds</a>
          <a class="button small" href={linkTo(["deliveries", "digests"], { subscription: known.id })}>Digests</a>
          <a class="button small" href={linkTo(["playground"], { subscription: known.id })}>Why does it not match?</a>
        </p>
      </Card>
      <Card title="Change">
        {!hasTicket && (
          <form class="stack" onSubmit={takeTicket}>
            <p class="note warn">It can be changed with its ticket, or by an administrator.</p>
            <Field label="Ticket">{(own) => <input id={own} type="password" autocomplete="off" value={ticket} onInput={(event) => setTicket(event.target.value)} />}</Field>
            <button type="submit" class="small" disabled={!ticket.trim()}>Use this ticket</button>
          </form>
        )}
        <Field label="Tags" hint="With commas between them.">{(own) => <input id={own} value={tags} onInput={(event) => setTags(event.target.value)} />}</Field>
        <ProblemNote problem={save.problem} />
        <button type="button" class="primary" disabled={save.isBusy || !(isChanged || areTags) || (isChanged && !isValid)} onClick={() => save.run()}>Save the change</button>
        {!(isChanged || areTags) && <p class="hint">Nothing is changed.</p>}
        <div class="together">
          <select aria-label="Renew for" value={lease} onChange={(event) => setLease(event.target.value)}>{LEASES.map(([seconds, name]) => <option key={seconds} value={seconds}>{name}</option>)}</select>
          <button type="button" disabled={renew.isBusy} onClick={() => renew.run()}>Renew</button>
        </div>
        <ProblemNote problem={renew.problem} />
        <button type="button" class="danger" onClick={() => setAsking(true)}>Delete</button>
      </Card>
      {isAsking && (
        <Confirm title="Delete this subscription?" action="Delete" onClose={() => setAsking(false)} onDo={remove.run} problem={remove.problem} isBusy={remove.isBusy}>
          <p><Text>{known.id}</Text> ends now. Its mailbox stays readable until the archive forgets it.</p>
        </Confirm>
      )}
    </>
  );
}
