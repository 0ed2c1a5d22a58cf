// SPDX-License-Identifier: Apache-2.0
// act.ts - runs the user's actions, and reports on them in the lines `note` and `problem` of the page.
import { byId } from "../common/dom";
import { Refused, session } from "./client";

let endSession: (why: string) => void = () => {};

// `end` is called when the server no longer takes the session.
export function onSessionEnd(end: (why: string) => void): void {
  endSession = end;
}

export function say(where: "note" | "problem", text: string): void {
  byId(where).textContent = text;
}

// Runs an action that calls the server. Calls that end with their view are not reported.
export async function attempt(act: () => Promise<unknown>): Promise<void> {
  say("problem", "");
  try {
    await act();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401 && session()) endSession("Your session has ended: log in again.");
    else say("problem", `It did not work: ${error.message}`);
  }
}

// Pressing again while it runs does nothing.
export function onPress(button: HTMLElement, act: () => Promise<unknown>): HTMLElement {
  let busy = false;
  button.addEventListener("click", async () => {
    if (busy) return;
    busy = true;
    await attempt(act).finally(() => (busy = false));
  });
  return button;
}
