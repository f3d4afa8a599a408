// The marks of the map, and what they mean.
import { causes, mark } from "./layout";
import type { Cause } from "./layout";

/** The mark of each cause. */
export const shapes: Record<Cause, string> = {
  computation: `M-${mark} 0a${mark} ${mark} 0 1 0 ${2 * mark} 0a${mark} ${mark} 0 1 0 -${2 * mark} 0z`,
  data: `M-5.5 -5.5h11v11h-11z`,
  availability: `M0 -7L6.5 5H-6.5z`,
};

/** Each cause for people. */
export const words: Record<Cause, string> = {
  computation: "computation",
  data: "data to move",
  availability: "likely to leave",
};

interface Props {
  even: boolean; // arcs have the same space between them
  arrows: boolean; // there are some
}

export function Legend({ even, arrows }: Props) {
  return (
    <>
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
        {arrows ? (
          <>
            <Line kind="fault" text="to the next site, after a fault" />
            <Line kind="order" text="moved or stopped on order" />
            <span>
              <svg viewBox="-8 -8 16 16" aria-hidden="true">
                <circle class="absent" r="5" />
              </svg>{" "}
              not asked in this round
            </span>
          </>
        ) : null}
      </p>
      <p class="faint">
        The nearer to the job, the better; direction, shape and colour say what adds most to the
        distance.
        {even ? "" : " Near arcs are drawn wider apart."}
      </p>
    </>
  );
}

function Line({ kind, text }: { kind: "fault" | "order"; text: string }) {
  return (
    <span>
      <svg viewBox="-8 -8 16 16" aria-hidden="true" class={`arrow ${kind}`}>
        <path d="M-8 0H8" stroke-width="2" />
      </svg>{" "}
      {text}
    </span>
  );
}
