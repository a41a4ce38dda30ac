/** Who is here, as the page shows them: from what the room tells of its participants. */

import type { ModeFacts, Participant, Point } from "@coroom/client";

import { parseName } from "./address.ts";
import { colourOf } from "./person.ts";
import { isPlace } from "./shapes.ts";

export type Person = {
  readonly id: string;
  readonly name: string;
  readonly colour: number;
  readonly self: boolean;
  readonly role: "editor" | "spectator";
  readonly canWrite: boolean;
  /** Of the demo's crowd. */
  readonly bot: boolean;
  /** Where they point on the canvas. */
  readonly pointer: Point | undefined;
  /** What they drag, and where it is now. */
  readonly holding: Holding | undefined;
};
export type Holding = { readonly shape: string; readonly place: Point };

export const NAMELESS = "Somebody";
/** What the local system's bots are called, beside their names. */
const BOT_USER = "bot-";

export function personOf({ client, user, name, role, canWrite, self, cursor, fields }: Participant): Person {
  const shown = nameIn(fields["user"]) ?? parseName(name) ?? NAMELESS;
  return {
    id: client,
    name: shown,
    colour: colourOf(shown),
    self,
    role,
    canWrite,
    bot: user.startsWith(BOT_USER),
    pointer: cursor,
    holding: holdingIn(fields["holding"]),
  };
}

/** This person first, then people who do something, by name; bots behind them, spectators last. */
export function inOrder(people: Iterable<Person>): Person[] {
  const rank = ({ self, bot, role }: Person): number => {
    if (self) return 0;
    return (bot ? 2 : 1) + (role === "editor" ? 0 : 2);
  };
  return [...people].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1));
}

/** 0: without a line nobody knows. */
export function countRemark(count: number): string {
  if (count === 0) return "–";
  return count === 1 ? "Only you" : `${count.toLocaleString("en")} people`;
}

/** How the room carries its presence, in words. Reduced: under pressure some of it is left out. */
export function modeRemark(mode: ModeFacts | undefined): string {
  if (mode === undefined) return "–";
  const how = mode.mode === "flat" ? "Flat" : "Hierarchical";
  return mode.shed === 0 ? how : `${how}, reduced`;
}

/** Another client may show anything as its name. */
export function nameIn(user: unknown): string | undefined {
  return typeof user === "object" && user !== null && "name" in user && typeof user.name === "string" ? parseName(user.name) : undefined;
}

function holdingIn(holding: unknown): Holding | undefined {
  if (typeof holding !== "object" || holding === null || !("shape" in holding) || !("place" in holding)) return undefined;
  const { shape, place } = holding;
  return typeof shape === "string" && isPlace(place) ? { shape, place } : undefined;
}
