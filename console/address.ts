/** The page's address: which room, who is here, and the links that open it for others. */

export type Address = { readonly room: string; readonly name: string | undefined; readonly rights: "read" | undefined };

const DEFAULT_ROOM = "welcome";
/** The server takes a room of 1 to 128 characters, none of them a control character. */
const ROOM_CHARS_MAX = 128;
const NAME_CHARS_MAX = 40;

/** What cannot be a room or a name is made into one rather than refused: the page then shows the address it took. */
export function parseAddress(search: string): Address {
  const asked = new URLSearchParams(search);
  return {
    room: tidied(asked.get("room") ?? "", ROOM_CHARS_MAX) ?? DEFAULT_ROOM,
    name: parseName(asked.get("name") ?? ""),
    rights: asked.get("rights") === "read" ? "read" : undefined,
  };
}

export function parseName(text: string): string | undefined {
  return tidied(text, NAME_CHARS_MAX);
}

/**
 * Who the page was before it was loaded again, from what it left with its address: whoever takes another name stays the
 * same user, so that what they sent is known as theirs.
 */
export function userIn(state: unknown): string | undefined {
  return typeof state === "object" && state !== null && "user" in state && typeof state.user === "string"
    ? parseName(state.user)
    : undefined;
}

/** Without a name the link is for sending on: whoever opens it gets a name of their own. */
export function searchOf(address: { readonly [Part in keyof Address]?: Address[Part] | undefined }): string {
  const search = new URLSearchParams();
  for (const part of ["room", "name", "rights"] as const) {
    const value = address[part];
    if (value !== undefined) search.set(part, value);
  }
  return `?${search}`;
}

function tidied(text: string, charsMax: number): string | undefined {
  const plain = text
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, charsMax)
    .toWellFormed()
    .trim();
  return plain === "" ? undefined : plain;
}
