/** The people in the room as the page shows them, from the room's participants. */

import type { ModeFacts, Participant, Point } from "@coroom/client";

import { parseName } from "./address.ts";
import { colourOf } from "./person.ts";
import { isPlace } from "./shapes.ts";

export type ShownPerson = {
  readonly id: string;
  readonly name: string;
  readonly colour: number;
  readonly self: boolean;
  readonly role: "editor" | "spectator";
  readonly canWrite: boolean;
  /** A bot of the demo. */
  readonly bot: boolean;
  /** Pointer position on the canvas. */
  readonly pointer: Point | undefined;
  /** The shape that the person drags, and its current position. */
  readonly holding: HeldShape | undefined;
};
type HeldShape = { readonly shape: string; readonly place: Point };

export const NAMELESS = "Somebody";
/** Prefix of the user ids of bots. */
const BOT_USER = "bot-";

export function personOf({ client, user, name, role, canWrite, self, cursor, fields }: Participant): ShownPerson {
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

/** Order: the reader, editors by name, bots, spectators. */
export function inOrder(people: Iterable<ShownPerson>): ShownPerson[] {
  const rank = ({ self, bot, role }: ShownPerson): number => {
    if (self) return 0;
    return (bot ? 2 : 1) + (role === "editor" ? 0 : 2);
  };
  return [...people].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1));
}

/** Without a connection no person is known, not even the reader. */
export function countRemark(people: readonly Pick<ShownPerson, "bot">[]): string {
  const bots = people.filter(({ bot }) => bot).length;
  const others = people.length - bots;
  if (others === 0) return "–";
  const who = others === 1 ? "Only you" : `${others.toLocaleString("en")} people`;
  if (bots === 0) return who;
  return `${others === 1 ? "You" : who} and ${bots === 1 ? "1 bot" : `${bots.toLocaleString("en")} bots`}`;
}

/** Shed levels of rule WIRE45, from which on everybody receives presence every two seconds, and new participants wait. */
const [SLOWEST, NO_JOINS] = [6, 8];

/** The presence mode as text. While the room sheds load, people receive fewer presence updates. */
export function modeRemark(mode: ModeFacts | undefined): string {
  if (mode === undefined) return "";
  const how =
    mode.mode === "flat"
      ? "Presence is flat: every page receives all pointers"
      : "Presence is hierarchical: each page receives the pointers in its view";
  if (mode.shed >= SLOWEST)
    return `${how}. The server is overloaded now: pointers move every two seconds${mode.shed >= NO_JOINS ? ", and new people and bots wait" : ""}. Edits are not affected.`;
  const updates = mode.presencePerSecond === 1 ? "1 update" : `${mode.presencePerSecond} updates`;
  return `${how}, at most ${updates} a second per person${mode.shed === 0 ? "" : ", fewer under load"}.`;
}

/** Another client can send any value as its name. */
export function nameIn(user: unknown): string | undefined {
  return typeof user === "object" && user !== null && "name" in user && typeof user.name === "string" ? parseName(user.name) : undefined;
}

function holdingIn(holding: unknown): HeldShape | undefined {
  if (typeof holding !== "object" || holding === null || !("shape" in holding) || !("place" in holding)) return undefined;
  const { shape, place } = holding;
  return typeof shape === "string" && isPlace(place) ? { shape, place } : undefined;
}
