// The jobs that are on this machine.
import type { RunningTask } from "../net/types";
import { toneOf } from "../jobs/phases";
import { Section } from "../ui/notes";
import { cores, nameOr, since } from "../words/format";
import { Table } from "../ui/table";

const waits: Record<string, string> = {
  staging: "its inputs",
  preparing: "the compiler",
  frozen: "its submitter",
  suspended: "quiet on this machine",
  awarded: "its turn",
};

export function Here({ running, now }: { running: RunningTask[]; now: number }) {
  return (
    <Section id="here" title={`Jobs here: ${running.length}`}>
      {running.length === 0 ? (
        <p class="faint">none at the moment</p>
      ) : (
        <Table
          label="Jobs here, table"
          heads={["Job", "For", "State", ">Time", ">Cores", "Waits for"]}
        >
          {running.slice(0, 100).map((r) => (
            <tr key={`${r.task}/${r.token}`}>
              <td>{r.name || r.task}</td>
              <td>{nameOr(r.submitter_name, r.submitter)}</td>
              <td>
                <span class={`phase ${toneOf(r.phase)}`}>{r.phase}</span>
              </td>
              <td class="right">{since(r.started, now)}</td>
              <td class="right">{cores(r.need.milli_cpus)}</td>
              <td>{r.leaves ? `another site: ${r.leaves}` : (waits[r.phase] ?? "")}</td>
            </tr>
          ))}
        </Table>
      )}
      {running.length > 100 ? <p class="faint">and {running.length - 100} more</p> : null}
    </Section>
  );
}
