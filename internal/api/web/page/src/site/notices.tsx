// What is wrong, why, and what to do.
import type { Notice } from "../net/types";
import { Section } from "../ui/notes";

export function Notices({ notices }: { notices: Notice[] }) {
  if (notices.length === 0) return null;
  return (
    <Section id="notices" title={`Notices: ${notices.length}`} wide>
      <ul class="notices">
        {notices.map((n) => (
          <li key={n.text}>
            <strong>{n.text}</strong>
            {n.cause ? `: ${n.cause}` : ""}
            {n.action ? <div>To do: {n.action}</div> : null}
          </li>
        ))}
      </ul>
    </Section>
  );
}
