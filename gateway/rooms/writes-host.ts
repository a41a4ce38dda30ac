/**
 * Edits over HTTP, whose authors are not in the room. They take the path of every edit. Each has a client id of its
 * own, with this one edit. The caller waits for the seq. An edit that is not answered in time may still be ordered
 * later: a repeated request with the same key is the same edit.
 */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { type ClientId, type Epoch, type RoomKey, type Seq, tenantOf } from "../../shared/ids.ts";
import type { Counter, NackReason } from "../../shared/wire/frames.ts";
import type { CommittedBatch } from "../../shared/wire/committed-edits.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";

export type WriteRefusal = NackReason | "not-first" | "key-reused" | "tenant-rooms" | "key-waiting" | "too-many-writes" | "deleted";
export type WriteOutcome =
  | { readonly kind: "committed"; readonly epoch: Epoch; readonly seq: Seq }
  | { readonly kind: "refused"; readonly reason: WriteRefusal; readonly retryAfterMs: number }
  | { readonly kind: "unanswered" };

type WritesDeps = { readonly clock: Clock; readonly metrics: GatewayMetrics; readonly usage: UsageMeter };
type WritesOptions = { readonly writesMax: number; readonly writeMsMax: number };

/** The callers that wait for one edit. */
type Waiting = { readonly counter: Counter; readonly bytes: number; readonly callers: Set<(outcome: WriteOutcome) => void> };

const RETRY_MS = 1_000;
const KEY_REUSED: WriteOutcome = { kind: "refused", reason: "key-reused", retryAfterMs: 0 };
/** Not `key-reused`: the log may have this edit from an earlier request, and never get the one that waits. */
const KEY_WAITING: WriteOutcome = { kind: "refused", reason: "key-waiting", retryAfterMs: RETRY_MS };

export class WritesHost {
  readonly #options: WritesOptions;
  readonly #send: (room: RoomKey, edit: SubmittedEdit) => void;
  readonly #deps: WritesDeps;
  readonly #waiting = new Map<RoomKey, Map<ClientId, Waiting>>();
  #writes = 0;

  /** `send`: passes the edit to the room. */
  constructor(options: WritesOptions, send: (room: RoomKey, edit: SubmittedEdit) => void, deps: WritesDeps) {
    this.#options = options;
    this.#send = send;
    this.#deps = deps;
  }

  async write(room: RoomKey, edit: SubmittedEdit): Promise<WriteOutcome> {
    if (this.#writes >= this.#options.writesMax) {
      this.#deps.metrics.limitsReached.inc({ limit: "writes" });
      return { kind: "refused", reason: "too-many-writes", retryAfterMs: RETRY_MS };
    }
    const waiting = this.#waiting.get(room)?.get(edit.author.client);
    if (waiting !== undefined && waiting.counter !== edit.counter) return KEY_WAITING;
    const { clock, metrics } = this.#deps;
    const began = clock.now();
    metrics.writes.set((this.#writes += 1));
    const outcome = await this.#wait(room, edit);
    metrics.writes.set((this.#writes -= 1));
    metrics.writeSeconds.observe({ outcome: outcome.kind }, (clock.now() - began) / 1000);
    return outcome;
  }

  receiveCommitted(room: RoomKey, { epoch, runs }: CommittedBatch): void {
    if (!this.#waiting.has(room)) return;
    for (const { client, counter, seq } of runs) {
      this.#countStored(room, client, counter);
      this.settle(room, client, counter, { kind: "committed", epoch, seq });
      this.#settleAll(room, client, KEY_REUSED); // A request at another gateway was first.
    }
  }

  #countStored(room: RoomKey, client: ClientId, counter: Counter): void {
    const waiting = this.#waiting.get(room)?.get(client);
    if (waiting?.counter !== counter) return;
    this.#deps.usage.add(tenantOf(room), "edits", 1);
    this.#deps.usage.add(tenantOf(room), "editBytes", waiting.bytes);
  }

  settle(room: RoomKey, client: ClientId, counter: Counter, outcome: WriteOutcome): void {
    if (this.#waiting.get(room)?.get(client)?.counter === counter) this.#settleAll(room, client, outcome);
  }

  receiveRefused(room: RoomKey, client: ClientId, reason: WriteRefusal): void {
    this.#settleAll(room, client, { kind: "refused", reason, retryAfterMs: RETRY_MS });
  }

  #settleAll(room: RoomKey, client: ClientId, outcome: WriteOutcome): void {
    for (const answer of this.#waiting.get(room)?.get(client)?.callers ?? []) answer(outcome);
  }

  /** The waiting writes of the room get no other answer. */
  refuseRoom(room: RoomKey, reason: WriteRefusal): void {
    for (const client of this.#waiting.get(room)?.keys() ?? []) this.receiveRefused(room, client, reason);
  }

  /** Two callers that send the same edit wait for the same answer. */
  #wait(room: RoomKey, edit: SubmittedEdit): Promise<WriteOutcome> {
    const { author, counter } = edit;
    const { client } = author;
    return new Promise((resolve) => {
      const ofRoom = this.#waiting.get(room) ?? new Map<ClientId, Waiting>();
      const bytes = edit.payload.byteLength;
      const { callers }: Waiting = ofRoom.get(client) ?? { counter, bytes, callers: new Set() };
      this.#waiting.set(room, ofRoom.set(client, { counter, bytes, callers }));
      const callOff = this.#deps.clock.after(this.#options.writeMsMax, () => answer({ kind: "unanswered" }));
      const answer = (outcome: WriteOutcome): void => {
        callOff();
        callers.delete(answer);
        if (callers.size === 0) this.#forget(room, client);
        resolve(outcome);
      };
      callers.add(answer);
      this.#send(room, edit);
    });
  }

  #forget(room: RoomKey, client: ClientId): void {
    const ofRoom = this.#waiting.get(room);
    ofRoom?.delete(client);
    if (ofRoom?.size === 0) this.#waiting.delete(room);
  }
}
