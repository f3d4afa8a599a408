// Whether this site shares, and the order to pause.
import { reload } from "../net/live";
import { send } from "../net/http";
import type { Status } from "../net/types";
import { useAction, useGuest, Wrong } from "../ui/notes";
import { plural } from "../words/format";
import { sharing } from "../words/sharing";

const signs = { good: "●", warn: "◐", bad: "▲" };

export function State({ status, now }: { status: Status; now: number }) {
  const { text, tone } = sharing(status, now);
  return (
    <section id="state" class={`state ${tone}`} aria-labelledby="state-title">
      <div>
        <h2 id="state-title" aria-live="polite">
          <span aria-hidden="true">{signs[tone]} </span>Sharing: {text}
        </h2>
        <p>
          {users(status)}; in domain {status.domain} with{" "}
          {plural(Math.max(status.members - 1, 0), "other site", "other sites")}, {status.peers}{" "}
          connected
        </p>
      </div>
      <Orders status={status} />
    </section>
  );
}

/** Whose jobs are here. */
function users(s: Status): string {
  const names = new Set((s.running ?? []).map((r) => r.submitter_name || r.submitter.slice(-8)));
  const some = [...names].sort().slice(0, 3).join(", ");
  if (names.size === 0) return "No job is here at the moment";
  const more = names.size > 3 ? ` and ${names.size - 3} more` : "";
  return `${plural(s.running?.length ?? 0, "job is here", "jobs are here")} for ${some}${more}`;
}

function Orders({ status }: { status: Status }) {
  const { wrong, act } = useAction();
  if (useGuest()) return null;
  const order = (path: string, said: string, body?: object) =>
    act(async () => {
      await send("POST", path, body);
      reload("status");
      return said;
    });
  return (
    <div class="orders">
      <button
        type="button"
        class="big"
        onClick={() =>
          status.paused
            ? order("/resume", "Resumed: this site takes jobs again.")
            : order("/pause", "Paused until you resume.", {})
        }
      >
        {status.paused ? "Resume" : "Pause"}
      </button>
      {status.paused ? null : (
        <button
          type="button"
          class="big second"
          onClick={() => order("/pause", "Paused for an hour.", { for_seconds: 3600 })}
        >
          Pause for 1 h
        </button>
      )}
      <Wrong text={wrong} />
    </div>
  );
}
