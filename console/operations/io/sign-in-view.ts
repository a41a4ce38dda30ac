/** Takes a pass or a token, for this tab alone. */

import { element } from "../../io/element.ts";

const KEPT_AS = "coroom-operations-pass";

/** What was given in this tab before. */
export function keptPass(): string | undefined {
  return sessionStorage.getItem(KEPT_AS) ?? undefined;
}

export function forgetPass(): void {
  sessionStorage.removeItem(KEPT_AS);
}

/** Returns what shows the form, with why it is asked for again. */
export function signInView(begin: (pass: string) => void): (problem: string) => void {
  const [place, form, field, problemPlace, local] = [
    element("sign-in", HTMLElement),
    element("sign-in-form", HTMLFormElement),
    element("pass", HTMLInputElement),
    element("sign-in-problem", HTMLElement),
    element("local-pass", HTMLButtonElement),
  ];
  const take = (pass: string): void => {
    sessionStorage.setItem(KEPT_AS, pass);
    field.value = "";
    place.hidden = true;
    begin(pass);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const pass = field.value.trim();
    if (/^[\x21-\x7e]+$/.test(pass)) take(pass);
    else problemPlace.textContent = "That is neither a pass nor a token: paste it without spaces or line breaks.";
  });
  local.hidden = !["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
  local.addEventListener("click", async () => {
    const pass = await localPass();
    if (pass === undefined) problemPlace.textContent = "This system hands no pass out: take one from coroom ops pass.";
    else take(pass);
  });
  return (problem) => {
    problemPlace.textContent = problem;
    place.hidden = false;
    field.focus();
  };
}

/** Of a local system, which hands them out to its own machine. Undefined: it does not. */
async function localPass(): Promise<string | undefined> {
  try {
    const answer = await fetch("/demo/operator", { method: "POST", cache: "no-store" });
    if (!answer.ok) return undefined;
    return ((await answer.json()) as { pass?: string }).pass;
  } catch (problem) {
    console.warn(problem); // Not reached, or no JSON.
    return undefined;
  }
}
