// What a task prints, as it prints it; the last part of it, so that a long log stays bounded.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../net/http";
import { Wrong } from "../ui/notes";

const kept = 1 << 18; // characters
const colours = /\u001b\[[0-9;]*[A-Za-z]/g; // and other orders to a terminal
const pause = 250; // ms between two drawings

export function Log({ task, onClose }: { task: string; onClose: () => void }) {
  const [stream, choose] = useState<"stdout" | "stderr">("stdout");
  const { text, ended, wrong } = useLog(task, stream);
  const shown = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const pre = shown.current;
    if (pre) pre.scrollTop = pre.scrollHeight;
  }, [text]);
  const other = stream === "stdout" ? "stderr" : "stdout";
  return (
    <div class="log" role="region" aria-label={`Log of task ${task}`}>
      <p class="line">
        <strong>
          {task}, {stream}
        </strong>
        <button type="button" onClick={() => choose(other)}>
          Show {other}
        </button>
        <button type="button" onClick={onClose}>
          Close log
        </button>
        <span class="faint">{ended ? "whole" : "live"}</span>
      </p>
      <Wrong text={wrong} />
      <pre ref={shown} tabIndex={0}>
        {text.replace(colours, "") || (ended ? "(nothing was printed)" : "")}
      </pre>
    </div>
  );
}

function useLog(task: string, stream: string): { text: string; ended: boolean; wrong: string } {
  const [state, set] = useState({ text: "", ended: false, wrong: "" });
  useEffect(() => {
    const stop = new AbortController();
    let text = "";
    let timer = 0;
    set({ text, ended: false, wrong: "" });
    const draw = () => {
      timer = 0;
      set((old) => ({ ...old, text }));
    };
    const read = async () => {
      const answer = await ask(
        "GET",
        `/tasks/${task}/logs?stream=${stream}&follow=true`,
        undefined,
        stop.signal,
      );
      const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
      while (reader) {
        const { done, value } = await reader.read();
        if (done) break;
        text = (text + value).slice(-kept);
        timer ||= window.setTimeout(draw, pause);
      }
      set({ text, ended: true, wrong: "" });
    };
    read().catch((error: Error) => {
      if (!stop.signal.aborted) set({ text, ended: true, wrong: error.message });
    });
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [task, stream]);
  return state;
}
