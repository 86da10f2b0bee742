// An expression as a tree, with the truth of each part and the values that decided.
import { spell } from "./format.js";
import { Code, Text, Truth } from "./ui.jsx";

// The word that joins the operands, as the server printed it: AND, OR, NOT, xor, …
function connective(step) {
  const [first, second] = step.operands;
  const at = step.expression.indexOf(first.expression);
  if (at < 0) return null;
  const before = step.expression.slice(0, at).match(/^\s*([A-Za-z_]+)/);
  if (before || !second) return before?.[1] ?? null;
  const rest = step.expression.slice(at + first.expression.length);
  return rest.match(/^[\s)]*([A-Za-z_]+)/)?.[1] ?? null;
}

// Whether an operand is a reason for the truth of its parent.
function decides(step, parent, word) {
  if (!parent) return true;
  return step.truth === parent.truth || !["AND", "OR"].includes(word);
}

function Node({ step, parent, word, level }) {
  const own = step.operands?.length ? connective(step) : null;
  return (
    <li class={decides(step, parent, word) ? "" : "aside"}>
      <div class="step">
        <Truth value={step.truth} short />
        {step.operands?.length > 0 && <span class="joined"><strong>{own ?? "…"}</strong>{level > 0 && <Code class="faint">{step.expression}</Code>}</span>}
        {!step.operands?.length && (
          <span class="leaf">
            <Code>{step.expression}</Code>
            {Object.entries(step.values ?? {}).map(([name, value]) => (
              <span class="decided" key={name}><Text>{name}</Text> {value === null ? <em>is missing</em> : <>is <Code>{spell(value)}</Code></>}</span>
            ))}
          </span>
        )}
      </div>
      {step.notes?.map((text) => <p class="hint" key={text}><Text>{text}</Text></p>)}
      {step.operands?.length > 0 && (
        <ul>{step.operands.map((operand, at) => <Node key={at} step={operand} parent={step} word={own} level={level + 1} />)}</ul>
      )}
    </li>
  );
}

export function Explanation({ found }) {
  return (
    <div class="explanation">
      <p class="verdict"><Truth value={found.truth} /> <Text>{found.sentence.replace(/^(true|false|undefined): /, "")}</Text></p>
      {!found.valid && <p class="note warn">The subscription is not valid now, so it matches nothing.</p>}
      {found.changes.length > 0 && (
        <div class="changes">
          <h3>Smallest change that would make it match{found.changes.length > 1 && `: all ${found.changes.length} of these`}</h3>
          <ul>{found.changes.map((text) => <li key={text}><Code>{text}</Code></li>)}</ul>
        </div>
      )}
      <ul class="tree" aria-label="Expression with the truth of each part"><Node step={found.tree} parent={null} level={0} /></ul>
    </div>
  );
}
