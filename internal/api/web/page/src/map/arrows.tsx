// Failovers and moves as arrows from the site that was left to the next one, and the same as a
// table. They lie below the sites, begin and end beside them, and bend, so that there and back are
// two.
import { number } from "../words/format";
import type { Arrow, Change, Names } from "./changes";
import { titleOf } from "./changes";
import type { Place } from "./layout";
import { Table } from "../ui/table";

const head = 8; // length of an arrow's head, in the drawing's units
const most = 2.9; // its width there: at most 4 px where the map is largest

interface Props {
  arrows: Arrow[];
  names: Names;
  placeOf: (site: string) => Place | undefined;
  gap: number; // between the middle of a site and its arrows
}

export function Arrows({ arrows, names, placeOf, gap }: Props) {
  return (
    <g class="arrows">
      <defs>
        <marker
          id="head"
          viewBox="0 -4 8 8"
          refX="0.5"
          markerWidth={head}
          markerHeight={head}
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path d="M0 -4L8 0L0 4z" />
        </marker>
      </defs>
      {arrows.map((a) => {
        const [from, to] = [placeOf(a.from), placeOf(a.to)];
        if (!from || !to) return null;
        const { d, top } = bend(from, to, gap);
        const n = a.changes.length;
        return (
          <g key={`${a.from} ${a.to}`} class={`arrow ${a.ordered ? "order" : "fault"}`}>
            <title>{titleOf(a, names)}</title>
            <path
              d={d}
              style={{ strokeWidth: Math.min(most, 1.2 + 0.4 * Math.log2(n)).toFixed(2) }}
              marker-end="url(#head)"
            />
            {n > 1 ? (
              <text x={top.x.toFixed(1)} y={(top.y + 3).toFixed(1)}>
                {number(n)}
              </text>
            ) : null}
          </g>
        );
      })}
    </g>
  );
}

/** A bent line between two sites, and its middle. */
function bend(from: Place, to: Place, gap: number): { d: string; top: Place } {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const by = Math.max(0.18 * length, 30) / length; // sites that touch have an arc beside them
  const middle = { x: (from.x + to.x) / 2 - dy * by, y: (from.y + to.y) / 2 + dx * by };
  const begin = towards(from, middle, gap);
  const end = towards(to, middle, gap + head);
  const top = {
    x: (begin.x + 2 * middle.x + end.x) / 4,
    y: (begin.y + 2 * middle.y + end.y) / 4,
  };
  const at = (p: Place) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  return { d: `M${at(begin)}Q${at(middle)} ${at(end)}`, top };
}

function towards(from: Place, to: Place, by: number): Place {
  const part = by / (Math.hypot(to.x - from.x, to.y - from.y) || 1);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/** The changes as a table. */
export function Changes({ changes, names }: { changes: Change[]; names: Names }) {
  if (changes.length === 0) return null;
  return (
    <details class="changes">
      <summary>Tasks that changed their site: {number(changes.length)} times</summary>
      <Table label="Changes of site, table" heads={[">Task", "From", "To", "Why"]}>
        {changes.map((c, i) => (
          <tr key={i}>
            <td class="right">{c.task}</td>
            <td>{names.get(c.from)}</td>
            <td>{names.get(c.to)}</td>
            <td>{c.why}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
