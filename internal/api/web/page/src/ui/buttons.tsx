// Buttons that ask before something is lost, and buttons that turn pages.
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  label: string;
  question: string;
  yes: string;
  onYes: () => void;
}

/** A button that asks once more, in its own place. */
export function Asking({ label, question, yes, onYes }: Props) {
  const [asked, ask] = useState(false);
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (asked) back.current?.focus();
  }, [asked]);
  if (!asked)
    return (
      <button type="button" onClick={() => ask(true)}>
        {label}
      </button>
    );
  return (
    <span class="asking" role="group" aria-label={question}>
      <span>{question}</span>
      <button
        type="button"
        class="danger"
        onClick={() => {
          ask(false);
          onYes();
        }}
      >
        {yes}
      </button>
      <button type="button" ref={back} onClick={() => ask(false)}>
        Keep
      </button>
    </span>
  );
}

interface StepProps {
  off: boolean; // there is nothing in this direction
  onStep: () => void;
  children: string;
}

/** A button that turns a page. At the last one it stays where the focus is, and does nothing. */
export function Step({ off, onStep, children }: StepProps) {
  return (
    <button
      type="button"
      aria-disabled={off}
      onClick={() => {
        if (!off) onStep();
      }}
    >
      {children}
    </button>
  );
}
