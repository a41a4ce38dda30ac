/** Which way a line runs: as its first letter does, so that marks, figures and other people's carets before it decide nothing. */

/** Further than that no line goes without a letter. */
const LOOKED_AT_CHARS = 200;
const BEGINS_RIGHT_TO_LEFT =
  /^\P{L}*(?=\p{L})[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}]/u;

export function isRightToLeft(line: string): boolean {
  return BEGINS_RIGHT_TO_LEFT.test(line.slice(0, LOOKED_AT_CHARS));
}
