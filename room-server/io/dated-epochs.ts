/** Makes epoch numbers from the date and a random part: `docs/adr/0021-epochs-start-from-the-date.md`. */

import type { Clock } from "../../shared/time/clock.ts";
import type { Epoch } from "../../shared/ids.ts";
import type { Epochs } from "../ports.ts";

const SINCE = Date.UTC(2020, 0);
const TENTH_MS = 100;
/**
 * Number of epochs for each tenth of a second. One of them is chosen at random, so that two servers with wrong dates do
 * not choose the same.
 */
const PER_TENTH = 1_000;

/** `unit`: a random number in [0, 1). Each number is above all earlier ones, for any room. */
export function datedEpochs(clock: Pick<Clock, "wallNow">, unit: () => number): Epochs {
  let given = 0;
  return {
    after: (known) => {
      const tenths = Math.floor((clock.wallNow() - SINCE) / TENTH_MS);
      given = Math.max(given, Math.max(known, tenths * PER_TENTH) + Math.floor(unit() * PER_TENTH)) + 1;
      return given as Epoch;
    },
  };
}
