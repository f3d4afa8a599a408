// Whether a site shares and, if not, why: the words of siteagent status.
import type { Status } from "../net/types";
import { bytes, clock, plural } from "./format";
import { nextChange, nextShare, share, windowsOf } from "./hours";

const fullDisk = 16 << 20; // bytes that the agent needs for its own records
const calm = 10; // seconds of quiet after which jobs go on

/** How a state is meant: as it should be, not now, or a question of time. */
export type Tone = "good" | "warn" | "bad";

function frozen(s: Status): number {
  return (s.running ?? []).filter((r) => r.phase === "frozen" || r.phase === "suspended").length;
}

function ownerBusy(s: Status, now: number): string {
  const { hours = "", why = "" } = s.owner ?? { hours: "", why: "" };
  const windows = hours ? windowsOf(hours) : undefined;
  const at = new Date(now);
  if (windows && !share(windows, at.getDay(), at.getHours() * 60 + at.getMinutes())) {
    const next = nextChange(windows, now);
    return (
      `no: you share this machine ${hours}` +
      (next ? `; again from ${clock(new Date(next).toISOString(), now)}` : "")
    );
  }
  const n = frozen(s);
  const after =
    n > 0
      ? plural(n, "job is frozen and resumes", "jobs are frozen and resume")
      : "jobs are taken again";
  const then: [string, string][] = [
    ["owner.hook: ", "when it says so"],
    ["owner.input: ", "when you are away"],
    ["the machine runs on battery", "when it is plugged in (owner.battery)"],
    ["the connection is metered", "when it is not (owner.metered)"],
    ["owner.heat: ", "when a thermometer says so"],
  ];
  for (const [begins, text] of then) {
    if (why.startsWith(begins)) return `paused: ${why}; ${after} ${text}`;
  }
  return `paused: you are using the machine (${why.replace(/^others use /, "")}); ${after} after ${calm} s of quiet`;
}

function pausedText(s: Status, now: number): string {
  const jobs = s.leaving ? leavingText(s, now) : "";
  return `no: ${pausedUntil(s, now)}; Resume ends that${jobs ? `; ${jobs}` : ""}`;
}

function pausedUntil(s: Status, now: number): string {
  const until = s.paused_until ? ` until ${clock(s.paused_until, now)}` : "";
  const by = s.paused_by ? ` from afar by ${s.paused_by}` : "";
  return `paused${by}${until}`;
}

/** What becomes of the jobs of a site that is paused, once they are to leave. */
function leavingText(s: Status, now: number): string {
  const running = s.running ?? [];
  const leave = running.filter((r) => r.leaves).length;
  const stay = running.length - leave;
  const parts: string[] = [];
  if (leave > 0)
    parts.push(
      plural(
        leave,
        "job moves when it is saved and another site offers",
        "jobs move when they are saved and other sites offer",
      ),
    );
  if (stay > 0)
    parts.push(
      plural(stay, "job goes on", "jobs go on") +
        (s.stop_at ? ` until ${clock(s.stop_at, now)}` : ""),
    );
  return parts.join(", ");
}

/** The same of another site, whose owner is not the reader. */
export function sharingAfar(s: Status, now: number): string {
  if (s.paused && !s.stopping) return `no: ${pausedUntil(s, now)}`;
  if (s.owner?.busy && !s.stopping) return `no: its owner has the machine: ${s.owner.why ?? ""}`;
  const [has, takes] = [s.ceilings.milli_cpus ?? 0, s.in_use.milli_cpus ?? 0];
  if (has > 0 && takes >= has) return "yes, all its cores are in use";
  return sharing(s, now).text;
}

/** What part of the ceilings is given now, and until when. */
function shareText(s: Status, now: number): string {
  const memory = s.owner?.memory_percent ? ` and ${s.owner.memory_percent} % of the memory` : "";
  const text = `yes, ${s.owner?.share_percent} % of the cores${memory}`;
  if (s.owner?.in_use) return `${text} while you are there (in-use)`;
  const windows = windowsOf(s.owner?.hours ?? "") ?? [];
  const next = nextShare(windows, now);
  const until = next ? ` until ${clock(new Date(next).toISOString(), now)}` : "";
  return `${text}${until} (owner.hours)`;
}

export function sharing(s: Status, now: number): { text: string; tone: Tone } {
  const running = s.running?.length ?? 0;
  const free = s.machine?.free_disk_bytes;
  const kept = s.machine?.kept_disk_bytes ?? 0;
  const warn = (text: string) => ({ text, tone: "warn" as const });
  if (s.stopping)
    return warn(`no: stopping as soon as ${plural(running, "job has ended", "jobs have ended")}`);
  if (s.paused) return warn(pausedText(s, now));
  if (s.owner?.busy) return warn(ownerBusy(s, now));
  if (!s.kinds?.length) return { text: "no: this machine can run no jobs", tone: "bad" };
  if (free !== undefined && free < fullDisk) return { text: "no: the disk is full", tone: "bad" };
  if (free !== undefined && free < kept) {
    return {
      text: `no: ${bytes(free)} of the disk are free, and you keep ${bytes(kept)} (owner.free-disk)`,
      tone: "bad",
    };
  }
  if (s.peers === 0) return warn("yes, but no other site is connected");
  const [has, takes] = [s.ceilings.milli_cpus ?? 0, s.in_use.milli_cpus ?? 0];
  if (has > 0 && takes >= has)
    return { text: "yes, all cores that you give are in use", tone: "good" };
  if (s.owner?.share_percent) return { text: shareText(s, now), tone: "good" };
  return { text: "yes", tone: "good" };
}
