/**
 * Runs one pass: passes records, ticks and outcomes to it, and carries out its effects. `pass.ts` decides. The pass has
 * ended once it is over and no request is in progress.
 */

import { assertNever } from "../../shared/assert.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { LogEndLost } from "../../shared/bus/record.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause, rethrowMistake } from "../../shared/time/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { ActivityStream, CountedEditLog, Progress } from "../ports.ts";
import type { PassEffect, PassInput, PassNotice, PassRequest, PassView } from "./pass-messages.ts";
import { type ArchivingPorts, type BoardRoomPorts, carryOutArchiving, carryOutRoom } from "./pass-requests-host.ts";
import { CountingPass, type PassOptions } from "./pass.ts";
import type { LogFloor } from "./progress.ts";

export type PassPorts = BoardRoomPorts &
  ArchivingPorts & { readonly log: CountedEditLog; readonly activities: ActivityStream; readonly progress: Progress };
export type PassDeps = PassView & {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: LeaderboardMetrics;
  /** While true, the connection to Redis states why each pass fails. */
  readonly isRedisAway: () => boolean;
  readonly onCounted: (room: RoomKey) => void;
};

const FULL_PAUSE_MS = 20;

export class PassHost {
  readonly pass: CountingPass;
  readonly #partition: number;
  readonly #ports: PassPorts;
  readonly #deps: PassDeps;
  readonly #onFloor: (floor: LogFloor) => void;
  readonly #over = new AbortController();
  #underWay = 0;
  #restoredCount = 0;
  #timerAt = Number.POSITIVE_INFINITY;
  #callOff: () => void = () => {};
  /** Callers that wait for a room to be counted. */
  #waiting: { readonly room: RoomKey; readonly resolve: () => void }[] = [];
  /** Callers that wait for the requests in progress. */
  #onQuiet: () => void = () => {};

  constructor(
    partition: number,
    from: { floor: LogFloor; through: UnixMillis },
    ports: PassPorts,
    options: PassOptions,
    deps: PassDeps,
    onFloor: (floor: LogFloor) => void,
  ) {
    this.pass = new CountingPass(partition, from, options, deps);
    this.#partition = partition;
    this.#ports = ports;
    this.#deps = deps;
    this.#onFloor = onFloor;
  }

  /** Resolves once the pass has ended. */
  run(): Promise<void> {
    return this.#untilQuiet({ kind: "begin" });
  }

  stop(): void {
    this.#receivePassInput({ kind: "stop" });
  }

  /** Resolves once the remaining checkpoints are saved, or the time is over. */
  drain(drainMsMax: number): Promise<void> {
    return this.#untilQuiet({ kind: "drain", until: (this.#deps.clock.now() + drainMsMax) as ReturnType<Clock["now"]> });
  }

  /** Resolves once all present entries of the room are counted, or after a timeout. */
  async countNow(room: RoomKey): Promise<void> {
    await Promise.all([this.#ports.log.readNow(this.#partition), this.#ports.activities.readNow(this.#partition)]);
    this.#receivePassInput({ kind: "count-room", room });
    await new Promise<void>((resolve) => {
      this.#waiting.push({ room, resolve });
      this.#resolveCounted();
    });
  }

  #untilQuiet(input: PassInput): Promise<void> {
    return new Promise((resolve) => {
      this.#onQuiet = resolve;
      this.#receivePassInput(input);
    });
  }

  #receivePassInput(input: PassInput): void {
    const { clock } = this.#deps;
    for (const effect of this.pass.receiveInput(input, { now: clock.now(), wallNow: clock.wallNow() })) this.#carryOut(effect);
    this.#setTimer();
    if (this.#waiting.length > 0) this.#resolveCounted();
    if (!this.pass.isOver) return;
    this.#over.abort();
    this.#reportRestored(); // The next pass finds these rooms restored.
    if (this.#underWay === 0) this.#onQuiet();
  }

  #setTimer(): void {
    const at = this.pass.nextTickAt;
    if (at === this.#timerAt) return;
    this.#callOff();
    this.#timerAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#deps;
    this.#callOff = clock.after(Math.max(0, at - clock.now()), () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#receivePassInput({ kind: "tick" });
    });
  }

