// Keeps what is shown up to date: it is loaded once, again after an event that concerns it, at
// most once a second for each kind, and slowly by itself. A hidden tab asks for nothing.
import { useEffect, useState } from "preact/hooks";
import { follow } from "./events";
import { Away, Refused, get } from "./http";
import type { Happening } from "./types";

export type Kind =
  "status" | "jobs" | "job" | "offers" | "sites" | "members" | "given" | "configuration";

const least: Record<Kind, number> = {
  status: 1000,
  jobs: 1000,
  job: 1000,
  offers: 3000,
  sites: 2000,
  members: 1000,
  given: 30_000,
  configuration: 1000,
};
const slow = 60_000; // ms between two refreshes that no event asks for
const pauses = [1000, 2000, 4000, 8000, 15_000, 30_000]; // ms before the next try

type Loader = () => Promise<void>;

const loaders: Record<Kind, Set<Loader>> = {
  status: new Set(),
  jobs: new Set(),
  job: new Set(),
  offers: new Set(),
  sites: new Set(),
  members: new Set(),
  given: new Set(),
  configuration: new Set(),
};
const last: Partial<Record<Kind, number>> = {};
const due: Partial<Record<Kind, number>> = {};

/** Loads a kind again, now or as soon as it may be. */
export function reload(kind: Kind): void {
  if (due[kind] !== undefined || document.hidden) return;
  const wait = Math.max(0, (last[kind] ?? 0) + least[kind] - Date.now());
  due[kind] = window.setTimeout(() => {
    delete due[kind];
    if (document.hidden) return;
    last[kind] = Date.now();
    for (const load of loaders[kind]) void load();
  }, wait);
}

export function reloadAll(): void {
  for (const kind of Object.keys(loaders) as Kind[]) reload(kind);
}

/** What an event concerns. */
export function concerned(event: Happening): Kind[] {
  if (event.kind === "now") return [];
  if (event.kind === "gap") return Object.keys(loaders) as Kind[];
  const kinds: Kind[] = event.job ? ["status", "jobs", "job", "offers"] : ["status", "members"];
  if (event.site && !event.job) kinds.push("sites");
  return kinds;
}

export interface Loaded<T> {
  value?: T;
  error?: string;
}

/** Loads a path below /api/v1 and keeps it up to date; an empty path loads nothing. */
export function useLoaded<T>(kind: Kind, path: string): Loaded<T> {
  const [state, set] = useState<{ path: string } & Loaded<T>>({ path });
  useEffect(() => {
    if (!path) return undefined;
    let mounted = true;
    const load = async () => {
      try {
        const value = await get<T>(path);
        if (mounted) set({ path, value });
      } catch (wrong) {
        const { message } = wrong as Error;
        // What was known stays while the agent is away; the head of the page says that it is.
        if (mounted && !(wrong instanceof Away)) set((old) => ({ ...old, path, error: message }));
      }
    };
    loaders[kind].add(load);
    void load();
    return () => {
      mounted = false;
      loaders[kind].delete(load);
    };
  }, [kind, path]);
  return state.path === path ? state : {};
}

/** Follows the agent's events while the tab is seen; says whether the agent is reached. */
export function watch(connected: (is: boolean) => void): () => void {
  let stop = new AbortController();
  let seen = 0; // id of the newest event
  let tries = 0;
  let missed = false; // something may have happened that no event told of
  const opened = () => {
    tries = 0;
    connected(true);
    if (missed) reloadAll();
    missed = false;
  };
  const take = (event: Happening) => {
    seen = Math.max(seen, event.id);
    for (const kind of concerned(event)) reload(kind);
  };
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      try {
        await follow(seen, signal, opened, take);
      } catch (wrong) {
        if (wrong instanceof Refused && wrong.status === 401) return;
      }
      if (signal.aborted) return;
      connected(false);
      missed = true;
      await new Promise((go) =>
        window.setTimeout(go, pauses[Math.min(tries++, pauses.length - 1)]),
      );
    }
  };
  const turn = () => {
    stop.abort();
    missed ||= document.hidden;
    if (document.hidden) return;
    stop = new AbortController();
    void run(stop.signal);
  };
  turn();
  document.addEventListener("visibilitychange", turn);
  const timer = window.setInterval(reloadAll, slow);
  return () => {
    stop.abort();
    window.clearInterval(timer);
    document.removeEventListener("visibilitychange", turn);
  };
}
