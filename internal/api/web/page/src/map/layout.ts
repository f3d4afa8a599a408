// Where each site stands on the map: the job in the centre, the radius is the distance, and the
// direction is what causes it. Rounds share one scale, and a site whose answer stays the same keeps
// its place from round to round. Pure: numbers in, numbers out.
import type { Offer, OfferTable } from "../net/types";
import { short } from "../words/format";

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

export interface Place {
  x: number;
  y: number;
}
export interface Placed extends Place {
  offer: Offer;
  cause: Cause;
  chosen: boolean;
}
export interface Refused extends Place {
  offer: Offer;
}
/** A site at which tasks were and that is among the answers to other rounds, or to none. */
export interface Absent extends Place {
  site: string;
}
export interface Layout {
  sites: Placed[];
  refused: Refused[];
  absent: Absent[];
  rings: { value: number; r: number }[];
  size: number; // of the sites' marks
  even: boolean;
  edge: number; // where the drawing ends
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
function freePlace(taken: Place[], size: number, r: number, angle: number): Place {
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

/** What the distances of all rounds make of the paper. */
interface Scale {
  rings: { value: number; r: number }[];
  even: boolean;
  radius: (distance: number) => number;
  size: number; // of the sites' marks
}

const offersOf = (table: OfferTable) => (table.rows ?? []).filter((o) => (o.rank ?? 0) > 0);
const refusalsOf = (table: OfferTable) => (table.rows ?? []).filter((o) => !o.rank);

function scaleOf(rounds: OfferTable[]): Scale {
  const distances = rounds.flatMap((t) => offersOf(t).map((o) => o.distance ?? 0));
  distances.sort((a, b) => a - b);
  const far = distances.at(-1) ?? 0;
  const step = far > 0 ? niceStep((far * 1.02) / 4) : 0.25;
  const count = far > 0 ? Math.ceil((far * 1.02) / step) : 4;
  const reach = step * count;
  // A few sites far away would press the others together: then near arcs get more of the paper.
  const even = far <= 8 * (distances[Math.floor(distances.length / 2)] ?? 0) || far === 0;
  const radius = (v: number) => inner + (rim - inner) * (v / reach) ** (even ? 1 : 0.5);
  const rings = Array.from({ length: distances.length > 0 ? count : 0 }, (_, i) => ({
    value: (i + 1) * step,
    r: radius((i + 1) * step),
  }));
  const size = rounds.some((t) => offersOf(t).length > many) ? small : mark;
  return { rings, even, radius, size };
}

/** An answer as far as it decides about the place. */
const answer = (o: Offer, map: string | undefined) =>
  [o.site, short(o.distance), ...shares(o, map).map(short)].join(" ");

/** Places of a round's offers, by their answers: that of the round before, or a new one. */
function placesOf(
  table: OfferTable,
  before: Map<string, Place>,
  { radius, size }: Scale,
): Map<string, Place> {
  const places = new Map<string, Place>();
  const rest: Offer[] = [];
  for (const offer of offersOf(table)) {
    const same = before.get(answer(offer, table.map));
    if (same) places.set(answer(offer, table.map), same);
    else rest.push(offer);
  }
  const taken = [...places.values()];
  for (const offer of rest) {
    const { angle } = direction(shares(offer, table.map));
    const place = freePlace(taken, size, radius(offer.distance ?? 0), angle);
    taken.push(place);
    places.set(answer(offer, table.map), place);
  }
  return places;
}

/** The map of one of the rounds, with those of some more sites that are not in it. */
export function layout(rounds: OfferTable[], at: number, more: string[]): Layout {
  const scale = scaleOf(rounds);
  let places = new Map<string, Place>();
  for (const table of rounds.slice(0, at + 1)) places = placesOf(table, places, scale);
  const table = rounds[at];
  const offers = table ? offersOf(table) : [];
  const anyAwarded = offers.some((o) => (o.awarded ?? 0) > 0);
  const sites = offers.map((offer) => ({
    offer,
    ...(places.get(answer(offer, table?.map)) ?? { x: 0, y: 0 }),
    cause: direction(shares(offer, table?.map)).cause,
    chosen: anyAwarded ? (offer.awarded ?? 0) > 0 : offer.rank === 1,
  }));
  const answered = rounds.map((t) => new Set((t.rows ?? []).map((o) => o.site)));
  const missing = more.filter((site) => answered.some((sites) => !sites.has(site)));
  const refusing = rounds.flatMap(refusalsOf).map((o) => o.site);
  const outside = around(new Set([...refusing, ...missing]));
  const placeOutside = (site: string) => outside.get(site) ?? { x: 0, y: 0 };
  const refused = (table ? refusalsOf(table) : []).map((offer) => ({
    offer,
    ...placeOutside(offer.site),
  }));
  const absent = missing
    .filter((site) => !answered[at]?.has(site))
    .map((site) => ({ site, ...placeOutside(site) }));
  const { rings, size, even } = scale;
  const edge = rim + 24 + 12 * rowsOf(outside.size);
  return { sites, refused, absent, rings, size, even, edge };
}

const room = 110; // places in a row outside of the rim
const rowsOf = (n: number) => Math.ceil(n / room);

/** Sites outside of the rim, in as many rows as they need. */
function around(sites: Set<string>): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const site of sites) {
    const i = places.size;
    const row = Math.floor(i / room);
    const inRow = Math.min(room, sites.size - row * room);
    const angle = up + ((i % room) / inRow) * 2 * Math.PI + row * 0.03;
    const r = rim + 18 + row * 12;
    places.set(site, { x: r * Math.cos(angle), y: r * Math.sin(angle) });
  }
  return places;
}
