// Every request of the page passes here: the cookie goes by itself, the secret of the session is
// added to what changes something, and a refusal comes back in the agent's own words.
import type { Problem, Session } from "./types";

const base = "/api/v1";

/** The session's secret; empty without one. It is kept in memory alone. */
let csrf = "";

/** A refusal of the agent. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

/** The agent could not be reached. */
export class Away extends Error {}

/** Without a valid session the page shows how to get one; main.tsx sets what happens. */
export const onSignedOut = { call: () => {} };

function words(p: Problem): string {
  const text = (p.field ? p.field + ": " : "") + (p.detail ?? p.title);
  return p.remedy ? `${text} (${p.remedy})` : text;
}

async function refusal(answer: Response): Promise<Refused> {
  let text = `the agent answers ${answer.status} ${answer.statusText}`;
  if (answer.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    text = words((await answer.json()) as Problem);
  }
  return new Refused(answer.status, text);
}

/** Asks the agent; path is below /api/v1. Throws Refused or Away. */
export async function ask(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = {};
  if (method !== "GET" && csrf) headers["X-Mrs-Csrf"] = csrf;
  const init: RequestInit = {
    method,
    headers,
    cache: "no-store",
    credentials: "same-origin",
    redirect: "error",
  };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  if (signal) init.signal = signal;
  let answer: Response;
  try {
    answer = await fetch(base + path, init);
  } catch (wrong) {
    if (signal?.aborted) throw wrong;
    throw new Away("not connected; trying again");
  }
  if (answer.ok) return answer;
  const wrong = await refusal(answer);
  if (answer.status === 401 && path !== "/session") onSignedOut.call();
  throw wrong;
}

/** What a stranger wrote steers nothing: no control character, and none that turns a line round. */
function plain(_: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, " ");
}

/** What the agent knows, to be shown. */
export async function get<T>(path: string): Promise<T> {
  return JSON.parse(await (await ask("GET", path)).text(), plain) as T;
}

/** Changes something; the answer is undefined where there is none. */
export async function send<T = undefined>(
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const answer = await ask(method, path, body);
  const text = await answer.text();
  return (text ? JSON.parse(text, plain) : undefined) as T;
}

function remember(session: Session): Session {
  csrf = session.csrf;
  return session;
}

/** The code of a link, out of the address, where it must not stay. */
function takeCode(): string {
  const code = new URLSearchParams(location.hash.slice(1)).get("open") ?? "";
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

/** Opens a session by the link's code, or goes on with the one that the browser has. */
export async function openSession(): Promise<Session> {
  const code = takeCode();
  return remember(
    code ? await send<Session>("POST", "/session", { code }) : await get<Session>("/session"),
  );
}

export async function closeSession(): Promise<void> {
  await send("DELETE", "/session");
  csrf = "";
}
