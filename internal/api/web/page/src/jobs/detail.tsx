// One job that was opened: how it stands, its tasks, and where its sites are on the map.
import { useEffect, useRef, useState } from "preact/hooks";
import { useLoaded } from "../net/live";
import type { Job, Task } from "../net/types";
import { Offers } from "../map/offers";
import { Phases } from "../ui/bars";
import { Section, Wrong } from "../ui/notes";
import { clock, number, plural } from "../words/format";
import { left, percentOf, whyOf } from "./phases";
import { page, Tasks } from "./tasks";

export function Detail({ id, now }: { id: string; now: number }) {
  const { value: found, error } = useLoaded<Job[]>(
    "job",
    `/jobs?prefix=${encodeURIComponent(id)}&limit=1`,
  );
  const heading = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    heading.current?.focus();
  }, [id]);
  const job = found?.[0];
  const [from, go] = useState(0); // the first task that is shown
  const tasks = useLoaded<Task[]>(
    "job",
    job ? `/jobs/${job.id}/tasks?from=${from}&limit=${page}` : "",
  );
  return (
    <Section id="job" title={`Job ${job ? job.name || job.id : id}`} wide>
      <p ref={heading} tabIndex={-1}>
        <a href="#jobs">Close</a>
      </p>
      <Wrong text={error} />
      {found && !job ? <p>This job is forgotten.</p> : null}
      {job ? (
        <>
          <p>
            {job.phase}, {percentOf(job)} %{suffix(left(job, now))}; {job.kind},{" "}
            {plural(job.count, "task", "tasks")}
            {suffix(job.moves > 0 ? `moved ${number(job.moves)}` : "")}; submitted{" "}
            {clock(job.submitted, now)}
            {suffix(job.started ? `began ${clock(job.started, now)}` : "")}
            {suffix(job.ended ? `ended ${clock(job.ended, now)}` : "")}
            {suffix(job.code === undefined ? "" : `code ${job.code}`)}
          </p>
          <p>
            <code>{job.id}</code>
          </p>
          <Phases counts={job.tasks} count={job.count} />
          {whyOf(job) ? <p class="why">{whyOf(job)}</p> : null}
          <Offers id={job.id} tasks={tasks.value} now={now} />
          <Wrong text={tasks.error} />
          <Tasks job={job} tasks={tasks.value ?? []} from={from} onGo={go} now={now} />
        </>
      ) : null}
    </Section>
  );
}

const suffix = (text: string) => (text ? `, ${text}` : "");

/** Where a task is, for people. */
export const siteOf = (t: Task) => t.site_name || t.site?.slice(-8) || t.domain || "";
