// Digests: matches by e-mail, one message an hour or a day.
import { useState } from "preact/hooks";
import { ask, get, post, query as toQuery } from "./api.js";
import { BoxFields, MailboxLink, NO_BOX, askFor, boxOf, headersOf } from "./boxes.jsx";
import { cause, distance, moment, visible } from "./format.js";
import { useAction, useLoaded } from "./hooks.js";
import { Badge, Card, Confirm, Empty, Field, Loaded, ProblemNote, Table, Text, toast } from "./ui.jsx";

const PAD = (count) => String(count).padStart(2, "0");

function stateOf(own) {
  if (own.failed_attempts) return ["bad", "failing"];
  return own.confirmed ? ["good", "active"] : ["warn", "not confirmed"];
}

function State({ own }) {
  const [kind, label] = stateOf(own);
  return <><Badge kind={kind}>{label}</Badge>{own.failed_attempts > 0 && <> <small><Text>{cause(own.last_error)}</Text></small></>}</>;
}

const when = (own) => (own.period === "daily" ? `daily at ${PAD(own.hour)}:${PAD(own.minute)}` : `hourly, at minute ${own.minute}`);

// A digest names its mailbox by a number. The name of a channel is looked up, and that of a mailbox
// that was asked for is known.
async function readDigests(box, signal) {
  const { digests } = await get(`/v1/digests${toQuery({ ...askFor(box), limit: 1000 })}`, { signal, headers: box ? headersOf(box) : {} });
  if (box) return digests.map((own) => ({ ...own, mailbox_name: box.name }));
  if (!digests.some((own) => own.mailbox.startsWith("channel/"))) return digests;
  const { channels } = await get("/v1/channels?limit=1000", { signal });
  const names = new Map(channels.map((own) => [`channel/${own.number}`, own.name]));
  return digests.map((own) => ({ ...own, mailbox_name: own.mailbox_name ?? names.get(own.mailbox) }));
}

export function Digests({ query }) {
  const start = boxOf(query);
  const found = useLoaded((signal) => readDigests(start, signal), [start?.kind, start?.name], { every: 5000 });
  const [asked, setAsked] = useState(null);
  const remove = useAction(async () => {
    await ask("DELETE", `/v1/digests/${asked.number}`, { headers: start ? headersOf(start) : {} });
    toast("The digest is deleted.");
    setAsked(null);
    found.again();
  });
  return (
    <>
      <Card title={start ? <>Digests of <Text>{start.name}</Text></> : "Digests"}>
        <Loaded from={found}>
          {(digests) => (digests.length === 0 ? <Empty title="There are no digests"><p>A digest is one e-mail an hour or a day with all matches of a mailbox, and none if there are none. Make the first one below.</p></Empty> : (
            <>
              <Table label="Digests" rows={digests} columns={[
                ["Address", (own) => <Text>{own.address}</Text>, "first"],
                ["Matches of", (own) => <MailboxLink own={own} />],
                ["When", (own) => <>{when(own)} <small><Text>{own.zone}</Text></small></>, "words"],
                ["State", (own) => <State own={own} />, "words"],
                ["Last sent", (own) => (own.last_sent ? moment(own.last_sent) : "not yet"), "tight"],
                ["Next", (own) => (own.confirmed ? distance(own.next_due) : "–"), "tight"],
                ["", (own) => <button type="button" class="small danger" aria-label={`Delete the digest to ${visible(own.address)}`} onClick={() => setAsked(own)}>Delete</button>, "buttons"],
              ]} />
              {digests.some((own) => !own.confirmed) && <p class="hint">An address that has not confirmed its digest got one message with a link; nothing else is sent to it before it opens that. After three days the link is no longer valid.</p>}
            </>
          ))}
        </Loaded>
      </Card>
      <NewDigest again={found.again} start={start} />
      {asked && <Confirm title="Delete this digest?" action="Delete" onClose={() => setAsked(null)} onDo={remove.run} problem={remove.problem} isBusy={remove.isBusy}><p>Nothing more is sent to <Text>{asked.address}</Text>.</p></Confirm>}
    </>
  );
}

function NewDigest({ again, start }) {
  const [box, setBox] = useState(start ?? NO_BOX);
  const [address, setAddress] = useState("");
  const [period, setPeriod] = useState("daily");
  const [time, setTime] = useState("07:00");
  const [minute, setMinute] = useState("0");
  const [zone, setZone] = useState(() => Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC");
  const make = useAction(async () => {
    const [hour, minutes] = period === "daily" ? time.split(":").map(Number) : [0, Number(minute)];
    const body = { ...askFor(box), address: address.trim(), period, hour, minute: minutes, zone: zone.trim() };
    const made = await post("/v1/digests", body, { headers: headersOf(box) });
    toast(made.confirmed ? `${made.address} gets its first digest ${distance(made.next_due)}.` : `${made.address} gets a link to confirm the digest, valid for three days.`);
    setAddress("");
    again();
  });
  const submit = (event) => {
    event.preventDefault();
    make.run();
  };
  return (
    <Card title="New digest">
      <form class="stack" onSubmit={submit}>
        <div class="form-row">
          <BoxFields box={box} onChange={setBox} />
          <Field label="E-mail address">{(id) => <input id={id} type="email" value={address} onInput={(event) => setAddress(event.target.value)} required />}</Field>
        </div>
        <div class="form-row">
          <Field label="How often">{(id) => <select id={id} value={period} onChange={(event) => setPeriod(event.target.value)}><option value="daily">once a day</option><option value="hourly">once an hour</option></select>}</Field>
          {period === "daily"
            ? <Field label="At">{(id) => <input id={id} type="time" value={time} onInput={(event) => setTime(event.target.value)} required />}</Field>
            : <Field label="At minute">{(id) => <input id={id} type="number" min={0} max={59} value={minute} onInput={(event) => setMinute(event.target.value)} required />}</Field>}
          <Field label="Time zone">{(id) => <input id={id} value={zone} onInput={(event) => setZone(event.target.value)} required />}</Field>
        </div>
        <ProblemNote problem={make.problem} />
        <div class="actions start"><button type="submit" class="primary" disabled={make.isBusy}>Make the digest</button></div>
      </form>
    </Card>
  );
}
