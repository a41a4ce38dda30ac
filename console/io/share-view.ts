/** Ways to invite others into the room: a second person in a new tab, a link to send, and bots. */

import { searchOf } from "../address.ts";
import { friendlyName } from "../person.ts";
import { element } from "./element.ts";

const COPIED_MS = 2000;

/** `taken`: names that the second person must not get. */
export function shareView(room: string, self: string, taken: () => readonly string[]): void {
  const page = (name?: string): string => new URL(searchOf({ room, name }), location.href).href;
  const toSend = page();
  const given = new Set([self]);
  const second = element("second-person", HTMLAnchorElement);
  const nextPerson = (): void => {
    const name = friendlyName(Math.random(), new Set([...given, ...taken()]));
    given.add(name);
    second.href = page(name);
  };
  nextPerson();
  second.addEventListener("click", nextPerson); // The next click opens another person.

  const link = element("link", HTMLInputElement);
  const copy = element("copy-link", HTMLButtonElement);
  link.value = toSend;
  link.addEventListener("focus", () => link.select());
  copy.addEventListener("click", async () => {
    const isCopied = await copyText(toSend);
    copy.textContent = isCopied ? "Copied" : "Press Ctrl+C";
    if (!isCopied) link.focus();
    setTimeout(() => (copy.textContent = "Copy link"), COPIED_MS);
  });
}

/** Returns false when the browser does not allow clipboard access, as on plain HTTP away from localhost. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard === undefined) return false;
  return navigator.clipboard.writeText(text).then(
    () => true,
    (refusal: unknown) => {
      if (refusal instanceof DOMException && refusal.name === "NotAllowedError") return false;
      throw refusal;
    },
  );
}

/** Adds bots to the room and removes them. The local system runs the bots. */
export function botsView(room: string): void {
  const remark = element("bots-remark", HTMLElement);
  const section = element("bots", HTMLElement);
  const buttons = [...section.querySelectorAll<HTMLButtonElement>("button[data-bots]")];

  const setAsking = (isAsking: boolean): void => {
    for (const button of buttons) button.ariaDisabled = String(isAsking); // Not `disabled`: a disabled button loses the focus.
  };
  const ask = async (count: string): Promise<void> => {
    if (buttons.some((button) => button.ariaDisabled === "true")) return;
    setAsking(true);
    remark.textContent = count === "0" ? "Removing bots…" : "Adding bots…";
    remark.textContent = await answerTo(room, count);
    setAsking(false);
  };
  for (const button of buttons) button.addEventListener("click", () => void ask(button.dataset["bots"] ?? "0"));
}

/** Returns a message for every outcome. */
async function answerTo(room: string, count: string): Promise<string> {
  try {
    const answer = await fetch(`/demo/bots?${new URLSearchParams({ room, count })}`, { method: "POST" });
    const body = (await answer.json()) as { bots?: number; message?: string };
    if (!answer.ok) return body.message ?? `The server answered with status ${answer.status}. Try again.`;
    return body.bots === 0 ? "The bots have left." : `${body.bots} bots type and move their pointers for ten minutes.`;
  } catch (problem) {
    console.warn(problem); // No network, or the answer is not JSON.
    return "The server does not answer. Check your connection and try again.";
  }
}
