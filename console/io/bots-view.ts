/** Brings a crowd into the room and sends it home. The local system runs it; see the demo's routes. */

import { element } from "./element.ts";

export function botsView(room: string): void {
  const remark = element("bots-remark", HTMLElement);
  const section = element("bots", HTMLElement);
  const buttons = [...section.querySelectorAll<HTMLButtonElement>("button[data-bots]")];

  const setAsking = (isAsking: boolean): void => {
    for (const button of buttons) button.ariaDisabled = String(isAsking); // Not disabled: it would lose the focus.
  };
  const ask = async (count: string): Promise<void> => {
    if (buttons.some((button) => button.ariaDisabled === "true")) return;
    setAsking(true);
    remark.textContent = count === "0" ? "They are leaving…" : "They are on their way…";
    remark.textContent = await answerTo(room, count);
    setAsking(false);
  };
  for (const button of buttons) button.addEventListener("click", () => void ask(button.dataset["bots"] ?? "0"));
}

/** In words, whatever came of it. */
async function answerTo(room: string, count: string): Promise<string> {
  try {
    const answer = await fetch(`/demo/bots?${new URLSearchParams({ room, count })}`, { method: "POST" });
    const body = (await answer.json()) as { bots?: number; message?: string };
    if (!answer.ok) return body.message ?? `The server said ${answer.status}.`;
    return body.bots === 0 ? "They have gone home." : `${body.bots} bots type a little and move about, for ten minutes.`;
  } catch (problem) {
    console.warn(problem); // No network, or a server that is none.
    return "The server cannot be reached. Try again.";
  }
}