  #resolveCounted(): void {
    const isDone = (room: RoomKey): boolean => this.pass.isOver || !this.pass.isApplying(room);
    for (const { room, resolve } of this.#waiting) if (isDone(room)) resolve();
    this.#waiting = this.#waiting.filter(({ room }) => !isDone(room));
  }

  #carryOut(effect: PassEffect): void {
    switch (effect.kind) {
      case "follow":
        return this.#await(this.#follow(effect));
      case "floor-raised":
        return this.#onFloor(effect.floor);
      case "counted":
        this.#deps.metrics.edits.inc(effect.edits);
        return this.#deps.onCounted(effect.room);
      case "restoring":
      case "caught-up":
      case "edits-missing":
      case "record-undecodable":
      case "set-aside":
      case "boards-removed":
      case "archived":
      case "failed":
        return this.#report(effect);
      default:
        return this.#await(this.#request(effect));
    }
  }

  #await(outcome: Promise<PassInput>): void {
    this.#underWay += 1;
    outcome.then(
      (input) => {
        this.#underWay -= 1;
        this.#receivePassInput(input);
      },
      (cause: unknown) => {
        rethrowMistake(cause);
        this.#underWay -= 1;
        this.#receivePassInput({ kind: "failed", cause });
      },
    );
  }

  async #follow({ source, after, last }: PassEffect & { kind: "follow" }): Promise<PassInput> {
    const { log, activities } = this.#ports;
    const [partition, { signal }] = [this.#partition, this.#over];
    const records = source === "edits" ? log.follow(partition, { after, last }, signal) : activities.follow(partition, after, signal);
    for await (const stored of records) {
      this.#receivePassInput({ kind: "record", source, stored });
      this.#deps.metrics.records.inc();
      while (!this.pass.mayRead && !this.pass.isOver) await pause(this.#deps.clock, FULL_PAUSE_MS, this.#over.signal);
    }
    return { kind: "failed", cause: new Error(`the stream of ${source} ended: is NATS reachable?`) };
  }

  async #request(request: PassRequest): Promise<PassInput> {
    const [partition, { activities, checkpoints, log, progress }] = [this.#partition, this.#ports];
    switch (request.kind) {
      case "read-forgotten":
        return { kind: "forgotten-read", through: await activities.forgotten(partition) };
      case "read-progress":
        return { kind: "progress-read", report: await progress.read(partition) };
      case "write-sentinel":
        return { kind: "sentinel-written", beat: await progress.beat(partition, request.report, request.last) };
      case "begin-progress":
        this.#reportRestored();
        return { kind: "progress-begun", sentinel: await progress.begin(partition, request.report) };
      case "list-checkpoints":
        return { kind: "checkpoints-listed", rooms: await checkpoints.rooms(partition) };
      case "read-ends": {
        const [edits, ofActivities] = await Promise.all([log.end(partition), activities.end(partition)]);
        return { kind: "ends-read", edits, activities: ofActivities };
      }
      case "read-last-activity":
        return { kind: "last-activity-read", last: await activities.last(partition) };
      case "read-activities-end":
        return { kind: "activities-end-read", end: await activities.end(partition) };
      case "read-activities-now":
        await activities.readNow(partition);
        return { kind: "activities-read-now" };
      case "skip-activities":
        this.#reportSkip(request);
        await activities.forget(partition, request.through);
        return { kind: "activities-skipped", through: request.through };
      case "forget-activities":
        await activities.forget(partition, request.through);
        return { kind: "activities-forgotten", through: request.through };
      case "try-checkpoint":
        return { kind: "checkpoint-tried", room: request.room, isReadable: await this.#isReadable(request.room) };
      case "sweep":
        await this.#sweep(request.ageMsMin);
        return { kind: "swept" };
      case "room": {
        const { room } = request;
        const deps = { ...this.#deps, partition, onRestored: () => (this.#restoredCount += 1) };
        return { kind: "room", room, outcome: await carryOutRoom(room.key, request.request, this.#ports, deps) };
      }
      case "archiving":
        return { kind: "archiving", outcome: await carryOutArchiving(partition, request.request, this.#ports) };
      default:
        return assertNever(request);
    }
  }

  async #isReadable(room: RoomKey): Promise<boolean> {
    try {
      await this.#ports.checkpoints.mark(room);
      await this.#ports.checkpoints.read(room);
      return true;
    } catch (cause) {
      if (cause instanceof UndecodableEntry) return false;
      throw cause;
    }
  }

  /** The next sweep removes the objects that this sweep could not remove. */
  async #sweep(ageMsMin: number): Promise<void> {
    const { log } = this.#deps;
    try {
      const swept = await this.#ports.checkpoints.sweep(ageMsMin);
      if (swept > 0) log.info({ swept }, "removed checkpoints of boards that a crash had left without an entry");
    } catch (cause) {
      rethrowMistake(cause);
      log.warn({ cause }, "the sweep for unnamed checkpoints of boards failed; it is repeated in an hour");
    }
  }

  /** Without a sentinel Redis may still have all boards: another leaderboard wrote one, and ended before its lease named it. */
  #reportRestored(): void {
    const [partition, rooms] = [this.#partition, this.#restoredCount];
    this.#restoredCount = 0;
    if (rooms > 0)
      this.#deps.log.warn(
        { partition, rooms },
        "Redis had lost boards: they are restored from checkpoints, and the log is counted from there",
      );
  }

  #reportSkip({ end, through }: PassRequest & { kind: "skip-activities" }): void {
    this.#deps.metrics.rolledBack.inc();
    this.#deps.log.error(
      { partition: this.#partition, end, counted: through },
      "the stream of activities ended before what was counted of it: was it restored from a backup? Activities since then may not count; later ones do",
    );
  }

  #report(notice: Exclude<PassNotice, { kind: "follow" | "floor-raised" | "counted" }>): void {
    const [partition, { log, metrics }] = [this.#partition, this.#deps];
    switch (notice.kind) {
      case "restoring":
        return log.info(
          { partition, rooms: notice.rooms },
          "Redis does not have the last sentinel: its boards are compared with the checkpoints of all rooms",
        );
      case "caught-up":
        return log.info({ partition, through: notice.through }, "the boards are up to date");
      case "edits-missing":
        metrics.missing.inc(notice.missing);
        return log.warn(
          { room: notice.room, streamSeq: notice.streamSeq, missing: notice.missing },
          "the log had lost edits before they were counted: the room's boards lack them",
        );
      case "record-undecodable": {
        const { room, streamSeq } = notice.stored;
        metrics.unreadable.inc();
        return log.warn(
          { room, source: notice.source, streamSeq },
          "a record does not decode and is not counted: was it written by a newer version?",
        );
      }
      case "set-aside":
        metrics.aside.set({ partition: String(partition) }, notice.count);
        return log.error(
          { partition, room: notice.room, cause: notice.cause },
          "a room is not counted because the checkpoint of its boards does not decode: run the version that wrote it, restore it from a backup, or remove its entry; it is tried again every few seconds",
        );
      case "boards-removed":
        return metrics.removals.inc();
      case "archived":
        return metrics.archived.inc({ outcome: notice.outcome });
      case "failed": {
        const { cause, floor } = notice;
        const isUncertain = cause instanceof LogEndLost && !cause.isCertain;
        const isKnown = !(cause instanceof LogEndLost) && this.#deps.isRedisAway();
        const level = isUncertain ? "info" : isKnown ? "debug" : "warn";
        return log[level]({ partition, after: floor.edits, cause }, "counting begins again from the last checkpoints");
      }
      default:
        return assertNever(notice);
    }
  }
}
