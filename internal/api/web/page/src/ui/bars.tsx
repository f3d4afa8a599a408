// Bars: how much of a whole, and in which phases tasks are.
import type { Counts } from "../net/types";
import { phases, toneOf } from "../jobs/phases";
import { number } from "../words/format";

/** How much of a whole is used, in words beside the bar. */
export function Used({
  name,
  part,
  whole,
  write,
}: {
  name: string;
  part: number;
  whole: number;
  write: (n: number) => string;
}) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return (
    <div class="used">
      <span class="name">{name}</span>
      <span class="bar" aria-hidden="true">
        <i style={{ width: `${(share * 100).toFixed(1)}%` }} />
      </span>
      <span>
        {write(part)} of {write(whole)} in use
      </span>
    </div>
  );
}

/** The phases of a job's tasks as one bar. */
export function Phases({ counts, count }: { counts: Counts; count: number }) {
  const parts = phases.filter((p) => (counts[p] ?? 0) > 0);
  const text = parts.map((p) => `${number(counts[p] ?? 0)} ${p}`).join(", ");
  return (
    <span class="phases" role="img" aria-label={text || "no task yet"} title={text}>
      {parts.map((p) => (
        <i
          key={p}
          class={toneOf(p)}
          style={{ width: `${(((counts[p] ?? 0) / Math.max(count, 1)) * 100).toFixed(2)}%` }}
        />
      ))}
    </span>
  );
}
