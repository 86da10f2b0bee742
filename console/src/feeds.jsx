// Result feeds: addresses at which feed readers find the newest matches. The feeds of others that the
// server reads are sources.
import { useState } from "preact/hooks";
import { ask, get, post, query as toQuery } from "./api.js";
import { BoxFields, MailboxLink, NO_BOX, askFor, boxOf, headersOf } from "./boxes.jsx";
import { moment, visible } from "./format.js";
import { useAction, useLoaded } from "./hooks.js";
import { Badge, Card, Confirm, Empty, Loaded, OnceShown, ProblemNote, Table, Text, toast } from "./ui.jsx";

export function Feeds({ query }) {
  const start = boxOf(query);
  const found = useLoaded((signal) => get(`/v1/feeds${toQuery({ ...askFor(start), limit: 1000 })}`, { signal, headers: start ? headersOf(start) : {} }), [start?.kind, start?.name]);
  const [asked, setAsked] = useState(null);
  const [box, setBox] = useState(start ?? NO_BOX);
  const [made, setMade] = useState(null);
  const make = useAction(async () => {
    setMade(await post("/v1/feeds", askFor(box), { headers: headersOf(box) }));
    found.again();
  });
  const revoke = useAction(async () => {
    await ask("DELETE", `/v1/feeds/${asked.number}`);
    toast("The address of the feed is no longer valid.");
    setAsked(null);
    found.again();
  });
  const submit = (event) => {
    event.preventDefault();
    make.run();
  };
  return (
    <>
      <Card title={start ? <>Result feeds of <Text>{start.name}</Text></> : "Result feeds"}>
        <Loaded from={found}>
          {({ feeds }) => (feeds.length === 0 ? <Empty title="There are no result feeds"><p>A result feed shows the newest matches of a subscription in any feed reader. Its address is a secret: whoever has it may read it. Make the first one below.</p></Empty> : (
            <Table label="Result feeds" rows={feeds} columns={[
              ["Title", (own) => <Text>{own.title}</Text>, "first"],
              ["Matches of", (own) => <MailboxLink own={own} />],
              ["Owner", (own) => <Text>{own.owner || "–"}</Text>],
              ["Made", (own) => moment(own.created), "tight"],
              ["State", (own) => <Badge kind={own.revoked ? "bad" : "good"}>{own.revoked ? "revoked" : "active"}</Badge>, "tight"],
              ["", (own) => !own.revoked && <button type="button" class="small danger" aria-label={`Revoke ${visible(own.title)}`} onClick={() => setAsked(own)}>Revoke</button>, "buttons"],
            ]} />
          ))}
        </Loaded>
      </Card>
      <Card title="New result feed">
        <form class="form-row" onSubmit={submit}>
          <BoxFields box={box} onChange={setBox} />
          <button type="submit" class="primary" disabled={make.isBusy}>Make the feed</button>
        </form>
        <ProblemNote problem={make.problem} />
      </Card>
      {made && <OnceShown title="The address of the feed" secret={made.atom} onClose={() => setMade(null)}>Give this address to a feed reader. It is shown only now. With .json at its end it is a JSON feed.</OnceShown>}
      {asked && <Confirm title="Revoke this feed?" action="Revoke" onClose={() => setAsked(null)} onDo={revoke.run} problem={revoke.problem} isBusy={revoke.isBusy}><p>Its address stops working at once.</p></Confirm>}
    </>
  );
}
