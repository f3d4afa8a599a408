// The phases of tasks and jobs, and what follows from their numbers.
import type { Counts, Job } from "../net/types";
import { about } from "../words/format";

/** In their usual order, those first that a bar shows first. */
export const phases = [
  "done",
  "over",
  "running",
  "open",
  "preparing",
  "staging",
  "held",
  "frozen",
  "suspended",
  "awarded",
  "announced",
  "waiting",
  "failed",
  "lost",
  "refused",
  "cancelled",
  "released",
];

const ended = new Set(["done", "failed", "cancelled", "refused", "over", "lost", "released"]);
export const hasEnded = (phase: string) => ended.has(phase);

export function toneOf(phase: string): string {
  if (phase === "done" || phase === "over") return "good";
  if (["running", "open", "preparing", "staging"].includes(phase)) return "busy";
  if (["failed", "lost", "refused"].includes(phase)) return "bad";
  if (phase === "cancelled" || phase === "released") return "faint";
  return "warn";
}

const sum = (counts: Counts, of: (phase: string) => boolean) =>
  Object.entries(counts).reduce((n, [phase, c]) => (of(phase) ? n + c : n), 0);

export const doneOf = (j: Job) => sum(j.tasks, (p) => p === "done" || p === "over");

export const percentOf = (j: Job) => Math.floor((100 * doneOf(j)) / Math.max(j.count, 1));

/** What is left takes as long for each task as what has ended took; empty before any has. */
export function left(j: Job, now: number): string {
  const n = sum(j.tasks, hasEnded);
  if (n === 0 || n >= j.count || !j.started || hasEnded(j.phase)) return "";
  const ms = ((now - Date.parse(j.started)) / n) * (j.count - n);
  return ms > 0 ? `~${about(ms)} left` : "";
}

/** Why a job is where it is. */
export function whyOf(j: Job): string {
  const waits = (j.after ?? []).filter((e) => e.phase && e.phase !== "done" && e.phase !== "over");
  if (j.phase === "refused") return "refused: " + (j.reasons ?? []).join("; ");
  if (hasEnded(j.phase)) return "";
  if (waits.length > 0)
    return waits.map((e) => `waits for job ${e.id}, which is ${e.phase ?? "done"}`).join("; ");
  return j.hint ?? "";
}
