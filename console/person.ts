/** A person as the page shows them. There are no accounts here: the name is all there is to a person. */

const NAMES = [
  "Ada", "Alan", "Anita", "Barbara", "Claude", "Dennis", "Donald", "Edsger", "Emmy", "Frances", "Grace", "Hedy",
  "Ivan", "Jean", "Joan", "John", "Karen", "Katherine", "Ken", "Leslie", "Lynn", "Margaret", "Mary", "Niklaus",
  "Radia", "Robin", "Shafi", "Sophie", "Tim", "Tony", "Vint", "Whitfield",
] as const;

/** As many as styles/people.css has colours for. */
const COLOURS = 8;

/** A friendly name that nobody here has yet, as far as the list reaches. `chance` is in [0, 1). */
export function friendlyName(chance: number, taken: ReadonlySet<string> = new Set()): string {
  const free = NAMES.filter((name) => !taken.has(name));
  const choice = free.length > 0 ? free : NAMES;
  return choice[Math.floor(chance * choice.length)] ?? NAMES[0];
}

/** The same for everybody who sees the name. */
export function colourOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (Math.imul(hash, 31) + char.codePointAt(0)!) | 0;
  return Math.abs(hash) % COLOURS;
}

/** One or two letters for a face. */
export function initialsOf(name: string): string {
  const words = name.split(/[\s.-]+/).filter((word) => word !== "");
  const ends = words.length > 1 ? [words[0]!, words.at(-1)!] : words;
  return ends.map((word) => [...word][0]!.toLocaleUpperCase()).join("");
}
