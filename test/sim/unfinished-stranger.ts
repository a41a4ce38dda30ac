/**
 * A hostile client with a valid token and many connections. On each it begins frames in parts (WIRE54) and finishes
 * none. It sends parts more slowly than an honest client, so an honest client's frame is complete before it is the
 * oldest. At the end of such a run each tab pastes a text while the hostile client continues, and all must be saved.
 */

import type { Prng } from "../../shared/collections/prng.ts";
import type { UserId } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { Cluster } from "./cluster.ts";
import { pastedGroups } from "./pastes.ts";
import { pick } from "./pick.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SimConnection } from "./sim-sockets.ts";
import type { Strike } from "./strike.ts";

/** More than one gateway's limit in these runs allows for. */
const CONNECTIONS = 12;
const SEND_EACH_MS_MAX = 25;
const LEAVE_CHANCE = 0.02;
/** Time in which the unfinished frames reach the limit. */
const FILLED_MS = 1_500;

export const leaveFramesUnfinished: Strike = (cluster, { how, forMs }) => {
  const stranger = new UnfinishedStranger(cluster, cluster.world.chance(`unfinished ${how}`));
  cluster.later(forMs, () => stranger.leave());
  return () => stranger.endedEver > 0;
};

/** `settle`: waits until all tabs are settled. */
export async function checkPastesBesideUnfinished(cluster: Cluster, settle: () => Promise<void>): Promise<void> {
  const { scheduler, judge, trace } = cluster.world;
  if (judge.failure !== undefined) return;
  trace.note("--- frames are left unfinished, and texts pasted");
  const prng = cluster.world.chance("unfinished at the end");
  const stranger = new UnfinishedStranger(cluster, prng);
  await scheduler.runUntil(scheduler.now + FILLED_MS, () => judge.failure !== undefined);
  for (const tab of cluster.tabs) if (!tab.isBanned) tab.paste(pastedGroups(prng));
  await settle();
  stranger.leave();
}

type OfStranger = { connection: SimConnection | undefined; isWelcome: boolean; unfinishedBytes: number };

class UnfinishedStranger {
  /** Count of connections that a gateway ended for their unfinished frames. */
  endedEver = 0;
  readonly #cluster: Cluster;
  readonly #prng: Prng;
  readonly #user: UserId;
  readonly #process: SimProcess;
  readonly #connections: OfStranger[] = Array.from({ length: CONNECTIONS }, () => closed());
  #isGone = false;

  constructor(cluster: Cluster, prng: Prng) {
    this.#cluster = cluster;
    this.#prng = prng;
    this.#user = `stranger-${prng.below(1_000_000)}` as UserId;
    this.#process = cluster.world.process(this.#user);
    this.#go();
  }

  leave(): void {
    this.#isGone = true;
    for (const { connection } of this.#connections) connection?.close();
  }

  #go(): void {
    if (this.#isGone) return;
    const at = this.#prng.below(CONNECTIONS);
    const one = this.#connections[at]!;
    if (one.connection?.isOpen !== true) this.#connections[at] = this.#connect();
    else if (this.#prng.chance(LEAVE_CHANCE)) one.connection.close();
    else if (one.isWelcome) this.#sendPart(one);
    this.#process.clock.after(1 + this.#prng.below(SEND_EACH_MS_MAX), () => this.#go());
  }

  #connect(): OfStranger {
    const made = closed();
    made.connection = pick(this.#cluster.internet.listeners(), this.#prng.unit())?.connect(this.#process, {
      opened: () => made.connection?.send(encodeFrame({ type: "hello", version: 1, token: this.#user, agent: "stranger" })),
      received: (bytes) => {
        if (decodeFrame(bytes)?.type === "welcome") made.isWelcome = true;
      },
      closed: (code) => {
        if (code === CLOSE.overloaded.code) this.endedEver += 1;
      },
    });
    return made;
  }

  #sendPart(one: OfStranger): void {
    const { messageBytesMax, frameBytesMax } = this.#cluster.world.settings.gateway;
    const payload = new Uint8Array(PART_BYTES_MIN + this.#prng.below(messageBytesMax - PART_BYTES_MIN - 8));
    if (one.unfinishedBytes + payload.byteLength > frameBytesMax) return;
    one.unfinishedBytes += payload.byteLength;
    one.connection?.send(encodeFrame({ type: "part", flags: { last: false }, payload }));
  }
}

function closed(): OfStranger {
  return { connection: undefined, isWelcome: false, unfinishedBytes: 0 };
}
