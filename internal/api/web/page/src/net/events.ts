// The agent's events as they happen. EventSource would want the name of each kind beforehand and
// hides why it was refused, so that the stream is read by fetch.
import { ask } from "./http";
import type { Happening } from "./types";

/** Splits a stream of server-sent events; returns what is not whole yet. */
export function eventsIn(text: string, each: (event: Happening) => void): string {
  const parts = text.split("\n\n");
  const rest = parts.pop() ?? "";
  for (const part of parts) {
    const data = part.split("\n").find((line) => line.startsWith("data: "));
    if (data) each(JSON.parse(data.slice("data: ".length)) as Happening);
  }
  return rest;
}

/** Reads events until the signal aborts or the stream ends. It starts behind the event with that
 * id, or with what comes from now on. */
export async function follow(
  after: number,
  signal: AbortSignal,
  opened: () => void,
  each: (event: Happening) => void,
): Promise<void> {
  const answer = await ask(
    "GET",
    "/events?" + (after > 0 ? `after=${after}` : "now=true"),
    undefined,
    signal,
  );
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  opened();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    rest = eventsIn(rest + value, each);
  }
}
