/**
 * Texts that one person chooses and others see, such as names and reasons. They appear in lines of logs, terminals and
 * lists, so they must not end a line, command a terminal, or reverse the text that follows them.
 */

/** Control characters, separators of lines and paragraphs, and the marks that set a direction until another mark ends it. */
const HARMFUL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu;

/** Replaces harmful characters by a space. Joiners of emoji and the single marks of right-to-left scripts stay. */
export function displayText(text: string): string {
  return text.replace(HARMFUL, " ").trim();
}

/** The harmful characters that a name of a room may contain, and invisible ones that make two names look the same. */
const MARKS = /[\u00ad\u200b\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** Shows such characters by their numbers, as in JSON, so that JSON keeps its values. */
export function escapedMarks(text: string): string {
  return text.replace(MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
