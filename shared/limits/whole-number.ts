/**
 * Reads the whole numbers of an HTTP query. Only decimal digits are a number, as the OpenAPI documents describe:
 * `Number` would also read `0x1`, `1e3` and the empty text.
 */

/** Undefined: the text is not a number of decimal digits, or is above the safe integers. */
export function parseWholeNumber(text: string): number | undefined {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}
