// The frame of the console: who is signed in, where to go, and how the connection is.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { refresh, session, signOut } from "./api.js";
import { useRoute } from "./hooks.js";
import { createStore, useStore } from "./store.js";
import { Page, Text, Toasts, toast } from "./ui.jsx";
import { SignIn } from "./signin.jsx";
import { Subscriptions } from "./subscriptions.jsx";
import { Playground } from "./playground.jsx";
import { EditSubscription, NewSubscription } from "./editor.jsx";
import { Import } from "./importing.jsx";
import { Live } from "./live.jsx";
import { Search } from "./search.jsx";
import { Sources } from "./sources.jsx";
import { Deliveries } from "./deliveries.jsx";
import { Health } from "./health.jsx";
import { Admin } from "./admin.jsx";

// Name, label, component, icon, and who sees it in the list.
const SCREENS = [
  ["subscriptions", "Subscriptions", Subscriptions, "M4 6h16M4 12h16M4 18h10", () => true],
  ["search", "Search", Search, "M10 4a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15 15l6 6", (who) => who.reads_archive],
  ["playground", "Playground", Playground, "M9 3v6l-5 9a2 2 0 0 0 2 3h12a2 2 0 0 0 2-3l-5-9V3M8 3h8", () => true],
  ["live", "Live", Live, "M3 12h4l3-8 4 16 3-8h4", (who) => who.reads_archive],
  ["deliveries", "Deliveries", Deliveries, "M3 6h18v12H3zM3 7l9 7 9-7", () => true],
  ["sources", "Sources", Sources, "M5 5a14 14 0 0 1 14 14M5 11a8 8 0 0 1 8 8M5 18a1 1 0 1 0 2 0 1 1 0 0 0-2 0", (who) => who.roles.includes("admin")],
  ["health", "Health", Health, "M4 20V10M10 20V4M16 20v-8M22 20H2", (who) => who.roles.includes("admin")],
  ["admin", "Keys and settings", Admin, "M15 9a4 4 0 1 0-4 4l1 1v2h2v2h2v2h4v-4l-5-5", (who) => who.roles.includes("admin")],
];

// ── light and dark ─────────────────────────────────────────────────────────────────────────

const THEMES = ["auto", "light", "dark"];
const theme = createStore({ name: localStorage.getItem("tamis-theme") ?? "auto" });

function applyTheme() {
  const { name } = theme.get();
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

applyTheme();
theme.watch(applyTheme);

function ThemeButton() {
  const { name } = useStore(theme);
  const change = () => {
    const next = THEMES[(THEMES.indexOf(name) + 1) % THEMES.length];
    localStorage.setItem("tamis-theme", next);
    theme.set({ name: next });
  };
  return <button type="button" class="quiet small" onClick={change}>Theme: {name}</button>;
}

// ── the connection ─────────────────────────────────────────────────────────────────────────

function Banner() {
  const { phase, reason, retryAt } = useStore(session);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (phase !== "lost") return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [phase]);
  useEffect(() => {
    if (phase !== "ready") return;
    if (reason === "restarted") toast("The server was restarted. What you see is up to date again.");
    if (reason === "back") toast("The connection is back. What you see is up to date again.");
    if (reason === "updated") toast("The server has another version now. Reload the page to use its console.", "warn");
  }, [phase, reason]);
  if (phase !== "lost") return null;
  const seconds = Math.max(0, Math.ceil((retryAt - now) / 1000));
  return (
    <div class="banner" role="alert">
      <strong>{reason ? <Text>{`The server cannot answer: ${reason}.`}</Text> : "There is no connection to the server."}</strong>
      {" "}
      <span>{seconds ? `Trying again in ${seconds} s.` : "Trying again…"} Nothing you typed is lost.</span>
      <button type="button" class="small" onClick={refresh}>Try now</button>
    </div>
  );
}

// ── the frame ──────────────────────────────────────────────────────────────────────────────

function Who() {
  const { who } = useStore(session);
  if (!who) return null;
  if (who.state === "open") {
    return (
      <div class="who">
        <p><strong>No keys</strong></p>
        <p>Everybody on this machine may do everything. The first key ends that.</p>
      </div>
    );
  }
  return (
    <div class="who">
      <p><strong><Text>{who.owner || "–"}</Text></strong></p>
      <p>{who.roles.join(", ")}</p>
      <button type="button" class="quiet small" onClick={signOut}>Sign out</button>
    </div>
  );
}

function Navigation({ chosen }) {
  const { who } = useStore(session);
  const list = useRef(null);
  useEffect(() => list.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [chosen]);
  return (
    <nav class="side" aria-label="Screens">
      <a class="brand" href="#/subscriptions"><img src="/console/icon.svg" alt="" width="24" height="24" />Tamis</a>
      <ul ref={list}>
        {SCREENS.filter(([, , , , isFor]) => isFor(who)).map(([name, label, , icon]) => (
          <li key={name}>
            <a href={`#/${name}`} aria-current={name === chosen ? "page" : undefined}>
              <svg viewBox="0 0 24 24" aria-hidden="true"><path d={icon} /></svg>
              {label}
            </a>
          </li>
        ))}
      </ul>
      <div class="side-end"><Who /><ThemeButton /></div>
    </nav>
  );
}

function NotFound() {
  return <Page title="No such screen"><p>The address names no screen of the console. <a href="#/subscriptions">Go to the subscriptions.</a></p></Page>;
}

// Screens that are reached from others.
const BELOW = { edit: EditSubscription, new: NewSubscription, import: Import };

function App() {
  const route = useRoute();
  const { phase, who } = useStore(session);
  const name = route.parts[0] ?? "subscriptions";
  useEffect(() => {
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [route.count]);
  if (phase === "starting") return <Toasts />;
  if (!who || (phase === "signed-out" && !who.key_id && !hasBeenIn)) {
    return <>{phase === "lost" && <Banner />}{who && <SignIn />}<Toasts /></>;
  }
  hasBeenIn = true;
  const Screen = SCREENS.find(([own]) => own === name)?.[2] ?? BELOW[name] ?? NotFound;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
      <Banner />
      <div class="frame">
        <Navigation chosen={Object.hasOwn(BELOW, name) ? "subscriptions" : name} />
        <Screen key={route.count} route={route} />
      </div>
      {phase === "signed-out" && <SignIn isOver />}
      <Toasts />
    </>
  );
}

let hasBeenIn = false; // then what was typed stays, below the sign-in

refresh();
render(<App />, document.getElementById("app"));
