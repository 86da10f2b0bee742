// Import a file of subscriptions: look first, with the errors of its rows in place.
import { useRef, useState } from "preact/hooks";
import { keepTicket, lines, may, query } from "./api.js";
import { number, plural } from "./format.js";
import { linkTo, useAction, useTitle } from "./hooks.js";
import { Badge, Card, Code, Fact, Facts, Page, ProblemNote, Table, Text, sentence } from "./ui.jsx";

const KINDS = { csv: "text/csv", jsonl: "application/x-ndjson", ndjson: "application/x-ndjson", json: "application/json", parquet: "application/vnd.apache.parquet" };
const MOST_SHOWN = 500; // rows

const kindOf = (file) => KINDS[file.name.split(".").pop().toLowerCase()];

export function Import() {
  useTitle("Import a file");
  const [file, setFile] = useState(null);
  const [existing, setExisting] = useState("refuse");
  const [result, setResult] = useState(null);
  const [isOver, setOver] = useState(false);
  const input = useRef(null);
  const run = useAction(async (isDry, which, how) => {
    const found = { rows: [], summary: null, isDry, n: 0 };
    const kind = kindOf(which);
    if (!kind) throw new Error(`${which.name}: files that end in ${Object.keys(KINDS).join(", ")} can be read`);
    const path = `/v1/subscriptions/import${query({ existing: how, dry_run: isDry })}`;
    for await (const line of lines("POST", path, { text: which, headers: { "content-type": kind } })) {
      if (line.summary) {
        found.summary = line;
        continue;
      }
      found.n += 1;
      if (line.ticket && line.id) keepTicket(line.id, line.ticket);
      delete line.ticket;
      // Rows with errors matter more than the others.
      if (line.status === "refused" ? found.rows.length < MOST_SHOWN : found.rows.length < MOST_SHOWN / 2) found.rows.push(line);
    }
    if (!found.summary) throw new Error("the connection was lost; what was stored stays, and importing again refuses it");
    setResult(found);
  });
  const take = (next, how = existing) => {
    if (!next) return;
    setFile(next);
    setResult(null);
    run.run(true, next, how);
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };
  const choose = (event) => {
    setExisting(event.target.value);
    if (file) take(file, event.target.value);
  };
  const counts = result?.summary.summary;
  const nGood = counts ? counts.made + counts.replaced : 0;
  return (
    <Page title="Import a file" actions={<a class="button" href={linkTo(["subscriptions"])}>All subscriptions</a>}>
      <Card title="File">
        <div class={`drop ${isOver ? "over" : ""}`} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
          <p>Drop a file here, or <button type="button" class="link" onClick={() => input.current.click()}>choose one</button>.</p>
          <p class="hint">CSV, JSON lines, JSON or Parquet with the columns <code>id</code> and <code>expression</code>, and, if they are there, <code>tags</code>, <code>valid_from</code>, <code>valid_until</code> and <code>owner</code>.</p>
          <input ref={input} type="file" class="hidden" tabIndex={-1} aria-label="File with subscriptions" accept=".csv,.jsonl,.ndjson,.json,.parquet" onChange={(event) => take(event.target.files[0])} />
        </div>
        <fieldset class="together">
          <legend class="label">Ids that exist</legend>
          <label class="check"><input type="radio" name="existing" value="refuse" checked={existing === "refuse"} onChange={choose} /> stay as they are</label>
          <label class="check"><input type="radio" name="existing" value="replace" checked={existing === "replace"} onChange={choose} /> are replaced</label>
        </fieldset>
      </Card>
      <ProblemNote problem={run.problem} />
      {run.isBusy && <p class="loading" role="status">Reading <Text>{file?.name}</Text>…</p>}
      {result && (
        <Card title={result.isDry ? <>What would happen with <Text>{file.name}</Text></> : <>Imported <Text>{file.name}</Text></>}>
          <Facts>
            <Fact name="Rows">{number(counts.rows)}</Fact>
            <Fact name={result.isDry ? "Would be made" : "Made"}>{number(counts.made)}</Fact>
            <Fact name={result.isDry ? "Would be replaced" : "Replaced"}>{number(counts.replaced)}</Fact>
            <Fact name="With an error" kind={counts.refused ? "bad" : ""}>{number(counts.refused)}</Fact>
          </Facts>
          {!result.summary.is_complete && <p class="note bad" role="alert">The file could not be read to its end: <Text>{result.summary.error.message}</Text></p>}
          {(result.summary.notes ?? []).map((text) => <p class="note warn" key={text}><Text>{sentence(text)}</Text></p>)}
          {result.isDry && nGood > 0 && may("subscribe") && (
            <div class="actions start">
              <button type="button" class="primary" disabled={run.isBusy} onClick={() => run.run(false, file, existing)}>Import {plural(nGood, "row")}{counts.refused ? ", without those with errors" : ""}</button>
            </div>
          )}
          {!result.isDry && <p class="note good" role="status">Done. <a href={linkTo(["subscriptions"])}>Look at the subscriptions.</a></p>}
          <Table label="Rows of the file" rows={result.rows} keyOf={(row) => row.row} columns={[
            ["Line", (row) => row.line ?? row.row, "number"],
            ["Id", (row) => <Text>{row.id ?? "–"}</Text>],
            ["Result", (row) => <ImportResult row={row} isDry={result.isDry} />],
          ]} />
          {result.rows.length < result.n && <p class="hint">{number(result.rows.length)} of {number(result.n)} rows are listed.</p>}
        </Card>
      )}
    </Page>
  );
}

function ImportResult({ row, isDry }) {
  const words = isDry ? { made: "Would be made", replaced: "Would be replaced" } : { made: "Made", replaced: "Replaced" };
  if (row.status !== "refused") return <Badge kind="good">{words[row.status]}</Badge>;
  return (
    <>
      <Badge kind="bad">Error</Badge> <Text>{row.error.message}</Text>
      {row.error.picture && <pre class="picture"><Code lines>{row.error.picture}</Code></pre>}
      {row.error.hint && <p class="hint"><Text>{row.error.hint}</Text></p>}
    </>
  );
}
