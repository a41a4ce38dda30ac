/**
 * Answers catch-ups that need more history than the backlog has: reads the log, a limited number of reads at a time,
 * and sends the answers of `LogReplay`. A client that just loaded the newest snapshot is always served, because the log
 * is trimmed only up to that snapshot. A gateway that requests the rest is read for from the end of its last answer.
 */

import { hasContent, hasDocument } from "../../shared/bus/checkpoint.ts";
import type { CatchUp } from "../../shared/bus/envelope.ts";
import { headOf } from "../../shared/bus/record.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { CheckpointReader, Gateways, RoomLog } from "../ports.ts";
import { LogReplay, ReplayPositions, type ReplayKey } from "./log-replay.ts";
import type { OwnedRoomEffect } from "./room-messages.ts";

export type LogCatchUpsOptions = {
  readonly logReadsMax: number;
  readonly logReadsWaitingMax: number;
  readonly logReadBytesMax: number;
  readonly answerBytesMax: number;
  readonly roomsMax: number;
};
type Ports = { readonly log: Pick<RoomLog, "read">; readonly checkpoints: CheckpointReader; readonly gateways: Gateways };
type LogCatchUpsDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics };
type Question = { readonly room: RoomKey; readonly effect: OwnedRoomEffect & { kind: "read-log" } };
type Read = Question & { readonly id: string };

/**
 * A gateway that requests the rest waits as long as the last read took, up to this maximum, because the edits of rooms
 * use the same processes.
 */
const REST_MS_MAX = 100;
const TOO_OLD: CatchUp = { kind: "resync", reason: "too-old" };

export class LogCatchUps {
  readonly #ports: Ports;
  readonly #options: LogCatchUpsOptions;
  readonly #deps: LogCatchUpsDeps;
  readonly #waiting: Read[] = [];
  /** Requests that wait or are being read. A repeated request with the same number gets the same answer. */
  readonly #open = new Set<string>();
  /** Rooms that are known to have a snapshot with content, most recent last. A room with such a snapshot always keeps one. */
  readonly #withSnapshot = new Set<RoomKey>();
  readonly #replayPositions: ReplayPositions;
  #running = 0;

  constructor(ports: Ports, options: LogCatchUpsOptions, deps: LogCatchUpsDeps) {
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#replayPositions = new ReplayPositions(options.logReadsWaitingMax);
  }

  answer(room: RoomKey, effect: Question["effect"]): void {
    if (effect.request.after.seq === 0 && this.#withSnapshot.has(room)) return this.#send({ room, effect }, TOO_OLD); // A large group of new clients needs one checkpoint read.
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
      this.#replayPositions.forget(placeOf(next));
      ended();
    });
  }

  #send(question: Question, answer: CatchUp): void {
    const { room, effect } = question;
    const { request, epoch, head } = effect;
    if (answer.kind === "resync") this.#replayPositions.forget(placeOf(question));
    this.#deps.metrics.catchUps.inc({ source: answer.kind === "resync" ? "resync" : "log" });
    this.#ports.gateways.answer(request.gateway, room, { kind: "catch-up", request: request.request, epoch, head, answer });
  }

  async #read(read: Question): Promise<void> {
    const { room, effect } = read;
    const { clock } = this.#deps;
    const { gateway, after, through } = effect.request;
    const replayPosition = this.#replayPositions.find(placeOf(read));
    if (replayPosition !== undefined && replayPosition.restUntil > clock.now()) await pause(clock, replayPosition.restUntil - clock.now());
    const startedAt = clock.now();
    const checkpoint = await this.#ports.checkpoints.newest(room);
    if (checkpoint === "deleted") return; // Another message informs the gateway of the deletion.
    if (checkpoint !== undefined && hasContent(checkpoint)) this.#remember(room);
    const isBehind = checkpoint !== undefined && checkpoint.seq > after.seq;
    // Without a newer snapshot a resync could not help, so all records are read.
    const mayResync = isBehind && hasDocument(checkpoint);
    // A client without content gets the snapshot rather than the log: a log that reaches back to the start is longer.
    if (mayResync && after.seq === 0) return this.#send(read, TOO_OLD);
    const readBytesMax = mayResync ? this.#options.logReadBytesMax : Number.POSITIVE_INFINITY;
    const replay = new LogReplay({
      after,
      through,
      readBytesMax,
      readBytes: replayPosition?.readBytes ?? 0,
      answerBytesMax: this.#options.answerBytesMax,
    });
    const checkpointed = checkpoint === undefined || isBehind ? 1 : checkpoint.streamSeq;
    // The record before the range is still stored, and shows whether the edit before the range is in this log.
    const from = (replayPosition?.streamSeq ?? checkpointed) - 1;
    let last = { streamSeq: from, readBytes: 0 };
    for await (const { record, streamSeq } of this.#ports.log.read(room, from, effect.streamSeq)) {
      const { readBytes } = replay;
      const answer = replay.receiveRecord(record);
      if (record.kind === "edits" && headOf(record) <= replay.answeredThrough) last = { streamSeq, readBytes };
      if (answer === undefined) continue;
      if (answer.kind === "edits" && replay.answeredThrough < through) {
        const now = clock.now();
        const restUntil = (now + Math.min(now - startedAt, REST_MS_MAX)) as Millis;
        this.#replayPositions.keep({ gateway, room, seq: replay.answeredThrough }, { ...last, restUntil });
      }
      return this.#send(read, answer);
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

function placeOf({ room, effect: { request } }: Question): ReplayKey {
  return { gateway: request.gateway, room, seq: request.after.seq };
}

function idOf({ room, effect: { request, epoch } }: Question): string {
  return [request.gateway, room, request.request, request.after.epoch, request.after.seq, epoch].join(" ");
}
