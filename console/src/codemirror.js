// The editor of expressions. Errors and warnings come from the server; the colours from a
// tokenizer that knows words, strings and numbers, and nothing of the grammar.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, insertCompletionText, pickedCompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { visible } from "./format.js";

const TOKENS = /^(?:(?<space>\s+)|(?<string>[rR]?'(?:[^'\\]|\\.|'')*'?|[rR]?"(?:[^"\\]|\\.)*"?)|(?<quoted>`[^`]*`?)|(?<number>\d[\w.]*)|(?<word>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>[<>=!]+|[-+*/%(),.?:@]))/u;

function makeLanguage(keywords, functions) {
  const isKeyword = new Set(keywords.map((word) => word.toUpperCase()));
  const isFunction = new Set(functions.map((name) => name.toLowerCase()));
  return StreamLanguage.define({
    token(stream) {
      const found = stream.match(TOKENS);
      if (!found) {
        stream.next();
        return null;
      }
      const { space, string, quoted, number, word } = found.groups;
      if (space) return null;
      if (string) return "string";
      if (quoted) return "variableName";
      if (number) return "number";
      if (!word) return "operator";
      if (isKeyword.has(word.toUpperCase())) return "keyword";
      if (isFunction.has(word.toLowerCase()) && stream.peek() === "(") return "function";
      return "variableName";
    },
    tokenTable: { function: tags.function(tags.variableName) },
  });
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.function(tags.variableName), color: "var(--none)" },
  { tag: tags.operator, color: "var(--faint)" },
]);

const look = EditorView.theme({
  "&": { border: "1px solid #8a93a5", borderRadius: "8px", background: "var(--card)", color: "var(--text)", fontSize: "13.5px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-content": { fontFamily: "var(--mono)", padding: "10px 0", minHeight: "88px", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--faint)" },
  ".cm-selectionBackground": { background: "var(--raised) !important" },
  "&.cm-focused .cm-selectionBackground": { background: "var(--accent-ground) !important" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--accent-ground)", outline: "1px solid var(--accent)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", textUnderlineOffset: "3px" },
  ".cm-tooltip": { border: "1px solid var(--line)", borderRadius: "8px", background: "var(--card)", color: "var(--text)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete": { background: "var(--card)", zIndex: 5 },
  // Whole rows, and nothing behind them shows through.
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px", maxHeight: "none", overflow: "hidden", minWidth: "min(200px, 80vw)", maxWidth: "min(520px, calc(100vw - 48px))", background: "var(--card)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", height: "26px", lineHeight: "20px", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--accent-ground)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--faint)", fontStyle: "normal", marginLeft: "12px" },
  ".cm-diagnostic": { padding: "6px 10px", borderLeftWidth: "4px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
});

const BEFORE_VALUE = /(`[^`]+`|[\p{L}_][\p{L}\p{N}_.]*)\s*(?:=|==|<>|!=|<=|>=|<|>|\bIN\s*\((?:[^()]*,)?|\bLIKE|\bBETWEEN)\s*('[^']*|[\p{L}\p{N}.]*)$/iu;

// A list that fits: it shows those around the chosen one, and has nothing to scroll to.
const LIST = { icons: false, maxRenderedOptions: 8 };

// A value instead of what was typed of it, with the quote that the editor has closed.
function applyValue(view, completion, from, to) {
  const isClosed = view.state.sliceDoc(from, from + 1) === "'" && view.state.sliceDoc(to, to + 1) === "'";
  view.dispatch({ ...insertCompletionText(view.state, completion.label, from, isClosed ? to + 1 : to), annotations: pickedCompletion.of(completion) });
}

// Attributes with their types, the values seen after a comparison, functions and keywords.
function complete(words) {
  const names = [
    ...words.attributes.map((own) => ({ label: own.name, displayLabel: visible(own.name), type: "property", detail: own.type ?? "not used yet", boost: own.type ? 3 : 2 })),
    ...Object.entries(words.functions).map(([name, signature]) => ({ label: name, apply: `${name}(`, type: "function", detail: signature.slice(name.length) })),
    ...words.keywords.map((word) => ({ label: word, type: "keyword", boost: 1 })),
  ];
  const valuesOf = new Map(words.attributes.map((own) => [own.name, own.values]));
  return (context) => {
    const before = context.matchBefore(/[^\n]*$/u)?.text ?? "";
    const value = before.match(BEFORE_VALUE);
    const seen = value && valuesOf.get(value[1]);
    if (seen?.length) {
      return { from: context.pos - value[2].length, options: seen.map((label, at) => ({ label, displayLabel: visible(label), apply: applyValue, type: "constant", detail: "seen", boost: -at })), filter: true };
    }
    const word = context.matchBefore(/[`\p{L}_][`\p{L}\p{N}_.]*/u);
    if (!word && !context.explicit) return null;
    return { from: word ? word.from : context.pos, options: names, validFor: /^[`\p{L}\p{N}_.]*$/u };
  };
}

// The server counts characters, the editor counts UTF-16 units.
function toUnits(text, place) {
  let units = 0;
  for (const character of text) {
    if (place-- <= 0) break;
    units += character.length;
  }
  return units;
}

export function createEditor(parent, { text, label, describedBy, onChange, words }) {
  // In a shadow root, styles are objects and need no exception from the policy of the page.
  const root = parent.attachShadow({ mode: "open" });
  const language = new Compartment();
  const completion = new Compartment();
  const use = (own) => [
    makeLanguage(own.keywords, Object.keys(own.functions)),
    syntaxHighlighting(colours),
  ];
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        highlightSpecialChars(),
        bracketMatching(),
        closeBrackets(),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy, spellcheck: "false" }),
        placeholder("age >= 18 AND country = 'FR'"),
        language.of(use(words)),
        completion.of(autocompletion({ override: [complete(words)], ...LIST })),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        look,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    view,
    setText(next) {
      if (next !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    setWords(next) {
      view.dispatch({ effects: [language.reconfigure(use(next)), completion.reconfigure(autocompletion({ override: [complete(next)], ...LIST }))] });
    },
    setProblems(checked, problems) {
      if (checked !== view.state.doc.toString()) return; // typed on in the meantime
      const most = view.state.doc.length;
      const shown = problems.filter((own) => own.span).map((own) => {
        const from = Math.min(most, toUnits(checked, own.span[0]));
        const to = Math.min(most, Math.max(from, toUnits(checked, own.span[1])));
        return { from: from === to && from === most && from > 0 ? from - 1 : from, to, severity: own.severity === "error" ? "error" : "warning", message: visible(own.message) };
      });
      view.dispatch(setDiagnostics(view.state, shown));
    },
    destroy: () => view.destroy(),
  };
}
