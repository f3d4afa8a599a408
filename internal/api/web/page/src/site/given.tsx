// What this site gave this week, for whom, and day by day.
import { useLoaded } from "../net/live";
import type { Given as Sum, GivenDay, GivenShare } from "../net/types";
import { Section, Wrong } from "../ui/notes";
import { coreHours, nameOr, plural } from "../words/format";

const others = (d: GivenDay) => d.for.reduce((sum, s) => (s.own ? sum : sum + s.core_seconds), 0);

const sharer = (s: GivenShare) =>
  s.own ? "your own jobs" : s.site ? nameOr(s.name, s.site) : "further sites";

export function Given({ week }: { week: Sum | undefined }) {
  const { value: days, error } = useLoaded<GivenDay[]>("given", "/given");
  const shares = week?.for ?? [];
  return (
    <Section id="given" title="Given">
      {shares.length === 0 ? (
        <p class="faint">nothing was given this week</p>
      ) : (
        <>
          <p>
            This week <strong>{coreHours(week?.core_seconds ?? 0)} core-hours</strong> for others,{" "}
            {plural(week?.tasks ?? 0, "task", "tasks")}
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">For</th>
                <th scope="col" class="right">
                  Core-hours
                </th>
                <th scope="col" class="right">
                  Tasks
                </th>
              </tr>
            </thead>
            <tbody>
              {shares.slice(0, 10).map((s) => (
                <tr key={s.site ?? ""}>
                  <td>{sharer(s)}</td>
                  <td class="right">{coreHours(s.core_seconds)}</td>
                  <td class="right">{s.tasks}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {shares.length > 10 ? <p class="faint">and {shares.length - 10} more</p> : null}
        </>
      )}
      {days && days.length > 1 ? <Days days={days} /> : null}
      <Wrong text={error} />
    </Section>
  );
}

/** A bar for each day on which something was given. */
function Days({ days }: { days: GivenDay[] }) {
  const [width, height] = [420, 60];
  const step = width / Math.max(days.length, 7);
  const most = Math.max(...days.map(others), 1);
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return (
    <figure>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`core-hours for others by day, ${first} to ${last}, at most ${coreHours(most)}`}
      >
        <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} class="axis" />
        {days.map((d, i) => {
          const tall = (others(d) / most) * (height - 2);
          return (
            <rect
              key={d.date}
              class="given"
              x={i * step + 1}
              width={Math.max(step - 2, 1)}
              y={height - tall}
              height={tall}
            >
              <title>
                {d.date}: {coreHours(others(d))} core-hours
              </title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        {first} to {last}: days on which something was given, at most {coreHours(most)} core-hours
      </figcaption>
    </figure>
  );
}
