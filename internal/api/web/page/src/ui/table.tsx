// A table that scrolls by itself where the page is narrower than it is.
import type { ComponentChildren } from "preact";

interface Props {
  label: string; // for screen readers
  heads: string[]; // of the columns; one that begins with ">" stands at the right, as numbers do
  children: ComponentChildren; // its rows
}

export function Table({ label, heads, children }: Props) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col" class={head.startsWith(">") ? "right" : undefined}>
                {head.replace(/^>/, "")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
