/**
 * Decides the direction of a line by its first letter. Punctuation, digits and carets before that letter have no
 * effect.
 */

/** The first letter is searched in this many characters. */
const LOOKED_AT_CHARS = 200;
const BEGINS_RIGHT_TO_LEFT =
  /^\P{L}*(?=\p{L})[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}]/u;

export function isRightToLeft(line: string): boolean {
  return BEGINS_RIGHT_TO_LEFT.test(line.slice(0, LOOKED_AT_CHARS));
}
