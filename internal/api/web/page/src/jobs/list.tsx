// The own submissions, newest first, a page at a time.
import { useState } from "preact/hooks";
import { useLoaded } from "../net/live";
import type { Job } from "../net/types";
import { Phases } from "../ui/bars";
import { Section, useGuest, Wrong } from "../ui/notes";
import { clock, number } from "../words/format";
import { Orders } from "./orders";
import { Step } from "../ui/buttons";
import { doneOf, left, percentOf, toneOf, whyOf } from "./phases";

const page = 10; // jobs

const nameOf = (j: Job) => j.name || j.id;

export function Jobs({ open, now }: { open: string; now: number }) {
  const [before, turn] = useState<string[]>([]);
  const { value: jobs, error } = useLoaded<Job[]>(
    "jobs",
    `/jobs?limit=${page}` + (before.length ? `&before=${before.at(-1)}` : ""),
  );
  const last = jobs?.at(-1)?.id;
  // While a page is loaded the buttons stay, and with them the focus.
  const single = before.length === 0 && jobs !== undefined && jobs.length < page;
  return (
    <Section id="jobs" title={useGuest() ? "Jobs of this site" : "My jobs"} wide>
      <Wrong text={error} />
      {jobs && jobs.length === 0 ? (
        <p class="faint">
          {before.length ? "no older jobs" : "no jobs yet; submit run hands one in"}
        </p>
      ) : null}
      <ul class="jobs">
        {(jobs ?? []).map((j) => (
          <Row key={j.id} job={j} open={j.id === open} now={now} />
        ))}
      </ul>
      {single ? null : (
        <p class="turn">
          <Step off={before.length === 0} onStep={() => turn(before.slice(0, -1))}>
            Newer
          </Step>
          <Step
            off={(jobs?.length ?? 0) < page || !last}
            onStep={() => turn([...before, last ?? ""])}
          >
            Older
          </Step>
          <span>page {before.length + 1}</span>
        </p>
      )}
    </Section>
  );
}

function Row({ job, open, now }: { job: Job; open: boolean; now: number }) {
  const guest = useGuest();
  const state = job.held ? "held" : job.phase;
  const name = nameOf(job);
  const why = whyOf(job);
  return (
    <li class={open ? "open" : ""}>
      <div class="line">
        <strong>
          <a href={open ? "#jobs" : `#job=${job.id}`} aria-expanded={open}>
            {name}
          </a>
        </strong>
        <span class={`phase ${toneOf(state)}`}>{state}</span>
        <span>
          {percentOf(job)} %, {number(doneOf(job))} of {number(job.count)} done
        </span>
        {left(job, now) ? <span>{left(job, now)}</span> : null}
        <span class="faint">{clock(job.submitted, now)}</span>
      </div>
      {job.phase === "done" ? null : <Phases counts={job.tasks} count={job.count} />}
      {why ? <p class="why">{why}</p> : null}
      {guest ? null : <Orders job={job} />}
    </li>
  );
}
