// Mailboxes: each subscription has one, and a channel is one that several subscriptions share.
import { useId } from "preact/hooks";
import { get, may, pathOf, query, withTicket } from "./api.js";
import { visible } from "./format.js";
import { linkTo, useDelayed, useLoaded } from "./hooks.js";
import { Field, Text } from "./ui.jsx";

export const NO_BOX = { kind: "subscription", name: "" };

// The mailbox that an address of the page names; null if it names none.
export function boxOf(query) {
  if (query.channel) return { kind: "channel", name: query.channel };
  return query.subscription ? { kind: "subscription", name: query.subscription } : null;
}

// The fields by which a request, or an address of the page, names it.
export const askFor = (box) => (box ? { [box.kind]: box.name.trim() } : {});
export const pathOfBox = (box) => `/v1/${box.kind}s/${pathOf(box.name)}`;
export const headersOf = (box) => (box.kind === "subscription" ? withTicket(box.name.trim()) : {});

const MOST_OFFERED = 20;

// The names that contain what is typed. A list of the browser shows them as they are, so
// those with characters that it would hide are left out.
function useNames({ kind, name }) {
  const typed = useDelayed(name.trim(), 250);
  const found = useLoaded(async (signal) => {
    if (!may("read")) return [];
    if (kind === "channel") return (await get("/v1/channels?limit=1000", { signal })).channels.map((own) => own.name);
    return (await get(`/v1/subscriptions${query({ text: typed, limit: MOST_OFFERED })}`, { signal })).subscriptions.map((own) => own.id);
  }, [kind, typed]);
  return (found.value ?? []).filter((own) => own !== name && visible(own) === own);
}

// The name of a mailbox, completed from those that exist.
export function NameInput({ box, onChange, ...more }) {
  const list = useId();
  const names = useNames(box);
  return (
    <>
      <input {...more} list={list} autocomplete="off" spellcheck={false} value={box.name} onInput={(event) => onChange({ ...box, name: event.target.value })} />
      <datalist id={list}>{names.map((own) => <option key={own} value={own} />)}</datalist>
    </>
  );
}

export function BoxFields({ box, onChange }) {
  return (
    <>
      <Field label="Matches of">
        {(id) => (
          <select id={id} value={box.kind} onChange={(event) => onChange({ ...box, kind: event.target.value })}>
            <option value="subscription">a subscription</option>
            <option value="channel">a channel</option>
          </select>
        )}
      </Field>
      <Field label={box.kind === "channel" ? "Channel" : "Subscription"}>{(id) => <NameInput id={id} placeholder={box.kind === "channel" ? "Its name" : "Its id"} box={box} onChange={onChange} required />}</Field>
    </>
  );
}

// The subscription or the channel whose matches are sent.
export function MailboxLink({ own }) {
  const [kind, which] = own.mailbox.split("/");
  const name = own.mailbox_name;
  if (!name) return <span>{kind} number {which}</span>;
  if (kind === "subscription") return <a href={linkTo(["edit", name])}><Text>{name}</Text></a>;
  return <span>the channel <a href={linkTo(["deliveries", "mailbox"], { channel: name })}><Text>{name}</Text></a></span>;
}
