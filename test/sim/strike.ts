/** A fault's effect on a cluster. Each fault ends by itself, through the scheduler. */

import type { Cluster } from "./cluster.ts";

export type FaultParameters = {
  /** Milliseconds since the run began. */
  readonly atMs: number;
  readonly forMs: number;
  /** Numbers in [0, 1): `whom` selects the target, `how` the variant. */
  readonly whom: number;
  readonly how: number;
  /** Selects a target that has state to lose, if there is one: an owner, or a gateway with connections. */
  readonly aimed?: boolean;
};

/** Whether the fault affected anything. Called when the fault is over. A cut during which no process sends anything does not count. */
export type Met = () => boolean;

export type Strike = (cluster: Cluster, fault: FaultParameters) => Met;
