// Opens the session and shows the page, or says how to get one.
import { render } from "preact";
import { App } from "./app";
import { Refused, onSignedOut, openSession } from "./net/http";
import "./style.css";

const root = document.getElementById("page") as HTMLElement;
const pauses = [1000, 2000, 5000, 10_000, 30_000]; // ms before the next try

function SignIn({ why }: { why: string }) {
  return (
    <main class="signin">
      <h1>siteagent</h1>
      <p role="status">{why}</p>
      <p>To open this page, run this on the machine of the agent:</p>
      <pre>
        <code>siteagent open</code>
      </pre>
    </main>
  );
}

const show = (why: string) => render(<SignIn why={why} />, root);

onSignedOut.call = () => show("You are not signed in any more.");

async function start(tries = 0): Promise<void> {
  try {
    const session = await openSession();
    render(<App session={session} />, root);
  } catch (wrong) {
    if (wrong instanceof Refused) {
      show(wrong.status === 401 ? "You are not signed in." : wrong.message);
      return;
    }
    show("not connected; trying again");
    window.setTimeout(() => void start(tries + 1), pauses[Math.min(tries, pauses.length - 1)]);
  }
}

void start();
