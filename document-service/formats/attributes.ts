/** Reads numbers from the attributes of nodes. Any client may write an attribute of any type, also an object that `Number()` throws for. */

/** Returns `value` as a whole number between `min` and `max`, or `otherwise` if it is neither a number nor a numeral. */
export function wholeNumberIn(value: unknown, min: number, max: number, otherwise: number): number {
  const isNumeral = typeof value === "number" || (typeof value === "string" && /\S/.test(value));
  const number = isNumeral ? Math.trunc(Number(value)) : Number.NaN;
  return Number.isNaN(number) ? otherwise : Math.min(Math.max(number, min), max);
}
