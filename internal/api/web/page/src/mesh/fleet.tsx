// The members as an administrator looks at them: what each says of itself where its owner allows
// that (owner.remote), and buttons that pause it. Nobody is asked before that is wanted.
import { useState } from "preact/hooks";
import { get, send } from "../net/http";
import type { FleetRow, Status } from "../net/types";
import { useAction, Wrong } from "../ui/notes";
import { cores, nameOr } from "../words/format";
import { sharingAfar } from "../words/sharing";
import { Table } from "../ui/table";

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
      {rows ? <Members rows={rows} now={now} order={order} /> : null}
    </>
  );
}

interface TableProps {
  rows: FleetRow[];
  now: number;
  order: (site: string, name: string, verb: string) => void;
}

function Members({ rows, now, order }: TableProps) {
  return (
    <Table
      label="Members, table"
      heads={["Site", "Shares", ">Cores in use", ">Jobs", "Problems", "Order"]}
    >
      {rows.map((r) => (
        <Row key={r.site} row={r} now={now} order={order} />
      ))}
    </Table>
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
