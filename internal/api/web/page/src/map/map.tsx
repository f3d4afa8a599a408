// The map of how the sites answered, drawn by hand. One stop of the tab key: arrows go from site
// to site, and what is under them is said in words below.
import { useMemo, useState } from "preact/hooks";
import type { Offer, OfferTable } from "../net/types";
import { nameOr, percent, plural, short } from "../words/format";
import { causes, layout, mark, rim, shares } from "./layout";
import type { Cause } from "./layout";

const shapes: Record<Cause, string> = {
  computation: `M-${mark} 0a${mark} ${mark} 0 1 0 ${2 * mark} 0a${mark} ${mark} 0 1 0 -${2 * mark} 0z`,
  data: `M-5.5 -5.5h11v11h-11z`,
  availability: `M0 -7L6.5 5H-6.5z`,
};

export const words: Record<Cause, string> = {
  computation: "computation",
  data: "data to move",
  availability: "likely to leave",
};

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

export function Map({ rounds, at: round }: { rounds: OfferTable[]; at: number }) {
  const { sites, refused, rings, size, even, edge } = useMemo(
    () => layout(rounds, round),
    [rounds, round],
  );
  const map = rounds[round]?.map;
  const [site, look] = useState<string>();
  const all = [...sites, ...refused];
  const at = Math.max(
    all.findIndex((p) => p.offer.site === site),
    0,
  );
  const under = all[at];
  const go = (i: number) => look(all[Math.min(Math.max(i, 0), all.length - 1)]?.offer.site);
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
        aria-label={`Map of the answers: ${plural(sites.length, "offer", "offers")}, ${plural(refused.length, "refusal", "refusals")}. Arrow keys go from site to site.`}
        aria-describedby="under"
      >
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
        {sites.length <= 12
          ? sites.map((p) => (
              <text key={p.offer.site} class="name" x={p.x + 9} y={p.y - 5}>
                {nameOr(p.offer.name, p.offer.site)}
              </text>
            ))
          : null}
        {under ? <circle class="under" cx={under.x} cy={under.y} r={size + 4} /> : null}
      </svg>
      <figcaption>
        <p id="under" aria-live="polite">
          {under ? sentence(under.offer, map) : "no site has answered"}
        </p>
        <p class="legend">
          {causes.map((c) => (
            <span key={c}>
              <svg viewBox="-8 -8 16 16" aria-hidden="true">
                <path class={`site chosen ${c}`} d={shapes[c]} />
              </svg>{" "}
              {words[c]}
            </span>
          ))}
          <span>filled: chosen</span>
          <span>
            <svg viewBox="-8 -8 16 16" aria-hidden="true">
              <path class="refused" d="M0 -5L5 0L0 5L-5 0z" />
            </svg>{" "}
            refuses
          </span>
        </p>
        <p class="faint">
          The nearer to the job, the better; direction, shape and colour say what adds most to the
          distance.
          {even ? "" : " Near arcs are drawn wider apart."}
        </p>
      </figcaption>
    </figure>
  );
}
