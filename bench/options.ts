/** What the bench can be told, as flags. */

import { flag, list, oneOf, positiveInteger, type Settings, SettingError, text, type Values, wholeNumber } from "../shared/config.ts";
import { SCENARIOS } from "./edit-path.bench.ts";
import { EXPERIMENTS } from "./experiments.ts";
import { SYSTEM_NAMES, type SystemName } from "./systems/system.ts";

const EDIT_PATH = SCENARIOS.map(({ name }) => name);
const ALL = [...EDIT_PATH, ...EXPERIMENTS.map(({ name }) => name)];

export const benchSettings = {
  seconds: { parse: positiveInteger, fallback: 8, meaning: "how long each phase is measured" },
  warmUpSeconds: { parse: positiveInteger, fallback: 10, meaning: "how long each system is driven hard before anything is measured" },
  warmSeconds: { parse: positiveInteger, fallback: 2, meaning: "how long each phase runs before it is measured" },
  rounds: {
    parse: wholeNumber,
    fallback: 0,
    meaning:
      "how often the systems take turns; of scenarios that are not of the edit path the medians are shown. 0: twice on the edit path, else once",
  },
  scenario: { parse: scenarios, fallback: EDIT_PATH, meaning: `which of ${ALL.join(", ")}` },
  system: {
    parse: systems,
    fallback: SYSTEM_NAMES,
    meaning: "coroom, relay or both: coroom,relay; on the edit path and in idle, the other scenarios need all that they compare",
  },
  small: { parse: flag, fallback: false, meaning: "a few rooms for a second: counts only, the times mean nothing" },
  loadProcesses: { parse: positiveInteger, fallback: 1, meaning: "processes that the load is spread over" },
  clients: { parse: wholeNumber, fallback: 0, meaning: "clients of a scenario that is not of the edit path; 0: as many as it says" },
  seed: { parse: positiveInteger, fallback: 1, meaning: "where the typing's schedule comes from" },
  json: { parse: text, fallback: "", meaning: "file for the results as JSON; empty: none" },
} as const satisfies Settings;

export type BenchOptions = Values<typeof benchSettings>;

function scenarios(raw: string): readonly string[] {
  const one = oneOf(...ALL);
  return list(raw).map(one);
}

function systems(raw: string): readonly SystemName[] {
  const named = list(raw).map(oneOf(...SYSTEM_NAMES));
  if (named.length === 0) throw new SettingError(`must name ${SYSTEM_NAMES.join(" or ")}`);
  return named;
}
