/** The two ways to bring somebody in: a tab with another person, and a link to send on. */

import { searchOf } from "../address.ts";
import { friendlyName } from "../person.ts";
import { element } from "./element.ts";

const COPIED_MS = 2000;

/** `taken`: names that a second person is not to have. */
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
  second.addEventListener("click", nextPerson); // Another click is another person.

  const link = element("link", HTMLInputElement);
  const copy = element("copy-link", HTMLButtonElement);
  link.value = toSend;
  link.addEventListener("focus", () => link.select());
  copy.addEventListener("click", async () => {
    copy.textContent = (await copyText(toSend)) ? "Copied" : "Press Ctrl+C";
    if (copy.textContent !== "Copied") link.focus();
    setTimeout(() => (copy.textContent = "Copy link"), COPIED_MS);
  });
}

/** False where the browser does not let the page write to the clipboard, as on plain HTTP away from localhost. */
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
