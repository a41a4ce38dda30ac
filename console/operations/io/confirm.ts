/** The question before anything is done: what will happen, then what came of it. */

import { element } from "../../io/element.ts";
import type { Asked } from "./ask.ts";

/** `done`: in words, of the answer. */
export type Deed<Body> = {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly act: () => Promise<Asked<Body>>;
  readonly done: (body: Body) => string;
};

export function confirmDialog(): <Body>(deed: Deed<Body>) => void {
  const dialog = element("confirm", HTMLDialogElement);
  const [title, text, outcome] = [
    element("confirm-title", HTMLElement),
    element("confirm-text", HTMLElement),
    element("confirm-outcome", HTMLElement),
  ];
  const [no, yes] = [element("confirm-no", HTMLButtonElement), element("confirm-yes", HTMLButtonElement)];
  let act = (): void => {};
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => act());

  return <Body>(deed: Deed<Body>): void => {
    const tell = (tone: string, words: string): void => {
      outcome.dataset["tone"] = tone;
      outcome.textContent = words;
    };
    title.textContent = deed.title;
    text.textContent = deed.text;
    yes.textContent = deed.yes;
    [no.textContent, yes.hidden, yes.disabled] = ["Cancel", false, false];
    tell("calm", "");
    act = async (): Promise<void> => {
      yes.disabled = true;
      tell("calm", "Under way…");
      const asked = await deed.act();
      no.textContent = "Close";
      if (asked.kind === "answered") {
        tell("good", deed.done(asked.body));
        yes.hidden = true;
        no.focus();
        return;
      }
      tell("trouble", whyNot(asked));
      [yes.disabled, yes.textContent] = [false, "Try again"];
    };
    dialog.showModal();
    no.focus(); // Whoever presses Enter without reading does nothing.
  };
}

function whyNot(asked: Exclude<Asked<unknown>, { kind: "answered" }>): string {
  switch (asked.kind) {
    case "refused":
      return `Not done: ${asked.message}`;
    case "too-fast":
      return "Not done: too much was asked at once. Try again in a moment.";
    case "unreachable":
      return "No answer: it may have been done or not. Look before you try again.";
  }
}
