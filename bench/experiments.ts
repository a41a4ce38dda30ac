/**
 * The scenarios beside the edit path: each starts the systems it compares, one after the other, drives them, checks
 * what they did and says what it found. One that loses or repeats anything throws.
 */

import { arrivals } from "./arrivals.bench.ts";
import { awarenessBurst } from "./awareness-burst.bench.ts";
import { comeBack } from "./come-back.bench.ts";
import { growingRoom } from "./growing-room.bench.ts";
import { herd } from "./herd.bench.ts";
import { hotRoom } from "./hot-room.bench.ts";
import { idle } from "./idle.bench.ts";
import { presenceCrowd } from "./presence-crowd.bench.ts";
import type { Figures } from "./report.ts";
import { rolling } from "./rolling.bench.ts";
import { stalledReader } from "./stalled-reader.bench.ts";
import type { SystemName } from "./systems/system.ts";

export type Experiment = {
  readonly name: string;
  readonly meaning: string;
  /** In full; and so few that only the counts mean something. */
  readonly clients: number;
  readonly smallClients: number;
  run(options: ExperimentOptions): Promise<Outcome>;
};

export type ExperimentOptions = {
  readonly clients: number;
  /** Short, too: waits that only serve the figures are left out. */
  readonly small: boolean;
  readonly seed: number;
  readonly loadProcesses: number;
  /** Which of them are wanted; of the scenarios that are not of the edit path `idle` alone can do without one. */
  readonly systems: readonly SystemName[];
  readonly say: (line: string) => void;
};

/** Figures by system, Coroom first. `more`: for the results' file. */
export type Outcome = { readonly figures: Readonly<Record<string, Figures>>; readonly more?: object };

export const EXPERIMENTS: readonly Experiment[] = [
  idle,
  comeBack,
  stalledReader,
  herd,
  rolling,
  presenceCrowd,
  growingRoom,
  hotRoom,
  awarenessBurst,
  arrivals,
];
