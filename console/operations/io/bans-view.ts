/** Shows who is banned or may only read, and until when. */

import { element } from "../../io/element.ts";
import { tagged } from "../../io/tagged.ts";
import type { Ban } from "../answers.ts";
import { count } from "../format.ts";
import { keyedRows, say } from "./keyed-rows.ts";

const SHOWN_MAX = 30;

export function bansView(lift: (ban: Ban) => void): (bans: readonly Ban[]) => void {
  const empty = element("bans-empty", HTMLElement);
  const rows = keyedRows<Ban>(
    element("bans", HTMLElement),
    (ban) => JSON.stringify(ban),
    (ban) => rowOf(ban, lift),
    () => {},
  );
  return (bans) => {
    rows(bans.slice(0, SHOWN_MAX));
    say(empty, bans.length === 0 ? "Nobody is." : notShown(bans.length - SHOWN_MAX));
  };
}

function notShown(more: number): string {
  return more > 0 ? `And ${count(more)} more: coroom bans lists them.` : "";
}

export function whoOf({ user, address }: Ban): string {
  return user ?? address ?? "somebody";
}

function rowOf(ban: Ban, lift: (ban: Ban) => void): HTMLElement {
  const { tenant, room, level, until, reason } = ban;
  const where = [tenant, room].filter((part) => part !== undefined).join(" / ");
  const what = `${level}${where === "" ? "" : ` in ${where}`} until ${new Date(until).toLocaleString()}${reason === "" ? "" : `: ${reason}`}`;
  const button = tagged("button", "quiet", "Lift…") as HTMLButtonElement;
  button.type = "button";
  button.ariaLabel = `Lift what holds ${whoOf(ban)} back`;
  button.addEventListener("click", () => lift(ban));
  return tagged("li", "", tagged("div", "who", whoOf(ban), tagged("div", "why", what)), button);
}
