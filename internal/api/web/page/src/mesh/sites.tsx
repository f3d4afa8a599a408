// The sites that are known, and the domains that are linked.
import { useState } from "preact/hooks";
import { useLoaded } from "../net/live";
import type { Neighbour, Site } from "../net/types";
import { Section, useGuest, Wrong } from "../ui/notes";
import { Fleet } from "./fleet";
import { bytes, cores, nameOr, percent, since } from "../words/format";
import { Table } from "../ui/table";

const page = 25;

export function Sites({ now }: { now: number }) {
  const { value, error } = useLoaded<Site[]>("sites", "/sites");
  const guest = useGuest();
  const { value: neighbours } = useLoaded<Neighbour[]>("sites", guest ? "" : "/neighbours");
  const [most, show] = useState(page);
  const sites = value ?? [];
  return (
    <Section id="sites" title={`Sites: ${sites.length}`} wide>
      <Wrong text={error} />
      {sites.length === 0 ? (
        <p class="faint">none is known yet</p>
      ) : (
        <Table
          label="Sites, table"
          heads={["Site", "Reached", ">Cores", ">Memory", ">Faults", ">Stays 1 h", "Domain"]}
        >
          {sites.slice(0, most).map((s) => (
            <tr key={s.id}>
              <td>{nameOr(s.name, s.id)}</td>
              <td>
                <span class={`reached ${s.self || s.connected ? "good" : "warn"}`}>
                  {reached(s, now)}
                </span>
              </td>
              <td class="right">{s.total ? cores(s.total.milli_cpus) : ""}</td>
              <td class="right">{s.total ? bytes(s.total.memory_bytes) : ""}</td>
              <td class="right">{s.fault_index}</td>
              <td class="right">{s.z_hour === undefined ? "" : percent(1 - s.z_hour)}</td>
              <td>{s.domain ?? ""}</td>
            </tr>
          ))}
        </Table>
      )}
      {sites.length > most ? (
        <p class="turn">
          <button type="button" onClick={() => show(most + 100)}>
            Show more sites
          </button>
          <span>
            {most} of {sites.length} shown
          </span>
        </p>
      ) : null}
      {guest ? null : <Fleet now={now} />}
      {neighbours?.length ? (
        <>
          <h3>Linked domains</h3>
          <ul>
            {neighbours.map((n) => (
              <li key={n.name}>
                {n.name}: {n.reachable ? "reached" : "not reached"}; {n.tasks} tasks of {n.jobs} own
                jobs there, {n.done} done
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </Section>
  );
}

function reached(s: Site, now: number): string {
  if (s.self) return "this site";
  if (s.connected)
    return s.round_trip_ms === undefined ? "connected" : `in ${s.round_trip_ms.toFixed(0)} ms`;
  if (s.trouble) return `away: ${s.trouble}`;
  return s.last_seen ? `away ${since(s.last_seen, now)}` : "away";
}
