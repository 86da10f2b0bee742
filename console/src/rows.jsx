// A list of any length: pages come by cursor, and only the rows in view are in the document.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { session } from "./api.js";
import { useStore } from "./store.js";

const AROUND = 8; // rows above and below those in view

// Loads pages one after the other. `load` gets a cursor and returns { items, cursor }.
export function usePages(load, depends, { delay = 0 } = {}) {
  const { phase, generation } = useStore(session);
  const [found, setFound] = useState({ items: [], cursor: null, isLoading: true, problem: null, isFirst: true });
  const [count, setCount] = useState(0);
  const latest = useRef({ load, stop: null, isLoading: false });
  latest.current.load = load;

  const fetchPage = async (cursor, stop) => {
    latest.current.isLoading = true;
    try {
      const page = await latest.current.load(cursor, stop.signal);
      if (stop.signal.aborted) return;
      setFound((own) => ({
        items: cursor === null ? page.items : own.items.concat(page.items),
        cursor: page.cursor,
        isLoading: false,
        problem: null,
        isFirst: false,
      }));
    } catch (problem) {
      if (stop.signal.aborted || problem.name === "AbortError") return;
      setFound((own) => ({ ...own, isLoading: false, problem, isFirst: false }));
    } finally {
      if (!stop.signal.aborted) latest.current.isLoading = false;
    }
  };

  useEffect(() => {
    if (phase !== "ready") return undefined;
    const stop = new AbortController();
    latest.current.stop = stop;
    setFound((own) => ({ ...own, isLoading: true }));
    const timer = setTimeout(() => fetchPage(null, stop), delay);
    return () => {
      clearTimeout(timer);
      stop.abort();
      latest.current.isLoading = false;
    };
  }, [...depends, phase, generation, count]);

  const more = useCallback(() => {
    setFound((own) => {
      if (own.cursor !== null && !latest.current.isLoading && latest.current.stop) {
        fetchPage(own.cursor, latest.current.stop);
      }
      return own;
    });
  }, []);
  const again = useCallback(() => setCount((own) => own + 1), []);
  return { ...found, more, again };
}

// Browsers limit how high an element can be, to some 16 million pixels. A longer list is shown in a
// shorter element: a small move of the bar scrolls by as many pixels, a large one to its share.
const HIGHEST = 6_000_000;

function useScroll(box, whole) {
  const [view, setView] = useState({ bar: 0, top: 0, size: 600 });
  const shown = Math.min(whole, HIGHEST);
  const known = useRef({ bar: 0, top: 0 });
  const measure = useCallback(() => {
    const own = box.current;
    if (!own) return;
    const size = own.clientHeight;
    const [mostBar, mostTop] = [Math.max(1, shown - size), Math.max(0, whole - size)];
    const bar = Math.min(mostBar, Math.max(0, own.scrollTop));
    const move = bar - known.current.bar;
    let top = bar;
    if (shown < whole) {
      top = Math.abs(move) > 2 * size || bar <= 0 || bar >= mostBar ? (bar / mostBar) * mostTop : known.current.top + move;
      top = Math.min(mostTop, Math.max(0, top));
    }
    known.current = { bar, top };
    setView({ bar, top, size });
  }, [whole, shown]);
  // After a small move, the bar goes to where its share is; otherwise it would come to its end first.
  const settle = useCallback(() => {
    const own = box.current;
    if (!own || shown >= whole) return;
    const size = own.clientHeight;
    const bar = Math.round((known.current.top / Math.max(1, whole - size)) * (shown - size));
    const isEnd = known.current.top >= whole - size;
    known.current.bar = isEnd ? shown - size : Math.min(Math.max(bar, known.current.top > 0 ? 1 : 0), shown - size - 1);
    own.scrollTop = known.current.bar;
    measure();
  }, [measure]);
  useLayoutEffect(measure, [measure]);
  useEffect(() => {
    const watcher = new ResizeObserver(measure);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [measure]);
  return { ...view, shown, measure, settle };
}

export function Rows({ items, height, render, onEnd, onView, label, hasMore, head, class: own = "" }) {
  const box = useRef(null);
  const view = useScroll(box, items.length * height);
  const first = Math.max(0, Math.floor(view.top / height) - AROUND);
  const last = Math.min(items.length, Math.ceil((view.top + view.size) / height) + AROUND);
  useEffect(() => {
    if (hasMore && last >= items.length - AROUND) onEnd();
  }, [last, items.length, hasMore]);
  useEffect(() => onView?.(first, last), [first, last, items]);
  const shown = [];
  for (let at = first; at < last; at += 1) {
    const place = at * height - view.top + view.bar;
    shown.push(
      <div class="row" role="row" aria-rowindex={at + 2} key={at} style={{ transform: `translateY(${place}px)`, height: `${height}px` }}>
        {render(items[at], at)}
      </div>,
    );
  }
  return (
    <div class={`rows ${own}`} role="table" aria-label={label} aria-rowcount={hasMore ? -1 : items.length + 1}>
      <div role="rowgroup" class="rows-head">{head}</div>
      <div class="rows-view" ref={box} onScroll={view.measure} onScrollEnd={view.settle} tabIndex={0} role="rowgroup" aria-label={`${label}: rows`}>
        <div class="rows-all" role="presentation" style={{ height: `${view.shown}px` }}>{shown}</div>
      </div>
    </div>
  );
}
