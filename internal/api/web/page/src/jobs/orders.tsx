// What can be ordered about a job.
import { reload } from "../net/live";
import { send } from "../net/http";
import type { Job } from "../net/types";
import { Asking } from "../ui/buttons";
import { useAction, Wrong } from "../ui/notes";
import { hasEnded } from "./phases";

export function Orders({ job }: { job: Job }) {
  const { wrong, act } = useAction();
  const name = job.name || job.id;
  if (hasEnded(job.phase)) return null;
  const order = (path: string, said: string) =>
    act(async () => {
      await send("POST", `/jobs/${job.id}/${path}`);
      reload("jobs");
      reload("job");
      return said;
    });
  return (
    <div class="line">
      {job.held ? (
        <button type="button" onClick={() => order("release", `Job ${name} may be placed.`)}>
          Release
        </button>
      ) : !job.started ? (
        <button type="button" onClick={() => order("hold", `Job ${name} is held.`)}>
          Hold
        </button>
      ) : null}
      <Asking
        label="Cancel"
        question={`Cancel job ${name}?`}
        yes="Cancel it"
        onYes={() => order("cancel", `Job ${name} is cancelled.`)}
      />
      <Wrong text={wrong} />
    </div>
  );
}
