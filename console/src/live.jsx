// Events and whom they match, as they pass.
import { useEffect, useRef, useState } from "preact/hooks";
import { messages, query, session } from "./api.js";
import { clock, number, plural, spell } from "./format.js";
import { linkTo, note, useDelayed, useTitle } from "./hooks.js";
import { useStore } from "./store.js";
import { Badge, Code, Empty, Fact, Facts, Page, ProblemNote, Text } from "./ui.jsx";

const SHOWN = 2; // subscriptions of an event
const MOST = 200; // events that stay on the screen
const SHARES = [[1, "All events"], [0.1, "1 of 10"], [0.01, "1 of 100"], [0.001, "1 of 1,000"]];
const NOTHING = { events: [], passed: 0, chosen: 0 };

export function Live({ route }) {
  useTitle("Live");
  const { phase, generation } = useStore(session);
  const [expression, setExpression] = useState(route.query.expression ?? "");
  const [share, setShare] = useState(Number(route.query.share) || 1);
  const [isPaused, setPaused] = useState(false);
  const [found, setFound] = useState(NOTHING);
  const [problem, setProblem] = useState(null);
  const [isOpen, setOpen] = useState(false);
  const paused = useRef(false);
  paused.current = isPaused;
  const wanted = useDelayed(expression.trim(), 400);
  useEffect(() => note(["live"], { expression: wanted, share: share === 1 ? "" : share }), [wanted, share]);
  useEffect(() => {
    if (phase !== "ready") return undefined;
    const stop = new AbortController();
    let timer = null;
    const follow = async () => {
      setProblem(null);
      try {
        for await (const { data } of messages(`/v1/events/tap${query({ expression: wanted, share })}`, stop.signal)) {
          setOpen(true);
          if (data === null) continue;
          if (paused.current) {
            setFound((own) => ({ ...own, passed: own.passed + data.passed, chosen: own.chosen + data.chosen }));
          } else {
            setFound((own) => ({ events: [...data.events.reverse(), ...own.events].slice(0, MOST), passed: own.passed + data.passed, chosen: own.chosen + data.chosen }));
          }
        }
      } catch (error) {
        if (!stop.signal.aborted && error.status) setProblem(error);
      }
      if (stop.signal.aborted) return;
      setOpen(false);
      timer = setTimeout(follow, 2000);
    };
    setFound(NOTHING);
    setOpen(false);
    follow();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [wanted, share, phase, generation]);
  return (
    <Page title="Live" fills actions={(
      <>
        <button type="button" onClick={() => setFound(NOTHING)}>Clear</button>
        <button type="button" class={isPaused ? "primary" : ""} aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>{isPaused ? "Go on" : "Pause"}</button>
      </>
    )}>
      <div class="filters two">
        <input class="code" aria-label="Only events that satisfy this expression" placeholder="Only events that satisfy, for example: age >= 18" spellcheck={false} value={expression} onInput={(event) => setExpression(event.target.value)} />
        <select aria-label="Sample" value={share} onChange={(event) => setShare(Number(event.target.value))}>
          {SHARES.map(([own, label]) => <option key={own} value={own}>{label}</option>)}
        </select>
      </div>
      <ProblemNote problem={problem} />
      <Facts>
        <Fact name="Connection" kind="plain"><Badge kind={isOpen ? "good" : "warn"}>{isOpen ? (isPaused ? "Paused" : "Open") : "Closed"}</Badge></Fact>
        <Fact name="Events passed">{number(found.passed)}</Fact>
        <Fact name="Chosen">{number(found.chosen)}</Fact>
      </Facts>
      {found.events.length === 0
        ? <Empty title={isPaused ? "Paused" : "Waiting for events"}><p>{problem ? "Correct the expression first." : "Events appear here as they are published. What was published before is in the mailboxes and in the playground."}</p></Empty>
        : (
          <ol class="tap" aria-label="Events, the newest first" tabIndex={0}>
            {found.events.map((own) => (
              <li key={own.event}>
                <a class="tap-head" href={linkTo(["playground"], own.content === null ? { number: own.event } : { event: spell(own.content) })} aria-label={`Open event ${number(own.event)} in the playground`}>
                  <strong>{number(own.event)}</strong> <small>{clock(own.moment)}</small>
                </a>
                <Code class="one-line">{own.content === null ? "the text is not archived" : spell(own.content)}</Code>
                <span class="tap-matches">
                  <Badge kind={own.matches ? "good" : ""}>{plural(own.matches, "match", "matches")}</Badge>
                  {own.subscriptions.slice(0, SHOWN).map((id) => <a key={id} class="tag" href={linkTo(["edit", id])}><Text>{id}</Text></a>)}
                  {own.matches > SHOWN && <small>+{number(own.matches - SHOWN)}</small>}
                </span>
              </li>
            ))}
          </ol>
        )}
    </Page>
  );
}
