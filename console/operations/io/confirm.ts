/** The dialog before an action: it explains the effect, and then shows the result. */

import { element } from "../../io/element.ts";
import type { AdminResponse } from "./admin-api.ts";
import { openDialog } from "./kept-focus.ts";
import { setText } from "./keyed-rows.ts";

/** `done`: returns the text of a successful result. */
type ConfirmationRequest<Body> = {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly act: () => Promise<AdminResponse<Body>>;
  readonly done: (body: Body) => string;
};

export function confirmDialog(): <Body>(request: ConfirmationRequest<Body>) => void {
  const dialog = element("confirm", HTMLDialogElement);
  const [title, text, outcome] = [
    element("confirm-title", HTMLElement),
    element("confirm-text", HTMLElement),
    element("confirm-outcome", HTMLElement),
  ];
  const [no, yes] = [element("confirm-no", HTMLButtonElement), element("confirm-yes", HTMLButtonElement)];
  let act = (): void => {};
  let shown: object | undefined;
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => act());

  return <Body>(request: ConfirmationRequest<Body>): void => {
    const showOutcome = (tone: string, text: string): void => {
      outcome.dataset["tone"] = tone;
      setText(outcome, text);
    };
    shown = request;
    setText(title, request.title);
    setText(text, request.text);
    yes.textContent = request.yes;
    [no.textContent, yes.hidden, yes.disabled] = ["Cancel", false, false];
    showOutcome("calm", "");
    act = async (): Promise<void> => {
      showOutcome("calm", "Working…");
      outcome.focus(); // A disabled button loses the focus, and a held Enter would press another one.
      yes.disabled = true;
      const response = await request.act();
      if (shown !== request) return; // The dialog was closed, and asks about another action now.
      no.textContent = "Close";
      if (response.kind === "answered") {
        showOutcome("good", request.done(response.body));
        yes.hidden = true;
        return;
      }
      showOutcome("error", failureText(response));
      [yes.disabled, yes.textContent] = [false, "Try again"];
    };
    openDialog(dialog);
    no.focus(); // The focus is on Cancel: Enter without reading does nothing.
  };
}

function failureText(response: Exclude<AdminResponse<unknown>, { kind: "answered" }>): string {
  switch (response.kind) {
    case "refused":
      return `The action was not performed: ${response.message}`;
    case "too-fast":
      return "The action was not performed: too many requests. Wait a few seconds and try again.";
    case "unreachable":
      return "The gateway did not answer. The action may or may not have been performed: check before you try again.";
  }
}
