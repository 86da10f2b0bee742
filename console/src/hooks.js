// What several screens share: the address, loading, and the width of the window.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { session } from "./api.js";
import { useStore } from "./store.js";

export function readRoute() {
  const [path, text = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decode);
  return { parts, query: Object.fromEntries(new URLSearchParams(text)) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Where the person went. What a screen notes of itself in the address is no new place, so a screen
// that is reached by a link, or by going back, starts from its address.
export function useRoute() {
  const [route, setRoute] = useState(() => ({ ...readRoute(), count: 0 }));
  useLayoutEffect(() => {
    const change = () => setRoute((own) => ({ ...readRoute(), count: own.count + 1 }));
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

export function linkTo(parts, query = {}) {
  const path = parts.map((part) => encodeURIComponent(String(part).toWellFormed())).join("/");
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value).toWellFormed()])).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function go(parts, query) {
  location.hash = linkTo(parts, query);
}

// The address of what is shown, without a new entry in the history.
export function note(parts, query) {
  history.replaceState(null, "", linkTo(parts, query));
}

// What a function returns; it runs again when something it depends on changes, and when the
// connection comes back or the server can answer.
export function useLoaded(load, depends, { delay = 0, every = 0 } = {}) {
  const { phase, generation } = useStore(session);
  const [found, setFound] = useState({ value: null, problem: null, isLoading: true });
  const [count, setCount] = useState(0);
  const again = useCallback(() => setCount((own) => own + 1), []);
  useEffect(() => {
    if (phase !== "ready") return undefined;
    const stop = new AbortController();
    let timer = null;
    setFound((own) => ({ ...own, isLoading: true }));
    const run = async () => {
      let next = every;
      try {
        const value = await load(stop.signal);
        if (!stop.signal.aborted) setFound({ value, problem: null, isLoading: false });
      } catch (problem) {
        if (stop.signal.aborted || problem.name === "AbortError") return;
        setFound((own) => ({ value: problem.status ? null : own.value, problem, isLoading: false }));
        if (problem.status === 503) next ||= 2000; // the server cannot answer yet
      }
      if (next && !stop.signal.aborted) timer = setTimeout(run, next);
    };
    timer = setTimeout(run, delay);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [...depends, phase, generation, count]);
  return { ...found, again };
}

export function useDelayed(value, milliseconds) {
  const [kept, setKept] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setKept(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return kept;
}

export function useNarrow() {
  const [isNarrow, setNarrow] = useState(() => matchMedia("(max-width: 760px)").matches);
  useLayoutEffect(() => {
    const media = matchMedia("(max-width: 760px)");
    const change = () => setNarrow(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return isNarrow;
}

export function useTitle(title) {
  useEffect(() => {
    document.title = `${title} – Tamis`;
  }, [title]);
}

// Runs an action of a button: one at a time, with the problem it ended with.
export function useAction(action) {
  const [state, setState] = useState({ isBusy: false, problem: null });
  const latest = useRef(action);
  latest.current = action;
  const run = useCallback(async (...given) => {
    setState({ isBusy: true, problem: null });
    try {
      const result = await latest.current(...given);
      setState({ isBusy: false, problem: null });
      return result;
    } catch (problem) {
      setState({ isBusy: false, problem });
      return undefined;
    }
  }, []);
  return { ...state, run, clear: () => setState({ isBusy: false, problem: null }) };
}
