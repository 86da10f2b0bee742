// What was delivered: mailboxes, webhooks with their dead letters, result feeds, digests.
import { linkTo, useTitle } from "./hooks.js";
import { Digests } from "./digests.jsx";
import { Feeds } from "./feeds.jsx";
import { Mailbox } from "./mailbox.jsx";
import { Webhook, Webhooks } from "./webhooks.jsx";
import { Page, Tabs } from "./ui.jsx";

const TABS = [["mailbox", "Mailbox"], ["webhooks", "Webhooks"], ["feeds", "Result feeds"], ["digests", "Digests"]];

export function Deliveries({ route }) {
  useTitle("Deliveries");
  const tab = route.parts[1] ?? "mailbox";
  const number = route.parts[2];
  return (
    <Page title="Deliveries">
      <Tabs tabs={TABS} chosen={tab} link={(name) => linkTo(["deliveries", name])} />
      {tab === "mailbox" && <Mailbox query={route.query} />}
      {tab === "webhooks" && (number ? <Webhook number={number} /> : <Webhooks query={route.query} />)}
      {tab === "feeds" && <Feeds query={route.query} />}
      {tab === "digests" && <Digests query={route.query} />}
    </Page>
  );
}
