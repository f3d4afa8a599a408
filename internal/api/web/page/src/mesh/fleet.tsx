// The members as an administrator looks at them: what each says of itself where its owner allows
// that (owner.remote), and buttons that pause it. Nobody is asked before that is wanted.
import { useState } from "preact/hooks";
import { get, send } from "../net/http";
import type { FleetRow, Status } from "../net/types";
import { useAction, Wrong } from "../ui/notes";
import { cores, nameOr } from "../words/format";
import { sharingAfar } from "../words/sharing";

export function Fleet({ now }: { now: number }) {
  const [rows, set] = useState<FleetRow[]>();
  const { busy, wrong, act } = useAction();
  const look = () =>
    act(async () => {
      const members = await get<FleetRow[]>("/fleet");
      set(members);
      const known = members.filter((m) => m.status).length;
      return `${known} of ${members.length} members say how they are.`;
    });
  const order = (site: string, name: string, verb: string) =>
    act(async () => {
      const path = `/members/${encodeURIComponent(site)}/${verb}`;
      const status = await send<Status>("POST", path, verb === "pause" ? {} : undefined);
      set((old) => old?.map((r) => (r.site === site ? { ...r, status } : r)));
      return `${name} is ${verb === "pause" ? "paused" : "resumed"}.`;
    });
  return (
    <>
      <h3>What members say of themselves</h3>
      <p class="line">
        <button type="button" aria-disabled={busy} onClick={look}>
          Ask the members
        </button>
        <span class="faint">those whose owners list this site under owner.remote answer</span>
      </p>
      <Wrong text={wrong} />
      {rows ? <Table rows={rows} now={now} order={order} /> : null}
    </>
  );
}

interface TableProps {
  rows: FleetRow[];
  now: number;
  order: (site: string, name: string, verb: string) => void;
}

function Table({ rows, now, order }: TableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Members, table">
      <table>
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">Shares</th>
            <th scope="col" class="right">
              Cores in use
            </th>
            <th scope="col" class="right">
              Jobs
            </th>
            <th scope="col">Problems</th>
            <th scope="col">Order</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <Row key={r.site} row={r} now={now} order={order} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row, now, order }: { row: FleetRow } & Omit<TableProps, "rows">) {
  const name = nameOr(row.name, row.site);
  const s = row.status;
  if (!s)
    return (
      <tr>
        <td>{name}</td>
        <td colSpan={5} class="faint">
          {row.trouble}
        </td>
      </tr>
    );
  const verb = s.paused ? "resume" : "pause";
  return (
    <tr>
      <td>{name}</td>
      <td>{sharingAfar(s, now)}</td>
      <td class="right">
        {cores(s.in_use.milli_cpus)} of {cores(s.ceilings.milli_cpus)}
      </td>
      <td class="right">{row.running}</td>
      <td>{(s.notices ?? []).map((n) => n.text).join("; ")}</td>
      <td>
        {row.self ? (
          "this site"
        ) : (
          <button type="button" onClick={() => order(row.site, name, verb)}>
            {s.paused ? "Resume" : "Pause"} {name}
          </button>
        )}
      </td>
    </tr>
  );
}
