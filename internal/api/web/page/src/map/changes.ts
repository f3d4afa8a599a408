// Tasks that changed their site: from which to which and why, by the attempts of those tasks that
// are shown. Pure.
import type { Attempt, Task } from "../net/types";
import { nameOr, plural } from "../words/format";

/** One task that one site has left for another. */
export interface Change {
  task: number; // its index
  from: string;
  to: string;
  why: string;
  ordered: boolean; // not by a fault
}

/** All changes from one site to another: an arrow on the map. */
export interface Arrow {
  from: string;
  to: string;
  changes: Change[];
  ordered: boolean; // none of them was by a fault
}

/** Names of sites for people, by their IDs. */
export type Names = Map<string, string>;

// How the agent's words begin where nobody has failed: an order or an owner has ended the attempt.
const orders = /^(moved|stopped|taken back)\b/;

/** Sites at which a task was, in their order. One that declined it was none of them. */
function stays(t: Task): Attempt[] {
  const past = (t.attempts ?? []).filter((a) => a.site && !a.cause?.startsWith("declined"));
  past.sort((a, b) => a.token - b.token);
  const { token = 0, site } = t;
  if (!site || past.some((a) => a.token >= token)) return past;
  return [...past, { token, site, site_name: t.site_name, domain: t.domain }];
}

/** The changes of these tasks, and the names of the sites that had them. */
export function changesOf(tasks: Task[]): { changes: Change[]; names: Names } {
  const changes: Change[] = [];
  const names: Names = new Map();
  for (const t of tasks) {
    let before: Attempt | undefined;
    for (const a of stays(t)) {
      if (before && before.site !== a.site) {
        for (const end of [before, a])
          names.set(end.site, end.site_name || end.domain || nameOr("", end.site));
        const why = before.cause ?? "";
        const ordered = orders.test(why);
        changes.push({ task: t.index, from: before.site, to: a.site, why, ordered });
      }
      before = a;
    }
  }
  return { changes, names };
}

const most = 50; // arrows

/** The changes as arrows, those of most tasks first. */
export function arrowsOf(changes: Change[]): Arrow[] {
  const arrows = new Map<string, Arrow>();
  for (const c of changes) {
    const key = `${c.from} ${c.to}`;
    const arrow = arrows.get(key) ?? { from: c.from, to: c.to, changes: [], ordered: true };
    arrow.changes.push(c);
    arrow.ordered &&= c.ordered;
    arrows.set(key, arrow);
  }
  const all = [...arrows.values()].sort((a, b) => b.changes.length - a.changes.length);
  return all.slice(0, most);
}

/** A change in words. */
export function inWords(c: Change, names: Names): string {
  const between = `from ${names.get(c.from) ?? ""} to ${names.get(c.to) ?? ""}`;
  return `task ${c.task}: ${between}${c.why ? `: ${c.why}` : ""}`;
}

/** What an arrow means, a line for each task. */
export function titleOf(a: Arrow, names: Names): string {
  const lines = a.changes.slice(0, 10).map((c) => inWords(c, names));
  const more = a.changes.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${plural(more, "more", "more")}`] : [])].join("\n");
}
