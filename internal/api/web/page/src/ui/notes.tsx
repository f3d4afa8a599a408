// What is said to the reader: a line that screen readers hear, and what went wrong.
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

/** What a guest may not do is not shown to guests. */
export const Guest = createContext(false);
export const useGuest = () => useContext(Guest);

export const Say = createContext<(text: string) => void>(() => {});

/** Does something and says what came from it; busy while it is under way, when nothing else is
 * begun. What orders it stays enabled, so that it keeps the focus. */
export function useAction(): {
  busy: boolean;
  wrong: string;
  act: (what: () => Promise<string>) => void;
} {
  const say = useContext(Say);
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const act = (what: () => Promise<string>) => {
    if (busy) return;
    setBusy(true);
    setWrong("");
    void what()
      .then(say, (error: Error) => setWrong(error.message))
      .finally(() => setBusy(false));
  };
  return { busy, wrong, act };
}

export function Wrong({ text }: { text?: string | undefined }) {
  return text ? (
    <p class="wrong" role="alert">
      {text}
    </p>
  ) : null;
}

/** A part of the page with its heading. */
export function Section({
  id,
  title,
  children,
  wide,
}: {
  id: string;
  title: string;
  children: ComponentChildren;
  wide?: boolean;
}) {
  return (
    <section id={id} aria-labelledby={`${id}-title`} class={wide ? "card wide" : "card"}>
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </section>
  );
}
