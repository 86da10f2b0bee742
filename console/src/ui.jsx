// The pieces that all screens are made of.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useNarrow } from "./hooks.js";
import { createStore, useStore } from "./store.js";
import { ODD, nameOdd, number, visible } from "./format.js";

// A stored text. It is shown as it is, except that characters which are invisible, or which change
// how others are shown, appear by their names.
export function Text({ children, lines = false }) {
  return <bdi>{pieces(String(children ?? ""), lines)}</bdi>;
}

export function pieces(text, lines = false) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(ODD)) {
    if (lines && (found[0] === "\n" || found[0] === "\t")) continue;
    if (found.index > from) parts.push(text.slice(from, found.index));
    parts.push(<span class="odd" key={found.index}>{nameOdd(found[0])}</span>);
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

export function Code({ children, lines, class: own = "" }) {
  return <code class={own}><Text lines={lines}>{children}</Text></code>;
}

// ── truth ──────────────────────────────────────────────────────────────────────────────────

const MARKS = { true: "✓", false: "✗", undefined: "?" };

export function Truth({ value, short = false }) {
  return (
    <span class={`truth ${value}`}>
      <span aria-hidden="true">{MARKS[value]}</span>
      <span class={short ? "hidden" : ""}>{value}</span>
    </span>
  );
}

export function Badge({ kind = "", children }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

// ── problems, notes, empty states ──────────────────────────────────────────────────────────

export function ProblemNote({ problem, onClose }) {
  if (!problem || problem.code === "no-connection") return null; // the frame shows a lost connection
  return (
    <div class="note bad" role="alert">
      <p><strong><Text>{sentence(problem.message)}</Text></strong></p>
      {problem.details?.picture && <pre class="picture"><Text lines>{problem.details.picture}</Text></pre>}
      {problem.hint && <p><Text>{sentence(problem.hint)}</Text></p>}
      {onClose && <button type="button" class="quiet small" onClick={onClose}>Dismiss</button>}
    </div>
  );
}

// A message of the server, as a sentence.
export function sentence(text) {
  const shown = String(text);
  const begun = shown.charAt(0).toUpperCase() + shown.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

export function Empty({ title, children }) {
  return (
    <div class="empty">
      <svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="9" /><path d="M8 12h8" /></svg>
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

export function Loading({ what = "Loading" }) {
  return <p class="loading" role="status">{what}…</p>;
}

// Shows what was loaded, what went wrong, or that it is still loading.
export function Loaded({ from, children, what }) {
  if (from.problem?.status === 503 && !from.value) return <p class="note warn" role="status"><Text>{sentence(from.problem.message)}</Text> This is tried again until the server can answer.</p>;
  if (from.problem && !from.value) return <ProblemNote problem={from.problem} />;
  if (from.value === null) return <Loading what={what} />;
  return children(from.value);
}

// ── pages ──────────────────────────────────────────────────────────────────────────────────

export function Page({ title, actions, children, fills = false }) {
  return (
    <main class={`page ${fills ? "fills" : ""}`} id="main" tabIndex={-1}>
      <header class="page-head">
        <h1>{title}</h1>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </main>
  );
}

export function Card({ title, children, actions, class: own = "" }) {
  return (
    <section class={`card ${own}`} aria-label={typeof title === "string" ? title : undefined}>
      {title && <header class="card-head"><h2>{title}</h2>{actions}</header>}
      {children}
    </section>
  );
}

export function Field({ label, hint, children, class: own = "" }) {
  const id = useId();
  const child = typeof children === "function" ? children(id) : children;
  return (
    <div class={`field ${own}`}>
      <label for={id}>{label}</label>
      {child}
      {hint && <p class="hint">{hint}</p>}
    </div>
  );
}

export function Facts({ children }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children, kind = "" }) {
  return <div class={kind}><dt>{name}</dt><dd>{children}</dd></div>;
}

export function Tabs({ tabs, chosen, link }) {
  return (
    <nav class="tabs" aria-label="Parts of this screen">
      {tabs.map(([name, label]) => (
        <a key={name} href={link(name)} aria-current={name === chosen ? "page" : undefined}>{label}</a>
      ))}
    </nav>
  );
}

// ── tables and lists ───────────────────────────────────────────────────────────────────────

// A table. Each column is [name, what it shows of a row, a class]; one without a name has the buttons.
// On a narrow page, each row is a card that names its columns: the roles stay when the boxes change.
export function Table({ label, columns, rows, keyOf = (own) => own.number }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table role="table">
        <caption class="hidden">{label}</caption>
        <thead role="rowgroup">
          <tr role="row">{columns.map(([name, , kind]) => <th key={name} scope="col" role="columnheader" class={kind}>{name || <span class="hidden">Actions</span>}</th>)}</tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((own) => (
            <tr role="row" key={keyOf(own)}>
              {columns.map(([name, show, kind]) => <td key={name} role="cell" class={kind} data-name={name}><div>{show(own)}</div></td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// A list that scrolls, and says how many of its items are below.
export function ScrollList({ label, children }) {
  const list = useRef(null);
  const [below, setBelow] = useState(0);
  const measure = () => {
    const own = list.current;
    if (!own) return; // the screen has changed before the observer was told
    const end = own.getBoundingClientRect().bottom - 4;
    setBelow([...own.children].filter((item) => item.getBoundingClientRect().top >= end).length);
  };
  useLayoutEffect(measure, [children]);
  useEffect(() => {
    const watcher = new ResizeObserver(measure);
    watcher.observe(list.current);
    return () => watcher.disconnect();
  }, []);
  return (
    <div class={`choices-box ${below ? "has-more" : ""}`}>
      <ul class="choices" ref={list} aria-label={label} onScroll={measure}>{children}</ul>
      {below > 0 && <p class="below"><span aria-hidden="true">↓</span> {number(below)} more below</p>}
    </div>
  );
}

// ── charts ─────────────────────────────────────────────────────────────────────────────────

export function Sparkline({ counts, width = 96, height = 24, label }) {
  const most = Math.max(1, ...counts);
  const step = width / counts.length;
  const total = counts.reduce((sum, own) => sum + own, 0);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label ?? `${number(total)} matches`}>
      <path class="base" d={`M0 ${height - 0.5}H${width}`} />
      {counts.map((count, at) => count > 0 && (
        <rect key={at} x={at * step} width={Math.max(1, step - 1)} y={height - Math.max(2, (count / most) * height)} height={Math.max(2, (count / most) * height)} />
      ))}
    </svg>
  );
}

export function Bars({ rows, label }) {
  const most = Math.max(1, ...rows.map((row) => row.value));
  const isNarrow = useNarrow();
  const width = isNarrow ? 300 : 560;
  const mostNamed = isNarrow ? 7 : 14;
  const height = 120;
  const step = width / Math.max(1, rows.length);
  const thick = Math.min(40, step * 0.76);
  return (
    <figure class="bars">
      <svg viewBox={`0 0 ${width} ${height + 20}`} role="img" aria-label={label}>
        <path class="base" d={`M0 ${height}H${width}`} />
        {rows.map((row, at) => {
          const size = row.value ? Math.max(2, (row.value / most) * (height - 18)) : 0;
          return (
            <g key={row.name}>
              <rect x={at * step + step / 2 - thick / 2} width={thick} y={height - size} height={size}><title>{`${row.name}: ${number(row.value)}`}</title></rect>
              {rows.length <= mostNamed && <text class="value" x={at * step + step / 2} y={height - size - 5}>{number(row.value)}</text>}
              {(rows.length <= mostNamed || at % Math.ceil(rows.length / 7) === 0) && <text x={at * step + step / 2} y={height + 15}>{row.name}</text>}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

// A line over time; `values` are the newest last. Its scale is beside it.
export function Line({ values, label, width = 260, height = 64 }) {
  const most = Math.max(1e-9, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / most) * (height - 6)).toFixed(1)}`);
  return (
    <svg class="line" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="base" d={`M0 ${height - 0.5}H${width}`} />
      {values.length > 1 && <polyline points={points.join(" ")} />}
    </svg>
  );
}

// ── buttons that say what happened ─────────────────────────────────────────────────────────

export function CopyButton({ text, children = "Copy" }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch {
      toast("The browser does not allow copying; select the text instead.", "bad");
    }
  };
  return <button type="button" class="small" onClick={copy}>{isCopied ? "Copied" : children}</button>;
}

// ── dialogs ────────────────────────────────────────────────────────────────────────────────

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before?.focus?.();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={cancel} onClose={onClose}>
      <header class="card-head"><h2 id={id}>{title}</h2><button type="button" class="quiet" aria-label="Close" onClick={onClose}>✕</button></header>
      {children}
    </dialog>
  );
}

// A secret that the server shows once.
export function OnceShown({ title, secret, children, onClose }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <p class="secret"><Code>{secret}</Code></p>
      <div class="actions"><CopyButton text={secret} /><button type="button" class="primary" onClick={onClose}>I have it</button></div>
    </Dialog>
  );
}

export function Confirm({ title, action, onClose, onDo, children, problem, isBusy }) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <ProblemNote problem={problem} />
      <div class="actions">
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="button" class="danger" disabled={isBusy} onClick={onDo}>{action}</button>
      </div>
    </Dialog>
  );
}

// ── short messages ─────────────────────────────────────────────────────────────────────────

const toasts = createStore({ shown: [] });
let lastToast = 0;

export function toast(text, kind = "good") {
  const id = ++lastToast;
  toasts.set({ shown: [...toasts.get().shown, { id, text, kind }].slice(-3) });
  setTimeout(() => toasts.set({ shown: toasts.get().shown.filter((own) => own.id !== id) }), 6000);
}

export function Toasts() {
  const { shown } = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((own) => <p key={own.id} class={own.kind}>{visible(own.text)}</p>)}
    </div>
  );
}
