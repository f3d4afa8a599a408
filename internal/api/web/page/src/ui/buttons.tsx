// Buttons that ask before something is lost.
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  label: string;
  question: string;
  yes: string;
  disabled?: boolean;
  onYes: () => void;
}

/** A button that asks once more, in its own place. */
export function Asking({ label, question, yes, disabled, onYes }: Props) {
  const [asked, ask] = useState(false);
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (asked) back.current?.focus();
  }, [asked]);
  if (!asked)
    return (
      <button type="button" disabled={disabled} onClick={() => ask(true)}>
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
