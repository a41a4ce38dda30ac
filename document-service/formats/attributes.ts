/** Attributes of nodes as the writers of a document left them: values of any type, also objects that no number can be made of. */

/** The whole number that `value` is, or the nearest of `min` to `max`; `otherwise` for anything but a number or its digits. */
export function wholeNumberIn(value: unknown, min: number, max: number, otherwise: number): number {
  const isNumeral = typeof value === "number" || (typeof value === "string" && /\S/.test(value));
  const number = isNumeral ? Math.trunc(Number(value)) : Number.NaN;
  return Number.isNaN(number) ? otherwise : Math.min(Math.max(number, min), max);
}
