// What the owner gives, as sliders and switches that act immediately.
import { useEffect, useState } from "preact/hooks";
import { reload, useLoaded } from "../net/live";
import { send } from "../net/http";
import type { Configuration, Setting, Status } from "../net/types";
import { Section, useAction, useGuest, Wrong } from "../ui/notes";
import { bytes } from "../words/format";
import { Slider } from "./slider";
import type { Limit } from "./slider";

const gib = 2 ** 30;
const lines = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]; // Mbit/s

/** The line's place on the slider: the lowest that is not below a rate such as 5Mbit/s. */
function lineAt(value = ""): number {
  const match = /^([\d.]+)\s*([kMG]?)bit\/s$/.exec(value);
  const mega = Number(match?.[1] ?? 0) * ({ k: 0.001, M: 1, G: 1000 }[match?.[2] ?? ""] ?? 1e-6);
  const at = lines.findIndex((l) => l >= mega);
  return at < 0 ? lines.length - 1 : at;
}

function limitsOf(s: Status, value: (name: string) => string | undefined): Limit[] {
  const m = s.machine;
  const size = (name: string, label: string, now = 0, most = 0): Limit => {
    const step = most > 64 * gib ? 1 : 0.25;
    return {
      name,
      label,
      at: Math.round(now / gib / step) * step,
      min: step,
      step,
      max: Math.max(step, Math.floor(Math.max(most, now) / gib / step) * step),
      text: (v) => (Number.isInteger(v) ? `${v}GiB` : `${Math.round(v * 1024)}MiB`),
      show: (v) => bytes(v * gib),
    };
  };
  const line = (name: string, label: string): Limit => ({
    name,
    label,
    at: lineAt(value(name)),
    min: 0,
    max: lines.length - 1,
    step: 1,
    text: (v) => `${lines[v]}Mbit/s`,
    show: (v) => `${lines[v]} Mbit/s`,
  });
  const part = (name: string, label: string): Limit => ({
    name,
    label,
    at: Number(value(name) ?? 100),
    min: 5,
    max: 100,
    step: 5,
    text: String,
    show: (v) => `${v} %`,
  });
  const all = m?.cores ?? Math.ceil((s.ceilings.milli_cpus ?? 1000) / 1000);
  return [
    {
      name: "ceilings.cpus",
      label: "Cores",
      at: (s.ceilings.milli_cpus ?? 0) / 1000,
      min: 0.5,
      max: all,
      step: 0.5,
      text: String,
      show: (v) => `${v} of ${all}`,
    },
    size("ceilings.memory", "Memory", s.ceilings.memory_bytes, m?.memory_bytes),
    size(
      "ceilings.disk",
      "Disk",
      s.ceilings.disk_bytes,
      Math.max(m?.free_disk_bytes ?? 0, s.ceilings.disk_bytes ?? 0),
    ),
    line("rates.down", "Data in"),
    line("rates.up", "Data out"),
    part("in-use.cpus", "Cores while you are there"),
    part("in-use.memory", "Memory while you are there"),
  ];
}

const switches: [string, string][] = [
  ["owner.yield", "Freeze jobs while you use the machine"],
  ["owner.input", "Pause while keyboard or mouse are in use"],
  ["owner.battery", "Share also on battery"],
  ["owner.metered", "Share also while data costs money"],
];

export function Limits({ status }: { status: Status }) {
  const guest = useGuest();
  const { value: configuration, error } = useLoaded<Configuration>(
    "configuration",
    guest ? "" : "/configuration",
  );
  const { busy, wrong, act } = useAction();
  if (guest) return null;
  const settings = new Map(
    (configuration?.settings ?? []).map((s): [string, Setting] => [s.name, s]),
  );
  const change = (name: string, text: string) =>
    act(async () => {
      const answer = await send<Configuration>("PATCH", "/configuration", {
        settings: { [name]: text },
      });
      reload("configuration");
      reload("status");
      reload("sites");
      if (answer.problem) throw new Error(answer.problem);
      return `${name}: ${text}, in force now`;
    });
  return (
    <Section id="limits" title="What you give">
      <p class="faint">
        Acts immediately. Written to {configuration?.file ?? "the configuration file"}.
      </p>
      {limitsOf(status, (name) => settings.get(name)?.value).map((l) => (
        <Slider
          key={l.name}
          limit={l}
          busy={busy}
          wrong={wrong}
          place={settings.get(l.name)?.place}
          onSet={(v) => change(l.name, l.text(v))}
        />
      ))}
      {switches.map(([name, label]) => (
        <label key={name} class="switch">
          <input
            type="checkbox"
            disabled={!settings.has(name)}
            checked={settings.get(name)?.value === "true"}
            onChange={(e) => {
              const { checked } = e.currentTarget;
              e.currentTarget.checked = !checked; // until the agent has taken it
              change(name, String(checked));
            }}
          />
          {label}
        </label>
      ))}
      <Hours
        value={settings.get("owner.hours")?.value ?? ""}
        busy={!configuration}
        onSet={(text) => change("owner.hours", text)}
      />
      <Wrong text={wrong || error || configuration?.problem} />
    </Section>
  );
}

function Hours({
  value,
  busy,
  onSet,
}: {
  value: string;
  busy: boolean;
  onSet: (text: string) => void;
}) {
  const [text, type] = useState(value);
  useEffect(() => type(value), [value]);
  return (
    <form
      class="hours"
      onSubmit={(e) => {
        e.preventDefault();
        onSet(text.trim());
      }}
    >
      <label for="hours">Hours</label>
      <input
        id="hours"
        value={text}
        placeholder="mon-fri 18:00-08:00"
        aria-describedby="hours-help"
        onInput={(e) => type(e.currentTarget.value)}
      />
      <button type="submit" disabled={busy || text.trim() === value}>
        Set
      </button>
      <small id="hours-help">
        such as mon-fri 18:00-08:00, sat-sun 00:00-24:00; empty = at all hours
      </small>
    </form>
  );
}
