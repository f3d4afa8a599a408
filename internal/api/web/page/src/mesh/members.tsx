// Sites that wait to be admitted by hand.
import { reload, useLoaded } from "../net/live";
import { send } from "../net/http";
import type { Member, Members } from "../net/types";
import { Asking } from "../ui/buttons";
import { Section, useAction, useGuest, Wrong } from "../ui/notes";
import { clock } from "../words/format";

export function Pending({ now }: { now: number }) {
  const { value, error } = useLoaded<Members>("members", "/members");
  const waiting = (value?.sites ?? []).filter((m) => m.standing === "pending");
  if (waiting.length === 0) return error ? <Wrong text={error} /> : null;
  return (
    <Section id="pending" title={`Waits to be admitted: ${waiting.length}`} wide>
      <ul class="notices">
        {waiting.map((m) => (
          <Row key={m.site} member={m} now={now} />
        ))}
      </ul>
    </Section>
  );
}

function Row({ member, now }: { member: Member; now: number }) {
  const { wrong, act } = useAction();
  const guest = useGuest();
  const name = member.name || member.site;
  const decide = (verb: string, said: string) =>
    act(async () => {
      await send("POST", `/members/${encodeURIComponent(member.site)}/${verb}`, {});
      reload("members");
      reload("status");
      return said;
    });
  return (
    <li>
      <strong>{name}</strong>
      {member.note ? `: ${member.note}` : ""}
      {member.since ? `, since ${clock(member.since, now)}` : ""}
      <div>
        <code class="id">{member.site}</code>
      </div>
      {guest ? null : (
        <div class="line">
          <button type="button" onClick={() => decide("admit", `${name} is a member now.`)}>
            Accept
          </button>
          <Asking
            label="Refuse"
            question={`Keep ${name} out?`}
            yes="Keep it out"
            onYes={() => decide("ban", `${name} is kept out.`)}
          />
        </div>
      )}
      <Wrong text={wrong} />
    </li>
  );
}
