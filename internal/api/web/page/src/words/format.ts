// Amounts and times as the commands write them.

/** 4 GiB as "4.0 GiB". */
export function bytes(n = 0): string {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let [value, unit] = [n / 1024, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value.toFixed(1)} ${units[unit]}`;
}

export const cores = (milli = 0) => (milli / 1000).toFixed(1);

export function rate(bps = 0): string {
  return bps >= 1e9 ? `${(bps / 1e9).toFixed(1)} Gbit/s` : `${(bps / 1e6).toFixed(1)} Mbit/s`;
}

/** A probability; what is not certain is not called so. */
export function percent(p?: number): string {
  if (p === undefined) return "";
  const value = p * 100;
  if (value > 99 && value < 100) return `${(Math.floor(value * 10) / 10).toFixed(1)} %`;
  return `${value.toFixed(0)} %`;
}

/** A number with three digits that count. */
export const short = (v?: number) => (v === undefined ? "" : String(Number(v.toPrecision(3))));

export const plural = (n: number, one: string, many: string) =>
  n === 1 ? `1 ${one}` : `${number(n)} ${many}`;

export const number = (n: number) => n.toLocaleString("en");

/** Milliseconds in their one or two largest units. */
export function about(ms: number): string {
  const [s, min, h] = [
    Math.max(1, Math.floor(ms / 1000)),
    Math.round(ms / 60_000),
    Math.floor(ms / 3_600_000),
  ];
  if (ms < 60_000) return `${s} s`;
  if (ms < 3_600_000) return `${min} min`;
  if (ms < 86_400_000) return `${h} h ${Math.floor(ms / 60_000) % 60} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

export const since = (time: string | undefined, now: number) =>
  time ? about(now - Date.parse(time)) : "";

/** A time on the reader's clock, with the day where that is not today. */
export function clock(time: string | undefined, now: number): string {
  if (!time) return "";
  const [at, today] = [new Date(time), new Date(now)];
  const hours = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === today.toDateString()) return hours;
  if (Math.abs(at.getTime() - now) < 6 * 86_400_000)
    return `${at.toLocaleDateString("en-GB", { weekday: "short" })} ${hours}`;
  return `${at.toLocaleDateString("sv-SE")} ${hours}`;
}

/** The end of an ID where there is no name. */
export const nameOr = (name: string | undefined, id: string | undefined) =>
  name || (id ?? "").slice(-8);

export function coreHours(seconds: number): string {
  const hours = seconds / 3600;
  return hours > 0 && hours < 0.1 ? hours.toFixed(4) : hours.toFixed(1);
}
