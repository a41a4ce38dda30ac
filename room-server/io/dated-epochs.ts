/** Numbers for epochs, by the date and by chance: `docs/adr/0021-epochs-go-by-the-date.md`. */

import type { Clock } from "../../shared/clock.ts";
import type { Epoch } from "../../shared/ids.ts";
import type { Epochs } from "../ports.ts";

const SINCE = Date.UTC(2020, 0);
const TENTH_MS = 100;
/** So many numbers for each tenth of a second: one is drawn, so that wrong dates do not lead to the same. */
const PER_TENTH = 1_000;

/** `unit`: a number in [0, 1), by chance. No number is below one given before, for whatever room. */
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
