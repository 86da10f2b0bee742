// Webhooks: how they stand, what was sent, dead letters.
import { useState } from "preact/hooks";
import { ask, get, post, query as toQuery } from "./api.js";
import { cause, distance, moment, number, plural } from "./format.js";
import { go, linkTo, useAction, useLoaded } from "./hooks.js";
import { BoxFields, MailboxLink, NO_BOX, askFor, boxOf, headersOf } from "./boxes.jsx";
import { Badge, Card, Confirm, Empty, Fact, Facts, Field, Loaded, OnceShown, ProblemNote, Table, Text, toast } from "./ui.jsx";

const KINDS = { active: "good", paused: "warn", disabled: "bad" };

export function Webhooks({ query }) {
  const box = boxOf(query);
  const found = useLoaded((signal) => get(`/v1/webhooks${toQuery({ ...askFor(box), limit: 1000 })}`, { signal, headers: box ? headersOf(box) : {} }), [box?.kind, box?.name], { every: 5000 });
  return (
    <>
      <Card title={box ? <>Webhooks of <Text>{box.name}</Text></> : "Webhooks"}>
        <Loaded from={found}>
          {({ webhooks }) => (webhooks.length === 0 ? <Empty title="There are no webhooks"><p>A webhook sends each match of a mailbox to an address, signed, in order, and again until it arrives. Register the first one below.</p></Empty> : (
            <Table label="Webhooks" rows={webhooks} columns={[
              ["Address", (own) => <a href={linkTo(["deliveries", "webhooks", own.number])}><Text>{own.url}</Text></a>, "first"],
              ["Matches of", (own) => <MailboxLink own={own} />],
              ["State", (own) => <Badge kind={own.failed_attempts && own.state === "active" ? "warn" : KINDS[own.state]}>{own.failed_attempts && own.state === "active" ? "failing" : own.state}</Badge>, "tight"],
              ["Last answer", (own) => <Text>{own.last_status ?? cause(own.last_error) ?? "–"}</Text>],
              ["Next attempt", (own) => (own.next_attempt && own.failed_attempts ? distance(own.next_attempt) : "–"), "tight"],
            ]} />
          ))}
        </Loaded>
      </Card>
      <NewWebhook again={found.again} start={box} />
    </>
  );
}

function NewWebhook({ again, start }) {
  const [box, setBox] = useState(start ?? NO_BOX);
  const [url, setUrl] = useState("");
  const [made, setMade] = useState(null);
  const make = useAction(async () => {
    setMade(await post("/v1/webhooks", { ...askFor(box), url: url.trim() }, { headers: headersOf(box) }));
    again();
  });
  const submit = (event) => {
    event.preventDefault();
    make.run();
  };
  return (
    <Card title="New webhook">
      <form class="form-row" onSubmit={submit}>
        <BoxFields box={box} onChange={setBox} />
        <Field label="Address">{(id) => <input id={id} type="url" placeholder="https://" value={url} onInput={(event) => setUrl(event.target.value)} required />}</Field>
        <button type="submit" class="primary" disabled={make.isBusy}>Register</button>
      </form>
      <ProblemNote problem={make.problem} />
      {made && <OnceShown title="Registered" secret={made.secret} onClose={() => go(["deliveries", "webhooks", made.number])}>Requests are signed with this secret, as Standard Webhooks describes. It is shown only now.</OnceShown>}
    </Card>
  );
}

