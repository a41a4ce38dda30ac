/** Lengths of tests with random faults: short in `npm test`, long in `npm run soak` (COROOM_TEST_SOAK=1). */

const isSoak = process.env["COROOM_TEST_SOAK"] === "1";

export function soakLength(short: number, long: number): number {
  return isSoak ? long : short;
}
