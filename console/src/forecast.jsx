// What an expression would have matched, and what a change would change.
import { useEffect, useState } from "preact/hooks";
import { post, session } from "./api.js";
import { moment, number, plural, spell } from "./format.js";
import { linkTo, useAction } from "./hooks.js";
import { Bars, Card, Code, Fact, Facts, ProblemNote, Table, Text, sentence } from "./ui.jsx";

export function Forecast({ expression, isValid, known, isChanged }) {
  const [days, setDays] = useState(7);
  const [found, setFound] = useState(null);
  const run = useAction(async () => {
    const body = { expression, days: Number(days), samples: 5 };
    if (isChanged) body.subscription_id = known.id;
    const answer = await post("/v1/forecast", body);
    setFound({ ...answer, expression, isCompared: isChanged, asked: Number(days) });
  });
  useEffect(() => setFound((own) => (own && own.expression !== expression ? { ...own, isOld: true } : own)), [expression]);
  if (!session.get().who?.reads_archive) {
    return <Card title="Forecast"><p class="hint">A forecast reads all events of the archive. Your key may not do that: it needs the role admin, or the setting archive.readable.</p></Card>;
  }
  return (
    <Card title="Forecast" actions={(
      <div class="together">
        <select aria-label="Days to look back" value={days} onChange={(event) => setDays(event.target.value)}>
          {[1, 7, 30, 90].map((own) => <option key={own} value={own}>{plural(own, "day")}</option>)}
        </select>
        <button type="button" disabled={!isValid || run.isBusy} onClick={() => run.run()}>{run.isBusy ? "Looking back…" : isChanged ? "Compare" : "Forecast"}</button>
      </div>
    )}>
      <ProblemNote problem={run.problem} />
      {!found && !run.problem && <p class="hint">What would this have matched among the events of the last days? {isChanged && "It is compared with the expression in force."}</p>}
      {found?.isOld && <p class="note warn">The expression has changed since this forecast.</p>}
      {found && <Found found={found} />}
    </Card>
  );
}

// All days that were asked for; the answer has those with events.
function fillDays(found) {
  const known = new Map(found.days.map((own) => [own.day, own.matches]));
  const last = new Date();
  return Array.from({ length: found.asked }, (_, at) => {
    const day = new Date(last.getTime() - (found.asked - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return { name: day.slice(5), value: known.get(day) ?? 0 };
  });
}

// Of an AND, the part that holds for the fewest events decides how often it matches; of an OR, the one
// that holds for the most.
function deciding({ combined_by, parts, rarest }) {
  if (combined_by !== "or") return rarest;
  return parts.reduce((most, own) => (own.matches > most.matches ? own : most)).expression;
}

function Found({ found }) {
  const looked = found.looked_at;
  const perDay = found.days.length ? found.matches.events / found.days.length : 0;
  return (
    <div class="stack" role="status">
      <Facts>
        <Fact name="Matches">{number(found.matches.events)}</Fact>
        <Fact name="Per day">{number(Math.round(perDay * 10) / 10)}</Fact>
        <Fact name="Of events">{number(looked.events)}</Fact>
        {found.isCompared && <Fact name="Newly matching">+{number(found.newly_matching.events)}</Fact>}
        {found.isCompared && <Fact name="No longer matching">−{number(found.no_longer_matching.events)}</Fact>}
      </Facts>
      {!looked.is_complete && <p class="note warn">Only the newest {number(looked.events)} events were read: the limit of {looked.stopped_by === "time" ? "time" : "events"} was reached.</p>}
      {looked.without_text > 0 && <p class="note warn">{plural(looked.without_text, "event")} could not be read: their texts are not archived.</p>}
      {found.notes.map((text) => <p class="note warn" key={text}><Text>{sentence(text)}</Text></p>)}
      {looked.events === 0 && <p class="hint">The archive has no events of these days. Publish some, and look again.</p>}
      {looked.events > 0 && <Bars label={`Matches per day: ${found.days.map((own) => `${own.day} ${number(own.matches)}`).join(", ")}`} rows={fillDays(found)} />}
      {found.parts.length > 1 && (
        <Table label="What part decides" rows={found.parts} keyOf={(part) => part.expression} columns={[
          ["Part", (part) => <><Code>{part.expression}</Code>{part.expression === deciding(found) && <small> {found.combined_by === "or" ? "the most frequent" : "the rarest"}: it decides</small>}</>],
          ["Events it holds for", (part) => number(part.matches), "number"],
          ["µs per event", (part) => (part.microseconds === null ? "–" : part.microseconds.toFixed(2)), "number"],
        ]} />
      )}
      {found.isCompared ? (
        <div class="columns">
          <Sample title="Newly matching" matches={found.newly_matching} />
          <Sample title="No longer matching" matches={found.no_longer_matching} />
        </div>
      ) : <Sample title="The newest matches" matches={found.matches} />}
    </div>
  );
}

function Sample({ title, matches }) {
  return (
    <section aria-label={title}>
      <h3>{title}: {number(matches.events)}</h3>
      {matches.sample.length === 0 ? <p class="hint">None.</p> : (
        <ul class="events">
          {matches.sample.map((own) => (
            <li key={own.event}>
              <a href={linkTo(["playground"], { event: spell(own.content) })}>Event {number(own.event)}</a> <small>{moment(own.moment)}</small>
              <Code class="one-line">{spell(own.content)}</Code>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
