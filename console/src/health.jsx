// How the server does, and what its index is made of.
import { useEffect, useState } from "preact/hooks";
import { get } from "./api.js";
import { bytes, number, plural, seconds } from "./format.js";
import { linkTo, useLoaded, useTitle } from "./hooks.js";
import { Badge, Card, Code, Fact, Facts, Line, Loaded, Page, Text, sentence } from "./ui.jsx";

const EVERY = 2000; // milliseconds between looks
const MOST = 90; // looks that are remembered

export function Health() {
  useTitle("Health");
  const stats = useLoaded((signal) => get("/v1/stats", { signal }), [], { every: EVERY });
  const history = useHistory(stats.value);
  return (
    <Page title="Health" actions={stats.value && <Badge kind={stats.value.ready ? "good" : "bad"}>{stats.value.ready ? "Ready" : "Not ready"}</Badge>}>
      <Loaded from={stats}>
        {(found) => (
          <>
            {found.not_ready_because.map((reason) => <p class="note bad" role="alert" key={reason}><Text>{sentence(reason)}</Text></p>)}
            <div class="cards">
              <Chart title="Events per second" history={history} read={(own) => own.events} />
              <Chart title="Matches per second" history={history} read={(own) => own.matches} />
              <Chart title="Memory" history={history} read={(own) => own.memory} spell={bytes} />
            </div>
            <div class="columns">
              <Published found={found} />
              <Latency found={found} />
            </div>
            <div class="columns">
              <Parts found={found} />
              <Operators found={found} />
            </div>
          </>
        )}
      </Loaded>
      {!stats.problem && (
        <>
          <div class="columns">
            <Ranking order="most" title="Noisy: the most matches in 7 days" />
            <Ranking order="none" title="Silent: no match in 7 days" />
          </div>
          <Anatomy />
        </>
      )}
    </Page>
  );
}

function useHistory(found) {
  const [history, setHistory] = useState([]);
  useEffect(() => {
    if (!found) return;
    const now = { at: found.uptime_seconds, nEvents: found.published.n_events, nMatches: found.published.n_matches, memory: found.memory_bytes ?? 0 };
    setHistory((own) => {
      const before = own.at(-1);
      // After a restart the counters begin again.
      if (!before || before.at >= now.at) return [{ ...now, events: 0, matches: 0 }];
      const gap = now.at - before.at;
      return [...own, { ...now, events: (now.nEvents - before.nEvents) / gap, matches: (now.nMatches - before.nMatches) / gap }].slice(-MOST);
    });
  }, [found]);
  return history;
}

const rate = (value) => number(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));

function Chart({ title, history, read, spell = rate }) {
  const values = history.map(read);
  const last = values.at(-1) ?? 0;
  const most = Math.max(0, ...values);
  const gap = history.length ? history.at(-1).at - history[0].at : 0;
  return (
    <Card title={title} actions={<strong class="large">{spell(last)}</strong>}>
      <div class="chart">
        <div class="scale" aria-hidden="true"><span>{spell(most)}</span><span>0</span></div>
        <Line values={values} label={`${title}, the last ${seconds(gap)}: at most ${spell(most)}; now ${spell(last)}`} />
        <div class="times" aria-hidden="true"><span>{gap ? `${seconds(Math.round(gap))} ago` : ""}</span><span>now</span></div>
      </div>
    </Card>
  );
}

function Published({ found }) {
  const { published, archive } = found;
  return (
    <Card title="Published and archived">
      <Facts>
        <Fact name="Events since the start">{number(published.n_events)}</Fact>
        <Fact name="Matches">{number(published.n_matches)}</Fact>
        <Fact name="Rows rejected" kind={published.n_rejected ? "bad" : ""}>{number(published.n_rejected)}</Fact>
        <Fact name="Values of another type" kind={published.n_ignored ? "bad" : ""}>{number(published.n_ignored)}</Fact>
        <Fact name="Requests not stored" kind={published.n_failed ? "bad" : ""}>{number(published.n_failed)}</Fact>
        <Fact name="Archive">{bytes(archive.bytes)}</Fact>
        <Fact name="Events archived">{number(archive.last_event - archive.first_event + 1)}</Fact>
        <Fact name="Running for">{seconds(found.uptime_seconds)}</Fact>
        <Fact name="Open streams">{number(Object.values(found.open_streams).reduce((sum, own) => sum + own, 0))}</Fact>
      </Facts>
      {published.n_ignored > 0 && <p class="hint">A value of another type than its attribute counts as missing. The answer to whoever published it names the attribute, and so does the <a href={linkTo(["playground"])}>playground</a> for an event.</p>}
      {archive.maintenance_error && <p class="note bad"><Text>{archive.maintenance_error}</Text></p>}
    </Card>
  );
}

