/** Shows bans and restrictions, and when they end. */

import { element, tagged } from "../../io/element.ts";
import type { ListedBan } from "../answers.ts";
import { count } from "../format.ts";
import { keyedRows, setText } from "./keyed-rows.ts";

const SHOWN_MAX = 30;

export function bansView(lift: (ban: ListedBan) => void): (bans: readonly ListedBan[]) => void {
  const empty = element("bans-empty", HTMLElement);
  const rows = keyedRows<ListedBan>(
    element("bans", HTMLElement),
    (ban) => JSON.stringify(ban),
    (ban) => rowOf(ban, lift),
    () => {},
  );
  return (bans) => {
    rows(bans.slice(0, SHOWN_MAX));
    setText(empty, bans.length === 0 ? "No bans or restrictions." : notShown(bans.length - SHOWN_MAX));
  };
}

function notShown(more: number): string {
  return more > 0 ? `${count(more)} more are not shown. Run coroom bans to list all.` : "";
}

function bannedName({ user, address }: ListedBan): string {
  return user ?? address ?? "unknown";
}

function rowOf(ban: ListedBan, lift: (ban: ListedBan) => void): HTMLElement {
  const { tenant, room, level, until, reason } = ban;
  const where = [tenant, room].filter((part) => part !== undefined).join(" / ");
  const what = `${level}${where === "" ? "" : ` in ${where}`} until ${new Date(until).toLocaleString()}${reason === "" ? "" : `: ${reason}`}`;
  const button = tagged("button", "quiet", "Lift…") as HTMLButtonElement;
  button.type = "button";
  button.ariaLabel = `Lift the ${level === "banned" ? "ban" : "restriction"} of ${bannedName(ban)}`;
  button.addEventListener("click", () => lift(ban));
  return tagged("li", "", tagged("div", "who", bannedName(ban), tagged("div", "why", what)), button);
}
