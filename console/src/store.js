// A value that components watch.
import { useLayoutEffect, useReducer } from "preact/hooks";

export function createStore(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(change) {
      value = { ...value, ...change };
      for (const watch of [...watchers]) watch();
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

// Watches from the moment it is rendered. An effect would run after the next frame, and a page that
// is busy then would lose what was set before.
export function useStore(store) {
  const [, again] = useReducer((count) => count + 1, 0);
  const value = store.get();
  useLayoutEffect(() => {
    const stop = store.watch(again);
    if (store.get() !== value) again();
    return stop;
  }, [store]);
  return value;
}
