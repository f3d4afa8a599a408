// The tasks of a job, a page at a time: an array of ten thousand is never loaded as a whole.
import { useState } from "preact/hooks";
import type { Job, Task } from "../net/types";
import { about, bytes, number } from "../words/format";
import { siteOf } from "./detail";
import { Log } from "./log";
import { Step } from "../ui/buttons";
import { toneOf } from "./phases";
import { useGuest } from "../ui/notes";
import { Table } from "../ui/table";

/** Tasks that are shown at a time. */
export const page = 50;

interface Props {
  job: Job;
  tasks: Task[]; // one page of them
  from: number; // the first one's index
  onGo: (from: number) => void;
  now: number;
}

export function Tasks({ job, tasks, from, onGo: go, now }: Props) {
  const [log, read] = useState("");
  const guest = useGuest();
  const to = Math.min(from + page, job.count);
  return (
    <>
      <h3>
        Tasks {number(from)} to {number(Math.max(to - 1, from))} of {number(job.count)}
      </h3>
      {job.count > page ? (
        <p class="turn">
          <Step off={from === 0} onStep={() => go(Math.max(0, from - page))}>
            Earlier tasks
          </Step>
          <Step off={to >= job.count} onStep={() => go(from + page)}>
            Later tasks
          </Step>
          <label>
            from task{" "}
            <input
              type="number"
              min="0"
              max={job.count - 1}
              value={from}
              onChange={(e) => go(within(e.currentTarget.valueAsNumber, job.count))}
            />
          </label>
        </p>
      ) : null}
      <Table
        label="Tasks, table"
        heads={[
          ">Task",
          "State",
          "Site",
          ">Time",
          ">Tries",
          ">Code",
          "More",
          ...(guest ? [] : ["Printed"]),
        ]}
      >
        {tasks.map((t) => (
          <tr key={t.id}>
            <td class="right">
              {t.index}
              {t.item ? ` ${t.item}` : ""}
            </td>
            <td>
              <span class={`phase ${toneOf(t.phase)}`}>{t.phase}</span>
            </td>
            <td>{siteOf(t)}</td>
            <td class="right">{took(t, now)}</td>
            <td class="right">{Math.max(t.attempts?.length ?? 0, t.token ?? 0)}</td>
            <td class="right">{t.code ?? ""}</td>
            <td>
              {more(t)}
              <Results task={t} />
            </td>
            {guest ? null : (
              <td>
                <button
                  type="button"
                  aria-pressed={log === t.id}
                  aria-label={`Log of task ${t.index}`}
                  onClick={() => read(log === t.id ? "" : t.id)}
                >
                  Log
                </button>
              </td>
            )}
          </tr>
        ))}
      </Table>
      {log ? <Log key={log} task={log} onClose={() => read("")} /> : null}
    </>
  );
}

const within = (n: number, count: number) =>
  Number.isFinite(n) ? Math.min(Math.max(0, Math.floor(n)), count - 1) : 0;

function took(t: Task, now: number): string {
  return t.started ? about((t.ended ? Date.parse(t.ended) : now) - Date.parse(t.started)) : "";
}

function more(t: Task): string {
  const saved = t.saved?.percent ? `${t.saved.percent} % saved ` : "";
  return saved + (t.text || t.cause || "");
}

/** The results of a task, to be saved as files. */
function Results({ task }: { task: Task }) {
  return (
    <>
      {(task.outputs ?? []).map((o) => {
        const name = (o.to || o.path).split("/").pop() || "result";
        return (
          <a
            key={o.path}
            class="result"
            href={`/api/v1/data/${o.cid}${o.encrypted ? `?task=${task.id}` : ""}`}
            download={o.dir ? `${name}.tar` : name}
          >
            {name} ({bytes(o.bytes)})
          </a>
        );
      })}
    </>
  );
}
