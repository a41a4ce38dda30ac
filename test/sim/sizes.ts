/**
 * The size of a run. A large run has time for each deadline to pass, and for faults that overlap late. A small run has
 * little more than the minimum, so that very many can run.
 */

import type { Prng } from "../../shared/collections/prng.ts";

/** From `min` to `min + more`. */
type Count = { readonly min: number; readonly more: number };

export type Size = {
  readonly name: SizeName;
  /** Duration of typing and faults. */
  readonly faultyMs: number;
  readonly keystrokesPerTab: number;
  readonly twoRoomsChance: number;
  readonly placements: Count;
  readonly roomServers: Count;
  readonly gateways: Count;
  readonly tabsPerRoom: number;
  readonly tabsMore: number;
  readonly faults: Count;
  readonly trims: number;
  /** Gateways pass edits directly to owners in the same process, instead of over NATS. */
  readonly hasLocalOwners: boolean;
  /** Each append waits up to 50 ms for one of another room, and both go to the log in one batch. */
  readonly hasBatches: boolean;
  /** An application gives rooms their first content. */
  readonly hasApplication: boolean;
  /** Undefined: no document services and no leaderboards run. */
  readonly services: { readonly documentServices: Count; readonly leaderboards: Count } | undefined;
  /** Most faults are short; a few are long enough for deadlines to pass. */
  readonly faultMsMax: readonly number[];
  /**
   * Exponent of the clients' random waits: a wait is the maximum times a uniform number to this power. A higher
   * exponent keeps the maximum, but makes long waits rare.
   */
  readonly patience: number;
  /** Longest time without faults for late effects. */
  readonly quietMs: number;
};

/** `…-edit-path`: without document services and leaderboards. Most regression seeds have these sizes. */
export type SizeName = "small" | "large" | "small-edit-path" | "large-edit-path" | "local-owners" | "batches" | "first-content";

const SERVICES = { documentServices: { min: 1, more: 1 }, leaderboards: { min: 1, more: 1 } };

const EDIT_PATH = {
  small: {
    name: "small-edit-path",
    faultyMs: 2_500,
    keystrokesPerTab: 48,
    twoRoomsChance: 0,
    placements: { min: 1, more: 0 },
    roomServers: { min: 2, more: 1 },
    gateways: { min: 2, more: 0 },
    tabsPerRoom: 3,
    tabsMore: 0,
    faults: { min: 8, more: 6 },
    trims: 5,
    hasLocalOwners: false,
    hasBatches: false,
    hasApplication: false,
    services: undefined,
    faultMsMax: [300, 1_200, 3_000],
    patience: 4,
    quietMs: 3_000,
  },
  large: {
    name: "large-edit-path",
    faultyMs: 16_000,
    keystrokesPerTab: 40,
    twoRoomsChance: 0.3,
    placements: { min: 1, more: 1 },
    roomServers: { min: 2, more: 1 },
    gateways: { min: 2, more: 1 },
    tabsPerRoom: 2,
    tabsMore: 1,
    faults: { min: 6, more: 19 },
    trims: 12,
    hasLocalOwners: false,
    hasBatches: false,
    hasApplication: false,
    services: undefined,
    faultMsMax: [600, 3_000, 9_000],
    patience: 1,
    quietMs: 15_000,
  },
} as const satisfies Readonly<Record<string, Size>>;

export const SIZES: Readonly<Record<SizeName, Size>> = {
  "small-edit-path": EDIT_PATH.small,
  "large-edit-path": EDIT_PATH.large,
  "local-owners": { ...EDIT_PATH.small, name: "local-owners", hasLocalOwners: true },
  "batches": { ...EDIT_PATH.small, name: "batches", hasBatches: true, twoRoomsChance: 1 },
  "small": { ...EDIT_PATH.small, name: "small", services: SERVICES },
  "first-content": { ...EDIT_PATH.small, name: "first-content", services: SERVICES, hasApplication: true, twoRoomsChance: 0.5 },
  "large": { ...EDIT_PATH.large, name: "large", services: SERVICES },
};

export function draw({ min, more }: Count, prng: Prng): number {
  return min + prng.below(more + 1);
}

/** A run counts only with this many steps, edits in the logs, and faults that affected something. */
export const MINIMUM = { steps: 1_000, edits: 50, faults: 5 };
