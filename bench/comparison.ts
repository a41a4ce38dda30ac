/**
 * The interface of a scenario that is not part of the edit path. It starts the systems that it compares one after the
 * other, generates load, checks the result and returns figures. It throws when a system loses or repeats an edit.
 */

import type { Figures } from "./report.ts";
import type { Coroom } from "./systems/coroom.ts";
import type { SystemName } from "./systems/system.ts";

export type Comparison = {
  readonly name: string;
  readonly summary: string;
  readonly clients: number;
  /** Clients with `--small`: so few that only the counts are meaningful. */
  readonly smallClients: number;
  run(options: ComparisonOptions): Promise<ComparisonOutcome>;
};

export type ComparisonOptions = {
  readonly clients: number;
  /** Leaves out waiting times that only serve the figures. */
  readonly small: boolean;
  readonly seed: number;
  readonly loadProcesses: number;
  /** The systems to measure. Only `idle` can leave one out. */
  readonly systems: readonly SystemName[];
  readonly print: (line: string) => void;
  /** A running Coroom, which a scenario that changes no process and no limit uses instead of its own, and leaves running. */
  readonly coroom?: Coroom;
};

/** Figures by system, Coroom first. `more`: further facts for the file of results. */
export type ComparisonOutcome = { readonly figures: Readonly<Record<string, Figures>>; readonly more?: object };
