// The rounds of a job: the agent remembers some before the page was opened, and the page those that
// it sees. A slider chooses the one that is shown; it follows the newest until it is moved back.
import { useEffect, useState } from "preact/hooks";
import { get } from "../net/http";
import type { OfferTable } from "../net/types";
import { clock } from "../words/format";

const most = 16; // rounds that are kept; the oldest go

/** The tables with one more, by their rounds. A newer answer replaces what was known of its round,
 * and of later ones: then the agent has begun to count anew. */
function withRound(known: OfferTable[], table: OfferTable): OfferTable[] {
  if (!table.rows?.length) return known;
  return [...known.filter((t) => t.round < table.round), table].slice(-most);
}

/** The tables with those before them that the agent remembers. */
function withPast(known: OfferTable[], past: OfferTable[]): OfferTable[] {
  const first = known[0]?.round ?? Infinity;
  return [...past.filter((t) => t.round < first), ...known].slice(-most);
}

/** The rounds of a job, oldest first, which of them is shown, and what chooses another one. */
export function useRounds(
  id: string,
  last: OfferTable | undefined,
): {
  rounds: OfferTable[];
  at: number;
  choose: (i: number) => void;
} {
  const [known, keep] = useState<OfferTable[]>([]);
  const [back, goBack] = useState<number>(); // the round that a person has gone back to
  useEffect(() => {
    if (last) keep((old) => withRound(old, last));
  }, [last]);
  useEffect(() => {
    // Without them the page shows what it sees, as it would show a job that has begun just now.
    get<OfferTable[]>(`/jobs/${id}/rounds?limit=${most}`).then(
      (past) => keep((old) => withPast(old, past)),
      () => {},
    );
  }, [id]);
  const rounds = known.length > 0 || !last ? known : [last];
  const newest = rounds.length - 1;
  const chosen = back === undefined ? newest : rounds.findIndex((t) => t.round >= back);
  const choose = (i: number) => goBack(i >= newest ? undefined : rounds[i]?.round);
  return { rounds, at: chosen < 0 ? newest : chosen, choose };
}

interface Props {
  rounds: OfferTable[];
  at: number;
  now: number;
  onChoose: (i: number) => void;
}

/** Chooses one of several rounds. */
export function RoundSlider({ rounds, at, now, onChoose }: Props) {
  const [shown, newest] = [rounds[at], rounds.at(-1)];
  if (rounds.length < 2 || !shown || !newest) return null;
  const asked = shown.asked ? `, asked ${clock(shown.asked, now)}` : "";
  const text = `round ${shown.round} of ${newest.round}${asked}`;
  return (
    <p class="rounds">
      <label for="round">
        Round <span class="faint">(at most the last {most})</span>
      </label>
      <input
        id="round"
        type="range"
        min={0}
        max={rounds.length - 1}
        value={at}
        aria-valuetext={text}
        onInput={(e) => onChoose(Number(e.currentTarget.value))}
      />
      <output for="round">{text}</output>
    </p>
  );
}