function Latency({ found }) {
  const { requests, publishing, delivery } = found.seconds;
  const rows = [["Requests", requests], ["Publishing, until it is on disk", publishing], ...Object.entries(delivery).map(([kind, own]) => [`Delivery by ${kind}`, own])];
  return (
    <Card title="How long things take">
      <div class="scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <caption class="hidden">Times since the start, by estimate</caption>
          <thead><tr><th scope="col">What</th><th scope="col" class="number">Count</th><th scope="col" class="number">p50</th><th scope="col" class="number">p99</th></tr></thead>
          <tbody>{rows.map(([name, own]) => <tr key={name}><td>{name}</td><td class="number">{number(own.count)}</td><td class="number">{seconds(own.p50)}</td><td class="number">{seconds(own.p99)}</td></tr>)}</tbody>
        </table>
      </div>
      <p class="hint">Since the start of the server, estimated from histograms. Delivery is the time from the publication of an event until it is handed over.</p>
    </Card>
  );
}

function Parts({ found }) {
  const { set } = found;
  return (
    <Card title="The set">
      <Facts>
        <Fact name="Subscriptions">{number(set.subscriptions)}</Fact>
        <Fact name="Changes">{number(set.change)}</Fact>
        <Fact name="Parts">{number(set.parts.length)}</Fact>
        <Fact name="Merges since the start">{number(set.merges)}</Fact>
        <Fact name="Replaced or removed">{(set.hidden_share * 100).toFixed(1)} %</Fact>
        <Fact name="Outside the largest part">{(set.overlay_share * 100).toFixed(1)} %</Fact>
      </Facts>
      {set.last_background_failure && <p class="note bad">Work in the background failed {number(set.background_failures)} times; last: <Text>{set.last_background_failure}</Text></p>}
    </Card>
  );
}

function Operators({ found }) {
  const { operators, audit } = found;
  const names = Object.entries(operators.by_name);
  return (
    <Card title="Operators and audit">
      {names.length === 0 ? operators.faults.length === 0 && <p class="hint">No operator was called.</p> : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <caption class="hidden">Operators</caption>
            <thead><tr><th scope="col">Operator</th><th scope="col" class="number">Calls</th><th scope="col" class="number">True</th><th scope="col" class="number">Time per call</th></tr></thead>
            <tbody>{names.map(([name, own]) => <tr key={name}><td><Code>{name}</Code></td><td class="number">{number(Math.round(own.calls))}</td><td class="number">{own.calls ? `${((own.true / own.calls) * 100).toFixed(0)} %` : "–"}</td><td class="number">{seconds(own.calls ? own.seconds / own.calls : null)}</td></tr>)}</tbody>
          </table>
        </div>
      )}
      {operators.faults.map((fault) => <p class="note bad" key={`${fault.call}${fault.kind}`}><Code>{fault.call}</Code> failed for {plural(fault.n_events, "event")}, the first time with: <Text>{sentence(fault.message)}</Text></p>)}
      {operators.faults.length > 0 && <p class="hint">A call that fails leaves subscriptions undecided, and they do not match. <a href={linkTo(["subscriptions"], { state: "broken" })}>List them.</a></p>}
      {operators.blocked.length > 0 && <p class="note warn">Not called for now, because they failed too often: {operators.blocked.map((call, at) => <span key={call}>{at > 0 && ", "}<Code>{call}</Code></span>)}</p>}
      <Facts>
        <Fact name="Events judged again">{number(audit.n_events)}</Fact>
        <Fact name="Wrong answers found" kind={audit.n_disagreements ? "bad" : ""}>{number(audit.n_disagreements)}</Fact>
      </Facts>
      {audit.share === 0 && <p class="hint">The audit is off. The setting operations.audit_share lets the reference evaluator judge a share of the events again.</p>}
    </Card>
  );
}

function Ranking({ order, title }) {
  const found = useLoaded((signal) => get(`/v1/activity?order=${order}&days=7&limit=10`, { signal }), [order]);
  return (
    <Card title={title}>
      <Loaded from={found}>
        {(value) => (value.subscriptions.length === 0 ? <p class="hint">None.</p> : (
          <table>
            <tbody>{value.subscriptions.map((own) => <tr key={own.id}><td><a href={linkTo(["edit", own.id])}><Text>{own.id}</Text></a></td><td class="number">{number(own.matches)}</td></tr>)}</tbody>
          </table>
        ))}
      </Loaded>
      {order === "none" && found.value && <p class="hint">{number(found.value.silent)} of {number(found.value.total)} subscriptions matched nothing.{found.value.silent > 0 && <> <a href={linkTo(["subscriptions"], { state: "silent" })}>List them.</a></>}</p>}
    </Card>
  );
}

// ── the anatomy of the index ───────────────────────────────────────────────────────────────

