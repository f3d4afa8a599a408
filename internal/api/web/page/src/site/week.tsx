// The hours of the week in which the site is shared, as a strip for each day.
import { nextShare, share, windowsOf } from "../words/hours";
import { clock } from "../words/format";

const names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

export function Week({ hours, now }: { hours: string; now: number }) {
  const windows = hours ? windowsOf(hours) : undefined;
  if (!windows) return <p>{hours ? `Shared ${hours}` : "Shared at all hours"}</p>;
  const next = nextShare(windows, now);
  const [left, wide, tall] = [34, 16, 12];
  const cells = names.flatMap((name, row) =>
    Array.from({ length: 24 }, (_, hour) => ({ name, row, hour })),
  );
  const today = new Date(now);
  return (
    <figure>
      <svg
        viewBox={`0 0 ${left + 24 * wide} ${8 * tall + 4}`}
        role="img"
        aria-label={`shared ${hours}`}
      >
        {names.map((name, row) => (
          <text key={name} x="0" y={(row + 1) * tall - 2} class="tick">
            {name}
          </text>
        ))}
        {[0, 6, 12, 18].map((h) => (
          <text key={h} x={left + h * wide} y={8 * tall} class="tick">
            {h}:00
          </text>
        ))}
        {cells.map(({ row, hour }) => {
          const percent = share(windows, (row + 1) % 7, hour * 60);
          const present = (row + 1) % 7 === today.getDay() && hour === today.getHours();
          return (
            <rect
              key={`${row}.${hour}`}
              x={left + hour * wide}
              y={row * tall + 1}
              width={wide - 1}
              height={tall - 2}
              class={(percent ? "shared" : "closed") + (present ? " present" : "")}
              fill-opacity={percent ? 0.25 + (0.75 * percent) / 100 : 1}
            />
          );
        })}
      </svg>
      <figcaption>
        Shared {hours} (filled, paler with a share)
        {next ? `; changes ${clock(new Date(next).toISOString(), now)}` : ""}
      </figcaption>
    </figure>
  );
}
