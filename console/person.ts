/** Name, colour and initials of a person. The demo has no accounts: a person is only a name. */

const NAMES = [
  "Ada",
  "Alan",
  "Anita",
  "Barbara",
  "Claude",
  "Dennis",
  "Donald",
  "Edsger",
  "Emmy",
  "Frances",
  "Grace",
  "Hedy",
  "Ivan",
  "Jean",
  "Joan",
  "John",
  "Karen",
  "Katherine",
  "Ken",
  "Leslie",
  "Lynn",
  "Margaret",
  "Mary",
  "Niklaus",
  "Radia",
  "Robin",
  "Shafi",
  "Sophie",
  "Tim",
  "Tony",
  "Vint",
  "Whitfield",
] as const;

/** The colours of styles/people.css, for parts that libraries draw. White text on each has a contrast of at least 5. */
export const COLOURS = ["#b4452c", "#1f7a6d", "#635dcd", "#a8457e", "#2f6db3", "#8a6412", "#4b7a2b", "#75638a"] as const;

/** Returns an unused name, if there is one. `chance` is in [0, 1). */
export function friendlyName(chance: number, taken: ReadonlySet<string> = new Set()): string {
  const free = NAMES.filter((name) => !taken.has(name));
  const choice = free.length > 0 ? free : NAMES;
  return choice[Math.floor(chance * choice.length)] ?? NAMES[0];
}

/**
 * A person with the name of the address, which is the user id too, or with a suggested name. Two people may get the same
 * suggestion, so the id has a random part then. `chance` is in [0, 1).
 */
export function newPerson(asked: string | undefined, chance: number): { readonly user: string; readonly name: string } {
  if (asked !== undefined) return { user: asked, name: asked };
  const name = friendlyName(chance);
  return { user: `${name}-${chance.toString(36).slice(2)}`, name };
}

/** All people see the same colour for a name. */
export function colourOf(name: string): number {
  return hashOf(name) % COLOURS.length;
}

/** Two letters for a face, so that Ada, Alan and Anita differ. A name of one letter has one. */
export function initialsOf(name: string): string {
  const [first, ...others] = name.split(/[\s.-]+/).filter((word) => word !== "" && !/^\p{P}/u.test(word));
  if (first === undefined) return "";
  const [capital, second = ""] = [...first];
  const last = others.at(-1);
  return capital!.toLocaleUpperCase() + (last === undefined ? second : [...last][0]!.toLocaleUpperCase());
}

/**
 * The user field of a caret, in the format of y-codemirror.next. It treats carets of the same colour as one caret, so
 * each name gets a slightly different shade, and each client of a name too.
 */
export function caretOf(name: string, client = 0): { readonly name: string; readonly color: string; readonly colorLight: string } {
  const base = Number.parseInt(COLOURS[colourOf(name)]!.slice(1), 16);
  const shade = (Math.imul(hashOf(name) ^ client, 0x9e3779b1) >>> 8) & 0x070707;
  const color = `#${(base ^ shade).toString(16).padStart(6, "0")}`;
  return { name, color, colorLight: `${color}40` };
}

function hashOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (Math.imul(hash, 31) + char.codePointAt(0)!) | 0;
  return Math.abs(hash);
}
