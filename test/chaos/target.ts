/** The target of chaos: processes on this machine, or containers. */

import type { Prng } from "../../shared/collections/prng.ts";
import type { ScoringOptions } from "../../leaderboard/counting/scoring.ts";

export type ChaosTarget = {
  /** Addresses of gateways and balancers. One person of each room connects to each. */
  readonly gatewayUrls: readonly string[];
  readonly environment: string;
  /** An address from which the log can be read now. */
  readonly natsUrl: () => Promise<string>;
  readonly token: (room: string, user: string, more?: { readonly rights?: readonly string[] }) => Promise<string>;
  /** The scoring options of its leaderboards. */
  readonly scoring: ScoringOptions;
  readonly faults: readonly ChaosFault[];
};

/**
 * A fault chooses its victim in a healthy system, strikes, and is undone later. After the undo, everything that it
 * stopped runs again.
 */
export type ChaosFault = {
  readonly kind: string;
  readonly lastsMsMax: number;
  /** Whether the fault takes quorum or reachability from NATS. */
  readonly disturbsNats: boolean;
  readonly aim: (prng: Prng) => Promise<Aimed>;
};

export type Aimed = { readonly victim: string; readonly strike: () => Promise<Struck> };

/** `undo` resolves when everything is restored. */
export type Struck = { readonly undo: () => Promise<void> };

export const SHORT_MS = 2_000;
export const LONG_MS = 8_000;