function Anatomy() {
  const found = useLoaded((signal) => get("/v1/anatomy", { signal }), []);
  return (
    <Card title="Anatomy of the index" actions={<button type="button" class="small" onClick={found.again}>Look again</button>}>
      <Loaded from={found} what="Counting nodes">
        {({ largest, parts, subscriptions }) => (largest === null ? <p class="hint">The index is empty.</p> : (
          <>
            {parts.length > 1 && <p class="hint">These numbers are of the largest of {number(parts.length)} parts, with {number(largest.counts.subscriptions)} of {number(subscriptions)} subscriptions.</p>}
            <Facts>
              <Fact name="Leaves">{number(largest.counts.leaves)}</Fact>
              <Fact name="Inner nodes">{number(largest.counts.inner_nodes)}</Fact>
              <Fact name="Links">{number(largest.counts.links)}</Fact>
              <Fact name="Depth">{number(largest.counts.depth)}</Fact>
              <Fact name="Shared">{largest.sharing.toFixed(2)} ×</Fact>
              <Fact name="Distinct expressions">{number(largest.counts.distinct_expressions)}</Fact>
              <Fact name="Size">{bytes(largest.bytes)}</Fact>
              <Fact name="Per subscription">{bytes(largest.bytes_per_subscription)}</Fact>
            </Facts>
            <div class="columns">
              <NodeTable title="Most shared subexpressions" rows={largest.most_used} column="Uses" read={(own) => own.uses} />
              <NodeTable title="What makes the matcher look most" rows={largest.selectivity?.busiest ?? []} column="Nodes looked at" read={(own) => own.looks} share={(own) => own.rate} />
            </div>
            <div class="columns">
              <section aria-label="Nodes by level">
                <h3>Nodes by level</h3>
                <table>
                  <thead><tr><th scope="col">Level</th><th scope="col" class="number">Nodes</th><th scope="col" class="number">Uses of each</th></tr></thead>
                  <tbody>{largest.levels.map((own) => <tr key={own.level}><td>{own.level === 0 ? "leaves" : own.level}</td><td class="number">{number(own.nodes)}</td><td class="number">{own.uses_per_node.toFixed(2)}</td></tr>)}</tbody>
                </table>
              </section>
              <section aria-label="Nodes and tests by kind">
                <h3>Nodes and tests by kind</h3>
                <table>
                  <thead><tr><th scope="col">Kind</th><th scope="col" class="number">How many</th></tr></thead>
                  <tbody>
                    {Object.entries(largest.kinds).map(([name, count]) => <tr key={name}><td>nodes of <Code>{name}</Code></td><td class="number">{number(count)}</td></tr>)}
                    {largest.column_kinds.map((own) => <tr key={own.kind}><td>{own.kind}<small> {plural(own.columns, "column")}</small></td><td class="number">{own.patterns ? plural(own.patterns, "pattern") : plural(own.constants, "constant")}</td></tr>)}
                  </tbody>
                </table>
              </section>
            </div>
            <div class="columns">
              <section aria-label="The largest attributes">
                <h3>Attributes with the most constants and patterns</h3>
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                  <table>
                    <thead><tr><th scope="col">Attribute</th><th scope="col">Tests</th><th scope="col" class="number">Constants</th><th scope="col" class="number">Patterns</th></tr></thead>
                    <tbody>{largest.columns.map((own, at) => <tr key={at}><td><Code>{own.attributes}</Code></td><td>{own.kind}</td><td class="number">{number(own.constants)}</td><td class="number">{number(own.patterns)}</td></tr>)}</tbody>
                  </table>
                </div>
              </section>
              <section aria-label="The most expensive patterns and tests">
                <h3>The most expensive: tested on every event or text</h3>
                {largest.always_evaluated.length === 0 ? <p class="hint">Nothing: each test has an index.</p> : largest.always_evaluated.map((own) => (
                  <div class="note warn" key={own.what + own.reason}>
                    <p><strong>{number(own.count)} <Text>{own.what}</Text></strong>: <Text>{own.reason}</Text></p>
                    {own.examples.slice(0, 5).map((text) => <p key={text}><Code>{text}</Code></p>)}
                  </div>
                ))}
              </section>
            </div>
          </>
        ))}
      </Loaded>
    </Card>
  );
}

// With `share`, also how often an expression is true, by estimate.
function NodeTable({ title, rows, column, read, share }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {rows.length === 0 ? <p class="hint">None.</p> : (
        <table>
          <thead><tr><th scope="col">Expression</th>{share && <th scope="col" class="number">True for</th>}<th scope="col" class="number">{column}</th></tr></thead>
          <tbody>{rows.map((own, at) => <tr key={at}><td><Code>{own.text}</Code></td>{share && <td class="number">{Number((share(own) * 100).toPrecision(2))} %</td>}<td class="number">{number(read(own))}</td></tr>)}</tbody>
        </table>
      )}
    </section>
  );
}
