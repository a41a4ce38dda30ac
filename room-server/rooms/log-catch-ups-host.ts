/**
 * Catch-ups that reach further back than the backlog: reads the log for them, a bounded number at a time, and
 * sends what `LogReplay` makes of it. Whoever has just loaded the newest snapshot is always served: the log is
 * only ever trimmed behind it.
 */

import { hasContent, hasDocument } from "../../shared/bus/checkpoint.ts";
import type { CatchUp } from "../../shared/bus/envelope.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { LogReplay } from "./log-replay.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Checkpoints, Gateways, RoomLog } from "../ports.ts";
import type { RoomEffect } from "./room-messages.ts";

export type LogCatchUpsOptions = {
  readonly logReadsMax: number;
  readonly logReadsWaitingMax: number;
  readonly logReadBytesMax: number;
  readonly answerBytesMax: number;
  readonly roomsMax: number;
};
type Ports = { readonly log: RoomLog; readonly checkpoints: Checkpoints; readonly gateways: Gateways };
type Question = { readonly room: RoomKey; readonly effect: RoomEffect & { kind: "read-log" } };
type Read = Question & { readonly id: string };

const TOO_OLD: CatchUp = { kind: "resync", reason: "too-old" };

export class LogCatchUps {
  readonly #ports: Ports;
  readonly #options: LogCatchUpsOptions;
  readonly #deps: { readonly log: Log; readonly metrics: RoomServerMetrics };
  readonly #waiting: Read[] = [];
  /** What waits or is read. A gateway that asks once more, under the same number, gets the same answer. */
  readonly #open = new Set<string>();
  /** Rooms that are known to have a snapshot with something in it, the newest known last. There will always be one from then on. */
  readonly #withSnapshot = new Set<RoomKey>();
  #running = 0;

  constructor(ports: Ports, options: LogCatchUpsOptions, deps: { log: Log; metrics: RoomServerMetrics }) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  answer(room: RoomKey, effect: Question["effect"]): void {
    if (effect.request.after.seq === 0 && this.#withSnapshot.has(room)) return this.#send({ room, effect }, [TOO_OLD]); // A crowd of newcomers asks for one checkpoint.
    const id = idOf({ room, effect });
    if (this.#open.has(id)) return;
    if (this.#waiting.length >= this.#options.logReadsWaitingMax) {
      this.#deps.metrics.limitsReached.inc({ limit: "log-reads" });
      return;
    }
    this.#open.add(id);
    this.#waiting.push({ room, effect, id });
    this.#startNext();
  }

  #startNext(): void {
    if (this.#running >= this.#options.logReadsMax) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#running += 1;
    const ended = (): void => {
      this.#running -= 1;
      this.#open.delete(next.id);
      this.#startNext();
    };
    this.#read(next).then(ended, (cause: unknown) => {
      this.#deps.log.warn({ room: next.room, cause }, "the log did not answer for a catch-up; the gateway asks again");
      ended();
    });
  }

  #send({ room, effect: { request, epoch, head } }: Question, answers: readonly CatchUp[]): void {
    for (const answer of answers) {
      if (answer.kind === "resync" || answer.last) this.#deps.metrics.catchUps.inc({ source: answer.kind === "resync" ? "resync" : "log" });
      this.#ports.gateways.answer(request.gateway, room, { kind: "catch-up", request: request.request, epoch, head, answer });
    }
  }

  async #read(read: Question): Promise<void> {
    const { room, effect } = read;
    const { after, through } = effect.request;
    const checkpoint = await this.#ports.checkpoints.newest(room);
    if (checkpoint === "deleted") return; // Whoever asked is told so by another way.
    if (checkpoint !== undefined && hasContent(checkpoint)) this.#remember(room);
    const isBehind = checkpoint !== undefined && checkpoint.seq > after.seq;
    // Where no newer snapshot is, or none of a document, a resync could not help: then all is read, however much.
    const mayResync = isBehind && hasDocument(checkpoint);
    // Whoever holds nothing has the snapshot sooner than the log: where it reaches back to the start at all, it is longer.
    if (mayResync && after.seq === 0) return this.#send(read, [TOO_OLD]);
    const readBytesMax = mayResync ? this.#options.logReadBytesMax : Number.POSITIVE_INFINITY;
    const replay = new LogReplay({ after, through, readBytesMax, answerBytesMax: this.#options.answerBytesMax });
    const from = checkpoint === undefined || isBehind ? 0 : checkpoint.streamSeq - 1; // That record is kept, and tells whether the edit before the range is of this log.
    for await (const { record } of this.#ports.log.read(room, from, effect.streamSeq)) {
      this.#send(read, replay.receiveRecord(record));
      if (replay.done) return;
    }
    this.#send(read, replay.receiveEnd());
  }

  #remember(room: RoomKey): void {
    this.#withSnapshot.delete(room);
    this.#withSnapshot.add(room);
    const [oldest] = this.#withSnapshot;
    if (oldest !== undefined && this.#withSnapshot.size > this.#options.roomsMax) this.#withSnapshot.delete(oldest);
  }
}

function idOf({ room, effect: { request, epoch } }: Question): string {
  return [request.gateway, room, request.request, request.after.epoch, request.after.seq, epoch].join(" ");
}
