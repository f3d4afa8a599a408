// What the sites of the map are drawn on, and the words that are written over them.
import { nameOr, short } from "../words/format";
import type { Names } from "./changes";
import { causes, rim } from "./layout";
import type { Absent, Layout, Placed } from "./layout";
import { words } from "./legend";

const few = 12; // sites of which the names have space

/** The job, and arcs of the same distance from it. */
export function Paper({ rings }: { rings: Layout["rings"] }) {
  return (
    <>
      <circle r={rim} class="ring" />
      {rings.map((r) => (
        <g key={r.value} class="ring">
          <circle r={r.r} />
          <text x={r.r * Math.cos(Math.PI / 6)} y={r.r * Math.sin(-Math.PI / 6)} class="tick">
            {short(r.value)}
          </text>
        </g>
      ))}
      <circle r="5" class="origin" />
      <text y="16" class="tick origin">
        job
      </text>
    </>
  );
}

interface Props {
  sites: Placed[];
  absent: Absent[];
  names: Names; // of those that are absent
}

/** Directions, and names where there are few. */
export function Labels({ sites, absent, names }: Props) {
  return (
    <>
      {causes.map((c, i) => {
        const a = -Math.PI / 2 + (i * 2 * Math.PI) / 3;
        return (
          <text
            key={c}
            class={`sector ${c}`}
            x={(rim - 45) * Math.cos(a)}
            y={(rim - 20) * Math.sin(a)}
          >
            {words[c]}
          </text>
        );
      })}
      {sites.length <= few
        ? sites.map((p) => (
            <text key={p.offer.site} class="name" x={p.x + 9} y={p.y - 5}>
              {nameOr(p.offer.name, p.offer.site)}
            </text>
          ))
        : null}
      {sites.length + absent.length <= few
        ? absent.map((p) => (
            <text
              key={p.site}
              class="name"
              x={p.x}
              y={p.y > 0.7 * rim ? p.y - 14 : p.y + 20}
              text-anchor={p.x > 0 ? "end" : "start"}
            >
              {names.get(p.site)}
            </text>
          ))
        : null}
    </>
  );
}
