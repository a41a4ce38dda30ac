/** What chaos is done to, and judged by: processes of this machine's or containers. */

import type { ScoringOptions } from "../../leaderboard/counting/scoring.ts";
import type { Prng } from "../../shared/prng.ts";

export type ChaosTarget = {
  /** Addresses of gateways, and of what stands before them: a person of each room enters at each. */
  readonly doors: readonly string[];
  readonly environment: string;
  /** Where the log can be read now. */
  readonly natsUrl: () => Promise<string>;
  readonly token: (room: string, user: string, more?: { readonly rights?: readonly string[] }) => Promise<string>;
  /** What its leaderboards count by. */
  readonly scoring: ScoringOptions;
  readonly faults: readonly Fault[];
};

/** A fault chooses its victim while all is well, strikes, and is undone later: by then everything that it ended runs again. */
export type Fault = {
  readonly kind: string;
  readonly lastsMsMax: number;
  /** Takes from NATS what it needs to go on, or to be reached. */
  readonly shakesNats: boolean;
  readonly aim: (prng: Prng) => Promise<Aimed>;
};

export type Aimed = { readonly victim: string; readonly strike: () => Promise<Struck> };

/** `undo` resolves when all is as before. */
export type Struck = { readonly undo: () => Promise<void> };

export const SHORT_MS = 2_000;
export const LONG_MS = 8_000;
