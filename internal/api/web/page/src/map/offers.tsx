// How the sites answered: the map, the same as a table, and the question asked again.
import { useMemo, useState } from "preact/hooks";
import { useLoaded } from "../net/live";
import { ask, send } from "../net/http";
import type { Offer, OfferTable, Task } from "../net/types";
import { useAction, useGuest, Wrong } from "../ui/notes";
import { clock, nameOr, percent, short } from "../words/format";
import { Step } from "../ui/buttons";
import { Changes } from "./arrows";
import { changesOf } from "./changes";
import { Map } from "./map";
import { RoundSlider, useRounds } from "./rounds";
import { Table } from "../ui/table";

interface OffersProps {
  id: string; // of the job
  tasks: Task[] | undefined; // those that are shown below
  now: number;
}

export function Offers({ id, tasks, now }: OffersProps) {
  const { value: last, error } = useLoaded<OfferTable>("offers", `/jobs/${id}/offers`);
  const [plan, show] = useState<[OfferTable]>();
  const { wrong, act } = useAction();
  const { rounds, at, choose } = useRounds(id, last);
  const guest = useGuest();
  const again = () =>
    act(async () => {
      const { spec } = (await (await ask("GET", `/jobs/${id}`)).json()) as { spec: unknown };
      show([await send<OfferTable>("POST", "/plan", spec)]);
      return "The sites were asked; nothing was handed out.";
    });
  return (
    <>
      <h3>Why there: the map</h3>
      <div class="line">
        {guest ? null : plan ? (
          <>
            <span>as the sites would answer now; nothing was handed out</span>
            <button type="button" onClick={() => show(undefined)}>
              Show the last answers
            </button>
          </>
        ) : (
          <button type="button" onClick={again}>
            Ask the sites now
          </button>
        )}
      </div>
      <Wrong text={wrong || error} />
      {plan ? (
        <Answers rounds={plan} at={0} tasks={tasks} now={now} />
      ) : (
        <>
          <RoundSlider rounds={rounds} at={at} now={now} onChoose={choose} />
          <Answers rounds={rounds} at={at} tasks={tasks} now={now} />
        </>
      )}
    </>
  );
}

interface Props {
  rounds: OfferTable[]; // oldest first
  at: number; // which of them is shown
  tasks: Task[] | undefined;
  now: number;
}

/** The answers of one round. The others say where sites stand that have answered before. */
function Answers({ rounds, at, tasks, now }: Props) {
  const { changes, names } = useMemo(() => changesOf(tasks ?? []), [tasks]);
  const table = rounds[at];
  if (!table) return null;
  const wanted = table.counterfactuals ?? [];
  return (
    <>
      <p>
        {table.answered} of {table.members} sites answered
        {table.asked ? `, asked ${clock(table.asked, now)}` : ""}
        {table.round > 1 ? `, for the ${table.round}. time` : ""}
        {table.never ? "; no site can run this" : ""}
      </p>
      {wanted.length > 0 ? <p>What would have to change: {wanted.slice(0, 3).join("; ")}</p> : null}
      {table.domains?.length ? <p>{table.domains.join("; ")}</p> : null}
      {table.rows?.length ? null : <p class="faint">no answers are kept</p>}
      {table.rows?.length || changes.length > 0 ? (
        <Map rounds={rounds} at={at} changes={changes} names={names} />
      ) : null}
      {table.rows?.length ? <Rows rows={table.rows} /> : null}
      <Changes changes={changes} names={names} />
    </>
  );
}

const page = 50;

/** The same answers as a table, a page at a time. */
function Rows({ rows }: { rows: Offer[] }) {
  const [from, go] = useState(0);
  const first = Math.min(from, Math.max(rows.length - 1, 0));
  return (
    <details>
      <summary>The same as a table: {rows.length} answers</summary>
      {rows.length > page ? (
        <p class="turn">
          <Step off={first === 0} onStep={() => go(Math.max(0, first - page))}>
            Nearer sites
          </Step>
          <Step off={first + page >= rows.length} onStep={() => go(first + page)}>
            Farther sites
          </Step>
        </p>
      ) : null}
      <Table
        label="Answers, table"
        heads={[">Rank", "Site", ">x", ">y", ">Leaves", ">Distance", "Why"]}
      >
        {rows.slice(first, first + page).map((o) => (
          <tr key={o.site}>
            <td class="right">{o.rank ?? ""}</td>
            <td>{nameOr(o.name, o.site)}</td>
            <td class="right">{short(o.x)}</td>
            <td class="right">{short(o.y)}</td>
            <td class="right">{percent(o.z)}</td>
            <td class="right">{short(o.distance)}</td>
            <td>
              {o.rank
                ? o.awarded
                  ? `has ${o.awarded} of the tasks`
                  : (o.behind ?? "")
                : (o.refusal ?? "")}
            </td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
