// This site: what is given and used, and how near it is to a typical job.
import type { Standing, Status } from "../net/types";
import { Used } from "../ui/bars";
import { Section } from "../ui/notes";
import { bytes, cores, percent, plural, rate, short } from "../words/format";
import { Week } from "./week";

export function Machine({ status, now }: { status: Status; now: number }) {
  const { ceilings: has, in_use: takes, owner } = status;
  return (
    <Section id="site" title="This site">
      <Used name="cores" part={takes.milli_cpus ?? 0} whole={has.milli_cpus ?? 0} write={cores} />
      <Used
        name="memory"
        part={takes.memory_bytes ?? 0}
        whole={has.memory_bytes ?? 0}
        write={bytes}
      />
      <Used name="disk" part={takes.disk_bytes ?? 0} whole={has.disk_bytes ?? 0} write={bytes} />
      {has.net_bps ? (
        <Used name="line" part={takes.net_bps ?? 0} whole={has.net_bps} write={rate} />
      ) : null}
      <dl>
        {owner ? (
          <>
            <dt>Yields</dt>
            <dd>{owner.how}</dd>
          </>
        ) : null}
        {owner?.other_cores !== undefined && owner.job_cores !== undefined ? (
          <>
            <dt>Now</dt>
            <dd>
              others use {owner.other_cores.toFixed(1)} cores, jobs and the agent{" "}
              {owner.job_cores.toFixed(1)}
            </dd>
          </>
        ) : null}
        <Likely status={status} />
        <dt>Reached</dt>
        <dd>
          {status.reach.reachability || "unknown"}
          {`: ${plural(status.reach.direct, "site", "sites")} directly, ${status.reach.relayed} by a relay`}
        </dd>
        {status.machine?.pending ? (
          <>
            <dt>Measuring</dt>
            <dd>{status.machine.pending}</dd>
          </>
        ) : null}
      </dl>
      <Nearness standing={status.reference} />
      <Week hours={owner?.hours ?? ""} now={now} />
    </Section>
  );
}

function Likely({ status }: { status: Status }) {
  const outlook = status.availability?.outlook ?? [];
  if (outlook.length === 0) return null;
  return (
    <>
      <dt>Likely to leave</dt>
      <dd>{outlook.map((o) => `within ${o.hours} h: ${percent(o.z)} (${o.sure})`).join("; ")}</dd>
    </>
  );
}

/** x, y and z in plain words. */
function Nearness({ standing }: { standing: Standing | undefined }) {
  if (!standing) return null;
  if (standing.refusal)
    return (
      <p>
        Fit for a typical job ({standing.job}): refused: {standing.refusal}
      </p>
    );
  const words = (v: number | undefined, none: string, some: string) =>
    v === undefined ? "unknown" : v === 0 ? none : `${short(v)}: ${some}`;
  return (
    <>
      <h3>Fit for a typical job</h3>
      <p class="faint">
        {standing.job}: distance {short(standing.distance) || "unknown"}; the nearest site gets a
        job
      </p>
      <dl>
        <dt>Computation (x)</dt>
        <dd>
          {words(
            standing.x,
            "0: enough of everything",
            "it asks for more than this machine gives now",
          )}
        </dd>
        <dt>Data (y)</dt>
        <dd>
          {words(standing.y, "0: nothing to move", "times its run time to move its data here")}
        </dd>
        <dt>Risk (z)</dt>
        <dd>
          {words(
            standing.z,
            "0: certain to stay",
            `likely to leave before it ends: ${percent(standing.z)}`,
          )}
        </dd>
      </dl>
    </>
  );
}
