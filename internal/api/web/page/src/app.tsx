// The page as a whole: what stands where, and what is said to screen readers.
import { useEffect, useState } from "preact/hooks";
import { closeSession } from "./net/http";
import { useLoaded, watch } from "./net/live";
import type { Session, Status } from "./net/types";
import { Detail } from "./jobs/detail";
import { Jobs } from "./jobs/list";
import { Pending } from "./mesh/members";
import { Sites } from "./mesh/sites";
import { Given } from "./site/given";
import { Here } from "./site/here";
import { Limits } from "./site/limits";
import { Machine } from "./site/machine";
import { Notices } from "./site/notices";
import { State } from "./site/state";
import { Guest, Say, useAction, Wrong } from "./ui/notes";

const saidFor = 8000; // ms
const tick = 5000; // ms between two looks at the clock

export function App({ session }: { session: Session }) {
  const [connected, connect] = useState(true);
  const [said, say] = useSaid();
  const now = useNow();
  const open = useOpenJob();
  const { value: status, error } = useLoaded<Status>("status", "/status");
  useEffect(() => watch(connect), []);
  useEffect(() => {
    if (status) document.title = `${status.name || "siteagent"} (${status.domain})`;
  }, [status?.name, status?.domain]);
  return (
    <Guest.Provider value={session.guest}>
      <Say.Provider value={say}>
        <Head status={status} guest={session.guest} />
        <p class={connected ? "away hidden" : "away"} role="status">
          {connected ? "" : "not connected; trying again"}
        </p>
        <p class={said ? "said" : "said hidden"} role="status">
          {said}
        </p>
        <main id="main" tabIndex={-1}>
          {status ? <State status={status} now={now} /> : <p>{error ?? "asking the agent"}</p>}
          <div class="cards">
            <Notices notices={status?.notices ?? []} />
            <Pending now={now} />
            <Jobs open={open} now={now} />
            {open ? <Detail key={open} id={open} now={now} /> : null}
            {status ? <Machine status={status} now={now} /> : null}
            {status ? <Limits status={status} /> : null}
            <Here running={status?.running ?? []} now={now} />
            <Given week={status?.week} />
            <Sites now={now} />
          </div>
          <Wrong text={status ? error : undefined} />
        </main>
        <footer>
          <p class="faint">{status ? `version ${status.version}` : ""}</p>
        </footer>
      </Say.Provider>
    </Guest.Provider>
  );
}

function Head({ status, guest }: { status: Status | undefined; guest: boolean }) {
  const { wrong, act } = useAction();
  const leave = () =>
    act(async () => {
      await closeSession();
      location.reload();
      return "";
    });
  return (
    <header>
      <a class="skip" href="#main">
        To the content
      </a>
      <h1>{status ? status.name || status.site.slice(-8) : "siteagent"}</h1>
      <nav aria-label="Parts of the page">
        <a href="#jobs">Jobs</a> <a href="#site">This site</a> <a href="#given">Given</a>{" "}
        <a href="#sites">Sites</a>
      </nav>
      {guest ? <span class="faint">guest: you can look, and change nothing</span> : null}
      <button type="button" onClick={leave}>
        Sign out
      </button>
      <Wrong text={wrong} />
    </header>
  );
}

/** What was said last, for some seconds. */
function useSaid(): [string, (text: string) => void] {
  const [said, say] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => say(""), saidFor);
    return () => window.clearTimeout(timer);
  }, [said]);
  return [said, say];
}

function useNow(): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (!document.hidden) set(Date.now());
    }, tick);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}

/** The job that the address names, so that the way back is the browser's. */
function useOpenJob(): string {
  const read = () => /^#job=([a-z0-9]{1,16})$/i.exec(location.hash)?.[1] ?? "";
  const [job, set] = useState(read());
  useEffect(() => {
    const turn = () => {
      if (location.hash === "#jobs" || location.hash.startsWith("#job=")) set(read());
    };
    window.addEventListener("hashchange", turn);
    return () => window.removeEventListener("hashchange", turn);
  }, []);
  return job;
}
