/** Parses and builds the address of the page: the room, the name and the rights of the person. */

type PageAddress = { readonly room: string; readonly name: string | undefined; readonly rights: "read" | undefined };

const DEFAULT_ROOM = "welcome";
/** The server accepts rooms of 1 to 128 characters without control characters, except `.` and `..`. */
const ROOM_CHARS_MAX = 128;
const NAME_CHARS_MAX = 40;

/** Corrects an invalid room or name instead of rejecting it. The page then shows the corrected address. */
export function parseAddress(search: string): PageAddress {
  const asked = new URLSearchParams(search);
  return {
    room: parseRoom(asked.get("room") ?? ""),
    name: parseName(asked.get("name") ?? ""),
    rights: asked.get("rights") === "read" ? "read" : undefined,
  };
}

function parseRoom(text: string): string {
  const room = cleanText(text, ROOM_CHARS_MAX) ?? DEFAULT_ROOM;
  return room === "." || room === ".." ? DEFAULT_ROOM : room;
}

/** Returns undefined for a name without a visible character, such as a zero-width space, a Hangul filler, or an empty Braille pattern. */
export function parseName(text: string): string | undefined {
  const name = cleanText(text, NAME_CHARS_MAX);
  return name !== undefined && /^[\p{Cf}\p{Default_Ignorable_Code_Point}\s\u2800]*$/u.test(name) ? undefined : name;
}

/** `user`: user id. A person who changes the name keeps it, so the server still recognises their earlier edits. */
export type StoredPerson = { readonly user: string; readonly name: string };

/**
 * Returns the person that the page stored in its history state, which a reload keeps. The page's address has no name
 * then: a person who receives that address is another person.
 */
export function personIn(state: unknown): StoredPerson | undefined {
  if (typeof state !== "object" || state === null || !("user" in state) || !("name" in state)) return undefined;
  if (typeof state.user !== "string" || typeof state.name !== "string") return undefined;
  const [user, name] = [parseName(state.user), parseName(state.name)];
  return user === undefined || name === undefined ? undefined : { user, name };
}

/** An address without a name is an invitation: each person who opens it gets a new name. */
export function searchOf(address: { readonly [Part in keyof PageAddress]?: PageAddress[Part] | undefined }): string {
  const search = new URLSearchParams();
  for (const part of ["room", "name", "rights"] as const) {
    const value = address[part];
    if (value !== undefined) search.set(part, value);
  }
  return `?${search}`;
}

/** Also removes marks that reverse the text that follows, such as U+202E. */
function cleanText(text: string, charsMax: number): string | undefined {
  const plain = text
    .replace(/[\p{Cc}\s\u202a-\u202e\u2066-\u2069]+/gu, " ")
    .trim()
    .slice(0, charsMax)
    .toWellFormed()
    .trim();
  return plain === "" ? undefined : plain;
}
