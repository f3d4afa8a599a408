// A limit as a slider. It can be moved on while an earlier place is being set; the last one counts.
import { useEffect, useState } from "preact/hooks";

const calm = 300; // ms without a move before it is set: an arrow key is one move

/** What a slider's places mean in the agent's words and for people. */
export interface Limit {
  name: string;
  label: string;
  at: number;
  min: number;
  max: number;
  step: number;
  text: (place: number) => string;
  show: (place: number) => string;
}

interface Props {
  limit: Limit;
  busy: boolean; // something is being set
  wrong: string; // why it was not; then the slider goes back
  place: string | undefined; // where the value comes from
  onSet: (v: number) => void;
}

export function Slider({ limit, busy, wrong, place, onSet }: Props) {
  const [at, move] = useState(limit.at);
  const [moved, setMoved] = useState(false);
  useEffect(() => {
    if (!moved) move(limit.at);
  }, [limit.at]);
  useEffect(() => {
    if (wrong) move(limit.at);
  }, [wrong]);
  useEffect(() => {
    if (!moved || busy) return undefined;
    const timer = window.setTimeout(() => {
      setMoved(false);
      onSet(at);
    }, calm);
    return () => window.clearTimeout(timer);
  }, [at, moved, busy]);
  return (
    <label class="slider">
      <span>{limit.label}</span>
      <input
        type="range"
        name={limit.name}
        min={limit.min}
        max={limit.max}
        step={limit.step}
        value={at}
        aria-valuetext={limit.show(at)}
        title={place ? `${limit.name}, from ${place}` : limit.name}
        onInput={(e) => move(Number(e.currentTarget.value))}
        onChange={() => setMoved(true)}
      />
      <output>{limit.show(at)}</output>
    </label>
  );
}
