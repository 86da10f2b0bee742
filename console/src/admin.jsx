// Keys, what administrators did, and the settings.
import { useState } from "preact/hooks";
import { ask, get, post, refresh, session } from "./api.js";
import { moment, spell } from "./format.js";
import { linkTo, useAction, useLoaded, useTitle } from "./hooks.js";
import { useStore } from "./store.js";
import { Badge, Card, Code, Confirm, Empty, Field, Loaded, OnceShown, Page, ProblemNote, Table, Tabs, Text, toast } from "./ui.jsx";

const TABS = [["keys", "Keys"], ["audit", "Log"], ["settings", "Settings"]];
const ROLES = [["publish", "send events"], ["subscribe", "make subscriptions"], ["read", "read what belongs to its owner"], ["admin", "everything, for every owner"]];
const ENDS = [["", "never"], ["7", "in a week"], ["30", "in 30 days"], ["365", "in a year"]];

export function Admin({ route }) {
  useTitle("Keys and settings");
  const tab = route.parts[1] ?? "keys";
  return (
    <Page title="Keys and settings">
      <Tabs tabs={TABS} chosen={tab} link={(name) => linkTo(["admin", name])} />
      {tab === "keys" && <Keys />}
      {tab === "audit" && <Log />}
      {tab === "settings" && <Settings />}
    </Page>
  );
}

function stateOf(key) {
  if (key.revoked) return ["bad", "revoked"];
  if (key.expires && new Date(key.expires).getTime() <= Date.now()) return ["bad", "expired"];
  return ["good", "valid"];
}

function KeyState({ own }) {
  const [kind, label] = stateOf(own);
  return <Badge kind={kind}>{label}</Badge>;
}

function Keys() {
  const found = useLoaded((signal) => get("/v1/keys?limit=1000", { signal }), []);
  const [asked, setAsked] = useState(null);
  const { who } = useStore(session);
  const revoke = useAction(async () => {
    await ask("DELETE", `/v1/keys/${encodeURIComponent(asked.id)}`);
    toast(`The key of ${asked.owner} is revoked.`);
    setAsked(null);
    found.again();
  });
  return (
    <>
      <Card title="Keys">
        <Loaded from={found}>
          {({ keys }) => (keys.length === 0 ? <Empty title="There are no keys"><p>As long as there are none, everybody on this machine may do everything. Make the first one with the role admin, and keep it: from then on the console asks for it.</p></Empty> : (
            <Table label="Keys" rows={keys} keyOf={(own) => own.id} columns={[
              ["Id", (own) => <><Code>{own.id}</Code>{own.id === who?.key_id && <small> yours</small>}</>, "tight first"],
              ["Owner", (own) => <Text>{own.owner}</Text>],
              ["Roles", (own) => own.roles.join(", "), "words"],
              ["Made", (own) => moment(own.created), "tight"],
              ["Ends", (own) => (own.expires ? moment(own.expires) : "never"), "tight"],
              ["State", (own) => <KeyState own={own} />, "tight"],
              ["", (own) => stateOf(own)[1] === "valid" && <button type="button" class="small danger" aria-label={`Revoke key ${own.id}`} onClick={() => setAsked(own)}>Revoke</button>, "buttons"],
            ]} />
          ))}
        </Loaded>
      </Card>
      <NewKey again={found.again} isFirst={found.value?.keys.length === 0} />
      {asked && <Confirm title="Revoke this key?" action="Revoke" onClose={() => setAsked(null)} onDo={revoke.run} problem={revoke.problem} isBusy={revoke.isBusy}><p>The key <Code>{asked.id}</Code> of <Text>{asked.owner}</Text> stops working at once{asked.id === who?.key_id ? ", and you are signed out" : ""}.</p></Confirm>}
    </>
  );
}

function NewKey({ again, isFirst }) {
  const [owner, setOwner] = useState("");
  const [roles, setRoles] = useState(new Set(["subscribe", "read"]));
  const [days, setDays] = useState("");
  const [made, setMade] = useState(null);
  const toggle = (role) => () => setRoles((own) => {
    const next = new Set(own);
    if (!next.delete(role)) next.add(role);
    return next;
  });
  const make = useAction(async () => {
    const expires = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
    setMade(await post("/v1/keys", { owner: owner.trim(), roles: [...roles], expires }));
    setOwner("");
  });
  const close = () => {
    setMade(null);
    // The first key ends the time without keys: the page must sign in.
    if (session.get().who?.state === "open") refresh();
    else again();
  };
  const submit = (event) => {
    event.preventDefault();
    make.run();
  };
  return (
    <Card title="New key">
      <form class="stack" onSubmit={submit}>
        {isFirst && !roles.has("admin") && <p class="note warn">The first key should have the role admin. Otherwise only <code>tamis keys create</code> on the server's machine can make more.</p>}
        <div class="form-row">
          <Field label="Owner">{(id) => <input id={id} value={owner} onInput={(event) => setOwner(event.target.value)} required />}</Field>
          <Field label="Ends">{(id) => <select id={id} value={days} onChange={(event) => setDays(event.target.value)}>{ENDS.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</select>}</Field>
        </div>
        <fieldset class="roles">
          <legend class="label">Roles</legend>
          {ROLES.map(([role, text]) => <label class="check" key={role}><input type="checkbox" checked={roles.has(role)} onChange={toggle(role)} /><span><strong>{role}</strong> <small>{text}</small></span></label>)}
        </fieldset>
        <ProblemNote problem={make.problem} />
        <div class="actions start"><button type="submit" class="primary" disabled={make.isBusy || !owner.trim() || !roles.size}>Make the key</button></div>
      </form>
      {made && <OnceShown title="The key" secret={made.key} onClose={close}>Give it to <Text>{made.owner}</Text>. It is shown only now.</OnceShown>}
    </Card>
  );
}

function Log() {
  const found = useLoaded((signal) => get("/v1/audit?limit=200", { signal }), []);
  return (
    <Card title="What administrators did">
      <Loaded from={found}>
        {({ entries }) => (entries.length === 0 ? <p class="hint">Nothing yet.</p> : (
          <Table label="The log, the newest entries first" rows={entries} columns={[
            ["Moment", (own) => moment(own.moment), "tight"],
            ["Key", (own) => <Code>{own.key_id}</Code>, "tight"],
            ["Action", (own) => <Text>{own.action}</Text>, "tight"],
            ["On", (own) => <Text>{own.target}</Text>],
            ["Detail", (own) => <Code>{spell(own.detail)}</Code>],
          ]} />
        ))}
      </Loaded>
    </Card>
  );
}

function Settings() {
  const found = useLoaded((signal) => get("/v1/settings", { signal }), []);
  return (
    <Card title="Settings">
      <p class="hint">What the server runs with. They come from its file, its environment and its options, and change with a restart. Secrets are hidden.</p>
      <Loaded from={found}>
        {({ settings }) => (
          <Table label="Settings" rows={settings} keyOf={(own) => own.name} columns={[
            ["Name", (own) => <Code>{own.name}</Code>, "tight first"],
            ["Value", (own) => <Code>{own.value}</Code>],
            ["What it is", (own) => own.text],
          ]} />
        )}
      </Loaded>
    </Card>
  );
}
