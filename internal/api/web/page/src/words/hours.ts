// The hours of the week in which a site is shared, as pkg/yield reads them.

const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const day = 24 * 60; // minutes

interface Window {
  days: boolean[];
  from: number;
  to: number;
  percent: number; // of the cores that are shared then
}

function minute(text: string): number {
  const match = /^(\d\d):(\d\d)$/.exec(text);
  return match ? Number(match[1]) * 60 + Number(match[2]) : NaN;
}

function windowOf(text: string): Window | undefined {
  const match = /^(?:([a-z]{3})(?:-([a-z]{3}))? )?(\d\d:\d\d)-(\d\d:\d\d)(?: +(\d+)%)?$/.exec(
    text.trim().toLowerCase(),
  );
  if (!match) return undefined;
  const [first, last] = [match[1] ?? "sun", match[1] ? (match[2] ?? match[1]) : "sat"];
  const [from, to] = [days.indexOf(first), days.indexOf(last)];
  let [begin, end] = [minute(match[3] ?? ""), minute(match[4] ?? "")];
  if (from < 0 || to < 0 || Number.isNaN(begin + end)) return undefined;
  if (end < begin) end += day;
  const percent = Number(match[5] ?? 100);
  if (percent < 1 || percent > 100) return undefined;
  const on = days.map((_, d) => (from <= to ? d >= from && d <= to : d >= from || d <= to));
  return { days: on, from: begin, to: end, percent };
}

/** The windows of a text; undefined: it cannot be read. */
export function windowsOf(text: string): Window[] | undefined {
  const all = text.split(",").map(windowOf);
  return all.every((w) => w !== undefined) ? (all as Window[]) : undefined;
}

/** The percentage of the cores that is shared on a day of the week (0 = Sunday) at a minute. */
export function share(windows: Window[], weekday: number, at: number): number {
  const before = (weekday + 6) % 7;
  const open = windows.filter(
    (w) => (w.days[weekday] && at >= w.from && at < w.to) || (w.days[before] && at + day < w.to),
  );
  return Math.max(0, ...open.map((w) => w.percent));
}

/** When the share changes next, in ms since 1970; undefined: it never does. */
export function nextShare(windows: Window[], now: number): number | undefined {
  return changeOf(windows, now, (percent) => percent);
}

/** When sharing begins or ends next, in ms since 1970; undefined: it never does. */
export function nextChange(windows: Window[], now: number): number | undefined {
  return changeOf(windows, now, (percent) => percent > 0);
}

function changeOf<T>(windows: Window[], now: number, of: (percent: number) => T) {
  const is = (ms: number) => {
    const d = new Date(ms);
    return of(share(windows, d.getDay(), d.getHours() * 60 + d.getMinutes()));
  };
  const step = 60_000;
  const start = Math.floor(now / step) * step;
  for (let i = 1; i <= 7 * day; i++) {
    if (is(start + i * step) !== is(start)) return start + i * step;
  }
  return undefined;
}
