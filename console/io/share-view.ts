/** The two ways to bring somebody in: a tab with another person, and a link to send on. */

import { element } from "./element.ts";

export type Links = { readonly toSend: string; secondPerson(): string };

const COPIED_MS = 2000;

export function shareView({ toSend, secondPerson }: Links): void {
  const second = element("second-person", HTMLAnchorElement);
  second.href = secondPerson();
  second.addEventListener("click", () => (second.href = secondPerson())); // Another click is another person.

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
