// Where each site stands on the map: the job in the centre, the radius is the distance, and the
// direction is what causes it. Pure: numbers in, numbers out.
import type { Offer, OfferTable } from "../net/types";

export type Cause = "computation" | "data" | "availability";
export const causes: Cause[] = ["computation", "data", "availability"];

/** Radius of the farthest arc, and of a site's mark, in the drawing's units. */
export const rim = 200;
export const mark = 6;
const small = 4; // of a mark among many
const many = 60;
const inner = 30; // no site stands on the job itself, and there is space around it
const third = (2 * Math.PI) / 3;
const up = -Math.PI / 2;

export interface Placed {
  offer: Offer;
  x: number;
  y: number;
  cause: Cause;
  chosen: boolean;
}
export interface Refused {
  offer: Offer;
  x: number;
  y: number;
}
export interface Layout {
  sites: Placed[];
  refused: Refused[];
  rings: { value: number; r: number }[];
  size: number; // of the sites' marks
  even: boolean;
}

/** What each axis adds to a site's distance. */
export function shares(o: Offer, map: string | undefined): [number, number, number] {
  if (map === "seconds") {
    const [wait, stage, run] = [o.wait_seconds ?? 0, o.stage_seconds ?? 0, o.run_seconds ?? 0];
    return [wait + run, stage, (o.z ?? 0) * (wait + stage + run)];
  }
  return [o.x ?? 0, o.y ?? 0, o.z ?? 0];
}

/** Direction of a site: the middle of the third of its main cause, and towards the next one by
 * how much that adds. */
function direction(v: [number, number, number]): { cause: Cause; angle: number } {
  const main = v.indexOf(Math.max(...v));
  const [next, before] = [v[(main + 1) % 3] ?? 0, v[(main + 2) % 3] ?? 0];
  const most = v[main] || 1;
  const lean = ((next - before) / most) * (third / 2) * 0.8;
  return { cause: causes[main] ?? "computation", angle: up + main * third + lean };
}

function niceStep(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5].map((m) => m * power).find((m) => m >= v) ?? 10 * power;
}

/** A place near a direction that is free, on the same arc; or the one with most space. */
function freePlace(
  taken: { x: number; y: number }[],
  size: number,
  r: number,
  angle: number,
): { x: number; y: number } {
  const step = (size + 1) / Math.max(r, 2 * size);
  const at = (i: number) => {
    const a = angle + (i % 2 ? 1 : -1) * Math.ceil(i / 2) * step;
    return { x: r * Math.cos(a), y: r * Math.sin(a) };
  };
  let best = { place: at(0), space: -1 };
  for (let i = 0; i * step < third * 0.9 && best.space < 2 * size; i++) {
    const place = at(i);
    const space = Math.min(...taken.map((t) => Math.hypot(t.x - place.x, t.y - place.y)), 1000);
    if (space > best.space) best = { place, space };
  }
  return best.place;
}

export function layout(table: OfferTable): Layout {
  const rows = table.rows ?? [];
  const offers = rows.filter((o) => (o.rank ?? 0) > 0);
  const distances = offers.map((o) => o.distance ?? 0).sort((a, b) => a - b);
  const far = distances.at(-1) ?? 0;
  const step = far > 0 ? niceStep((far * 1.02) / 4) : 0.25;
  const count = far > 0 ? Math.ceil((far * 1.02) / step) : 4;
  const reach = step * count;
  // A few sites far away would press the others together: then near arcs get more of the paper.
  const even = far <= 8 * (distances[Math.floor(distances.length / 2)] ?? 0) || far === 0;
  const radius = (v: number) => inner + (rim - inner) * (v / reach) ** (even ? 1 : 0.5);
  const anyAwarded = offers.some((o) => (o.awarded ?? 0) > 0);
  const size = offers.length > many ? small : mark;
  const taken: { x: number; y: number }[] = [];
  const sites = offers.map((offer) => {
    const { cause, angle } = direction(shares(offer, table.map));
    const place = freePlace(taken, size, radius(offer.distance ?? 0), angle);
    taken.push(place);
    return {
      offer,
      ...place,
      cause,
      chosen: anyAwarded ? (offer.awarded ?? 0) > 0 : offer.rank === 1,
    };
  });
  const rings = Array.from({ length: offers.length > 0 ? count : 0 }, (_, i) => ({
    value: (i + 1) * step,
    r: radius((i + 1) * step),
  }));
  return { sites, refused: around(rows.filter((o) => !o.rank)), rings, size, even };
}

/** Refusals stand outside of the rim, in as many rows as they need. */
function around(refusals: Offer[]): Refused[] {
  const room = 110; // in a row
  return refusals.map((offer, i) => {
    const row = Math.floor(i / room);
    const inRow = Math.min(room, refusals.length - row * room);
    const angle = up + ((i % room) / inRow) * 2 * Math.PI + row * 0.03;
    const r = rim + 18 + row * 12;
    return { offer, x: r * Math.cos(angle), y: r * Math.sin(angle) };
  });
}
