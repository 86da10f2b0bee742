// Sign in with a key.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { session, signIn } from "./api.js";
import { useAction, useTitle } from "./hooks.js";
import { useStore } from "./store.js";
import { ProblemNote } from "./ui.jsx";

// What a person can do; the hint of the interface is for those who write programs.
function inWords(problem) {
  if (problem?.status !== 401) return problem;
  return { ...problem, message: "This key does not open the console: it is unknown, expired or revoked", hint: "Copy the whole key, from tamis_ to its last character, or ask an administrator for a new one" };
}

export function SignIn({ isOver = false }) {
  const { reason } = useStore(session);
  const [key, setKey] = useState("");
  const action = useAction(() => signIn(key.trim()));
  const box = useRef(null);
  const id = useId();
  useTitle("Sign in");
  useEffect(() => {
    if (isOver) box.current.showModal();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    action.run();
  };
  const form = (
    <form class="sign-in" onSubmit={submit}>
      <img src="/console/icon.svg" alt="" width="40" height="40" />
      <h1 id={`${id}-title`}>Sign in to Tamis</h1>
      {reason === "ended" && <p class="note warn" role="status">Your session has ended. Sign in again; nothing you typed is lost.</p>}
      <div class="field">
        <label for={id}>API key</label>
        <input id={id} type="password" autocomplete="current-password" spellcheck={false} value={key} onInput={(event) => setKey(event.target.value)} autofocus required />
        <p class="hint">It looks like <code>tamis_…</code>. An administrator makes one with <code>tamis keys create</code>. The browser keeps a session for some hours, not the key.</p>
      </div>
      <ProblemNote problem={inWords(action.problem)} />
      <button type="submit" class="primary" disabled={action.isBusy || !key.trim()}>Sign in</button>
    </form>
  );
  if (!isOver) return <main class="alone" id="main" tabIndex={-1}>{form}</main>;
  return <dialog ref={box} aria-labelledby={`${id}-title`} onCancel={(event) => event.preventDefault()}>{form}</dialog>;
}
