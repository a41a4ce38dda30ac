/** Switches between text and canvas in a narrow window. A wide window shows both. */

import { element } from "./element.ts";

export function deskView(): void {
  const desk = element("desk", HTMLElement);
  const tabs = [...element("tabs", HTMLElement).querySelectorAll<HTMLButtonElement>("button")];
  const choose = (part: string): void => {
    desk.dataset["front"] = part;
    for (const tab of tabs) tab.ariaPressed = String(tab.dataset["part"] === part);
  };
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset["part"] ?? "text"));
  choose("text");
}
