/** Accepts a pass or a token, and keeps it for this tab only. */

import { element } from "../../io/element.ts";

const KEPT_AS = "coroom-operations-pass";

/** Returns the pass of this tab, if there is one. */
export function keptPass(): string | undefined {
  return sessionStorage.getItem(KEPT_AS) ?? undefined;
}

export function forgetPass(): void {
  sessionStorage.removeItem(KEPT_AS);
}

/** Returns a function that shows the form with the reason why a new pass is needed. */
export function signInView(begin: (pass: string) => void): (problem: string) => void {
  const [place, form, field, problemPlace, local, operations] = [
    element("sign-in", HTMLElement),
    element("sign-in-form", HTMLFormElement),
    element("pass", HTMLInputElement),
    element("sign-in-problem", HTMLElement),
    element("local-pass", HTMLButtonElement),
    element("operations", HTMLElement),
  ];
  const take = (pass: string): void => {
    sessionStorage.setItem(KEPT_AS, pass);
    field.value = "";
    place.hidden = true;
    begin(pass);
    operations.focus(); // The button with the focus is hidden now.
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const pass = field.value.trim();
    if (/^[\x21-\x7e]+$/.test(pass)) take(pass);
    else problemPlace.textContent = "This is not a valid pass or token. Paste it without spaces and line breaks.";
  });
  local.hidden = !["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
  local.addEventListener("click", async () => {
    const pass = await localPass();
    if (pass === undefined) problemPlace.textContent = "The local system did not provide a pass. Run coroom ops pass and paste the result.";
    else take(pass);
  });
  return (problem) => {
    problemPlace.textContent = problem;
    place.hidden = false;
    field.focus();
  };
}

/**
 * Requests a pass from a local system, which provides one to its own machine. Undefined: the system does not provide
 * one.
 */
async function localPass(): Promise<string | undefined> {
  try {
    const answer = await fetch("/demo/operator", { method: "POST", cache: "no-store" });
    if (!answer.ok) return undefined;
    return ((await answer.json()) as { pass?: string }).pass;
  } catch (problem) {
    console.warn(problem); // No answer, or not JSON.
    return undefined;
  }
}
