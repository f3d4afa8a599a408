// The map of how the sites answered, drawn by hand. One stop of the tab key: arrows go from site
// to site, and what is under them is said in words below.
import { useMemo, useState } from "preact/hooks";
import type { Offer, OfferTable } from "../net/types";
import { nameOr, percent, plural, short } from "../words/format";
import { Arrows } from "./arrows";
import { arrowsOf } from "./changes";
import type { Change, Names } from "./changes";
import { layout, mark, shares } from "./layout";
import { Legend, shapes } from "./legend";
import { Labels, Paper } from "./paper";

/** A site's answer in a sentence. */
export function sentence(o: Offer, map: string | undefined): string {
  const name = nameOr(o.name, o.site);
  if (!o.rank) return `${name} refuses: ${o.refusal ?? ""}`;
  const [x, y] = shares(o, map);
  const parts =
    map === "seconds"
      ? `${short(x)} s until it has run, ${short(y)} s to move data, likely to leave ${percent(o.z)}`
      : `computation ${short(o.x)}, data ${short(o.y)}, likely to leave ${percent(o.z)}`;
  const got = o.awarded ? `; has ${plural(o.awarded, "task", "tasks")}` : "";
  return `${o.rank}. ${name}: distance ${short(o.distance)} (${parts})${o.behind ? `; ${o.behind}` : ""}${got}`;
}

const keys: Record<string, number> = {
  ArrowRight: 1,
  ArrowDown: 1,
  ArrowLeft: -1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
};

interface Props {
  rounds: OfferTable[];
  at: number; // which of them is shown
  changes: Change[]; // tasks that went from site to site
  names: Names; // of the sites in them
}

export function Map({ rounds, at: round, changes, names }: Props) {
  const arrows = useMemo(() => arrowsOf(changes), [changes]);
  const ends = [...new Set(arrows.flatMap((a) => [a.from, a.to]))].sort().join(" ");
  const { sites, refused, absent, rings, size, even, edge } = useMemo(
    () => layout(rounds, round, ends ? ends.split(" ") : []),
    [rounds, round, ends],
  );
  const map = rounds[round]?.map;
  const [site, look] = useState<string>();
  const all = [
    ...[...sites, ...refused].map((p) => ({
      x: p.x,
      y: p.y,
      site: p.offer.site,
      text: () => sentence(p.offer, map),
    })),
    ...absent.map((p) => ({
      ...p,
      text: () => `${names.get(p.site) ?? ""}: not asked in this round`,
    })),
  ];
  const at = Math.max(
    all.findIndex((p) => p.site === site),
    0,
  );
  const under = all[at];
  const go = (i: number) => look(all[Math.min(Math.max(i, 0), all.length - 1)]?.site);
  const press = (e: KeyboardEvent) => {
    const by = keys[e.key] ?? (e.key === "Home" ? -all.length : e.key === "End" ? all.length : 0);
    if (by === 0) return;
    e.preventDefault();
    go(at + by);
  };
  const over = (i: number) => ({ onPointerEnter: () => go(i), onClick: () => go(i) });
  return (
    <figure class="map">
      <svg
        viewBox={`${-edge} ${-edge} ${2 * edge} ${2 * edge}`}
        role="application"
        tabindex={0}
        onKeyDown={press}
        aria-label={`Map of the answers: ${plural(sites.length, "offer", "offers")}, ${plural(refused.length, "refusal", "refusals")}, ${plural(arrows.length, "arrow", "arrows")} of tasks that changed their site. Arrow keys go from site to site.`}
        aria-describedby="under"
      >
        <Paper rings={rings} />
        <Arrows
          arrows={arrows}
          names={names}
          placeOf={(end) => all.find((p) => p.site === end)}
          gap={size + 3}
        />
        {absent.map((p, i) => (
          <circle
            key={p.site}
            class="absent"
            r="4"
            cx={p.x.toFixed(1)}
            cy={p.y.toFixed(1)}
            {...over(sites.length + refused.length + i)}
          />
        ))}
        {refused.map((p, i) => (
          <path
            key={p.offer.site}
            class="refused"
            d="M0 -4L4 0L0 4L-4 0z"
            transform={`translate(${p.x.toFixed(1)} ${p.y.toFixed(1)})`}
            {...over(sites.length + i)}
          />
        ))}
        {sites.map((p, i) => (
          <path
            key={p.offer.site}
            class={`site ${p.cause}${p.chosen ? " chosen" : ""}`}
            d={shapes[p.cause]}
            transform={`translate(${p.x.toFixed(1)} ${p.y.toFixed(1)}) scale(${(size / mark).toFixed(2)})`}
            {...over(i)}
          />
        ))}
        <Labels sites={sites} absent={absent} names={names} />
        {under ? <circle class="under" cx={under.x} cy={under.y} r={size + 4} /> : null}
      </svg>
      <figcaption>
        <p id="under" aria-live="polite">
          {under?.text() ?? "no site has answered"}
        </p>
        <Legend even={even} arrows={arrows.length > 0} />
      </figcaption>
    </figure>
  );
}
