/** The settings of `coroom bench`. */

import { flag, SettingError, type Settings, text, type Values } from "../../shared/settings/settings.ts";
import { documentSettings } from "../command-settings.ts";
import { flagsOnly } from "../command.ts";
import { BENCH_MAX } from "./plan.ts";

export const benchSettings = {
  ...flagsOnly({
    rooms: { parse: between(1, BENCH_MAX.rooms), fallback: 10, meaning: `Number of rooms, ${BENCH_MAX.rooms} at most.` },
    people: {
      parse: between(2, BENCH_MAX.people),
      fallback: 4,
      meaning: `People in each room, each with a connection; 2 to ${BENCH_MAX.people}.`,
    },
    editRate: {
      parse: between(1, BENCH_MAX.editRate),
      fallback: 18,
      meaning: `Edits per second of all rooms together, ${BENCH_MAX.editRate} at most.`,
    },
    cursorRate: {
      parse: between(0, BENCH_MAX.cursorRate),
      fallback: 40, // Two people may send as much, so that the default fits any number of rooms and people.
      meaning: `Cursor moves per second of all rooms together, ${BENCH_MAX.cursorRate} at most.`,
    },
    seconds: { parse: between(1, BENCH_MAX.seconds), fallback: 30, meaning: `Seconds of load, ${BENCH_MAX.seconds} at most.` },
    rampUpSeconds: {
      parse: between(0, BENCH_MAX.rampUpSeconds),
      fallback: 0,
      meaning: `Seconds over which people join before the load, ${BENCH_MAX.rampUpSeconds} at most. 0: as many as ${BENCH_MAX.joinsPerSecond / 2} joins per second need.`,
    },
    json: { parse: flag, fallback: false, meaning: "Print only the figures, as JSON." },
  }),
  ...documentSettings,
  ...flagsOnly({
    tenant: {
      parse: text,
      fallback: "coroom-bench",
      meaning: "Tenant of the rooms, if the command signs tokens. Use one without customers.",
    },
  }),
  token: {
    parse: text,
    fallback: "",
    meaning:
      "Token for the rooms coroom-bench-* with the rights read, write and admin. Empty: one for each person, signed with the secret.",
    secret: true,
  },
} as const satisfies Settings;

export type BenchConfig = Values<typeof benchSettings>;

function between(min: number, max: number): (raw: string) => number {
  return (raw) => {
    const value = Number(raw);
    if (raw.trim() === "" || !Number.isSafeInteger(value) || value < min || value > max)
      throw new SettingError(`must be a whole number from ${min} to ${max}`);
    return value;
  };
}
