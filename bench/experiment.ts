/**
 * The interface of everything that `npm run bench` can run: a plain object with its settings. `bench/main.ts` reads the
 * settings and runs it.
 */

import { list, positiveInteger, type Settings, type Values } from "../shared/settings/settings.ts";

export type Print = (text: string) => void;

export type Experiment<S extends Settings = Settings> = {
  readonly name: string;
  /** One line for the list of experiments: what is measured, what is needed, and the duration. */
  readonly summary: string;
  readonly settings: S;
  /** Throws when an edit is lost, repeated or out of order: such a run has no figures. */
  run(options: Values<S>, print: Print): Promise<void>;
};

/** Returns its argument. The types of the options follow from the settings. */
export function defineExperiment<const S extends Settings>(experiment: Experiment<S>): Experiment<S> {
  return experiment;
}

export function positiveIntegers(raw: string): readonly number[] {
  return list(raw).map(positiveInteger);
}