export function Webhook({ number: which }) {
  const path = `/v1/webhooks/${encodeURIComponent(which)}`;
  const found = useLoaded((signal) => get(path, { signal }), [which], { every: 2000 });
  const sent = useLoaded((signal) => get(`${path}/deliveries?limit=50`, { signal }), [which], { every: 2000 });
  const [isAsking, setAsking] = useState(false);
  const [secret, setSecret] = useState(null);
  const change = useAction(async (what, body) => {
    await ask("POST", `${path}/${what}`, { body });
    found.again();
  });
  const test = useAction(async () => {
    const result = await ask("POST", `${path}/test`);
    toast(result.delivered ? `The test was delivered in ${result.milliseconds} ms.` : `The test was not delivered: ${cause(result.error) ?? `status ${result.status}`}.`, result.delivered ? "good" : "bad");
  });
  const rotate = useAction(async () => setSecret((await post(`${path}/rotate`, {})).secret));
  const remove = useAction(async () => {
    await ask("DELETE", path);
    toast("The webhook is deleted.");
    go(["deliveries", "webhooks"]);
  });
  return (
    <Loaded from={found}>
      {(own) => (
        <>
          <Card title={<Text>{own.url}</Text>} actions={<Badge kind={KINDS[own.state]}>{own.state}</Badge>}>
            {own.reason && <p class="note bad"><Text>{`Disabled: ${own.reason}`}</Text></p>}
            <Facts>
              <Fact name="Matches of" kind="plain"><MailboxLink own={own} /></Fact>
              <Fact name="Handled up to event" kind="plain">{number(Number(own.cursor.split(":").pop()))}</Fact>
              <Fact name="Failed attempts" kind={own.failed_attempts ? "plain bad" : "plain"}>{number(own.failed_attempts)}</Fact>
              <Fact name="Next attempt" kind="plain">{own.next_attempt && own.failed_attempts ? distance(own.next_attempt) : "–"}</Fact>
              <Fact name="Failing since" kind="plain">{moment(own.failing_since)}</Fact>
              <Fact name="Last answer" kind="plain"><Text>{own.last_status ?? cause(own.last_error) ?? "–"}</Text></Fact>
            </Facts>
            <ProblemNote problem={change.problem ?? test.problem ?? rotate.problem} />
            <div class="actions start">
              {own.state === "active" ? <button type="button" onClick={() => change.run("pause")}>Pause</button> : <button type="button" class="primary" onClick={() => change.run("resume", {})}>Resume</button>}
              <button type="button" disabled={test.isBusy} onClick={() => test.run()}>Send a test</button>
              <button type="button" disabled={rotate.isBusy} onClick={() => rotate.run()}>Replace the secret</button>
              <button type="button" class="danger" onClick={() => setAsking(true)}>Delete</button>
            </div>
          </Card>
          <Letters path={path} />
          <Card title="Recent attempts">
            <Loaded from={sent}>
              {({ deliveries }) => (deliveries.length === 0 ? <p class="hint">Nothing was sent yet.</p> : (
                <Table label="Recent attempts, the newest first" rows={deliveries} columns={[
                  ["Moment", (each) => moment(each.moment), "tight"],
                  ["Event", (each) => number(each.event), "number"],
                  ["Attempt", (each) => number(each.attempt), "number"],
                  ["Answer", (each) => <><Badge kind={each.status && each.status < 300 ? "good" : "bad"}>{each.status ?? "no answer"}</Badge> {each.error && <Text>{cause(each.error)}</Text>}</>],
                  ["Milliseconds", (each) => number(each.milliseconds), "number"],
                ]} />
              ))}
            </Loaded>
          </Card>
          {isAsking && <Confirm title="Delete this webhook?" action="Delete" onClose={() => setAsking(false)} onDo={remove.run} problem={remove.problem} isBusy={remove.isBusy}><p>Nothing more is sent to <Text>{own.url}</Text>, and its dead letters are forgotten.</p></Confirm>}
          {secret && <OnceShown title="The new secret" secret={secret} onClose={() => setSecret(null)}>For a day, requests are signed with the old one and with this one. It is shown only now.</OnceShown>}
        </>
      )}
    </Loaded>
  );
}

function Letters({ path }) {
  const found = useLoaded((signal) => get(`${path}/dead-letters?limit=200`, { signal }), [path], { every: 2000 });
  const act = useAction(async (what, numbers, done) => {
    const { changed } = await post(`${path}/dead-letters/${what}`, { numbers });
    toast(`${plural(changed, "dead letter")} ${done}.`);
    found.again();
  });
  return (
    <Card title="Dead letters" actions={found.value?.letters.length > 0 && (
      <div class="actions">
        <button type="button" class="small" disabled={act.isBusy} onClick={() => act.run("send", null, "queued")}>Send all again</button>
        <button type="button" class="small danger" disabled={act.isBusy} onClick={() => act.run("delete", found.value.letters.map((own) => own.number), "deleted")}>Forget these</button>
      </div>
    )}>
      <ProblemNote problem={act.problem} />
      <Loaded from={found}>
        {({ letters }) => (letters.length === 0 ? <p class="hint">None. An event becomes a dead letter when all attempts to send it have failed.</p> : (
          <Table label="Dead letters, the oldest first" rows={letters} columns={[
            ["Event", (own) => number(own.event), "number"],
            ["Given up", (own) => moment(own.died), "tight"],
            ["Attempts", (own) => number(own.attempts), "number"],
            ["Last answer", (own) => <Text>{cause(own.last_error) ?? own.last_status ?? "–"}</Text>],
            ["State", (own) => <Badge kind={own.state === "queued" ? "warn" : "bad"}>{own.state}</Badge>, "tight"],
            ["", (own) => <button type="button" class="small" disabled={act.isBusy || own.state === "queued"} aria-label={`Send event ${number(own.event)} again`} onClick={() => act.run("send", [own.number], "queued")}>Send again</button>, "buttons"],
          ]} />
        ))}
      </Loaded>
    </Card>
  );
}
