/** What a fault does to a cluster. Each ends what it began by itself, through the scheduler. */

import type { Cluster } from "./cluster.ts";

export type Misfortune = {
  /** Milliseconds since the run began. */
  readonly atMs: number;
  readonly forMs: number;
  /** In [0, 1): whom it meets, and how. */
  readonly whom: number;
  readonly how: number;
  /** It meets a process that has something to lose, if there is any: an owner, a gateway with connections. */
  readonly aimed?: boolean;
};

/** Whether the fault affected anything. Called when it is over: a cut during which no process sends anything is no fault. */
export type Met = () => boolean;

export type Strike = (cluster: Cluster, misfortune: Misfortune) => Met;
