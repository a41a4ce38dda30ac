/**
 * One pass over a partition of the log and its activities, from the floor to the first failure. Checkpoints contain
 * everything below the floor. A pass begins with empty memory and skips entries that Redis has already counted, so a
 * new pass costs time and never a point. Its memory is limited: above the limits `mayRead` is false, and reading stops.
 */

import { assertNever } from "../../shared/assert.ts";
import { LogEndLost, placeOf } from "../../shared/bus/record.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { ArchivePlan, type ArchivingOptions } from "../archiving/archive-plan.ts";
import type { ArchivingInput } from "../archiving/archiving-messages.ts";
import type { SentinelWrite, ProgressReport } from "../ports.ts";
import type { BoardRoomOptions } from "./board-room.ts";
import { CheckpointFloor, CountingProgress, type LogFloor, type SentinelPurpose, type StreamEnds } from "./progress.ts";
import type { PassEffect, PassInput, PassTime, PassView } from "./pass-messages.ts";
import { PassJobs, type PassJobsOptions } from "./pass-jobs.ts";
import { PassRooms, type PassRoomsOptions } from "./pass-rooms.ts";
import { PassUpkeep } from "./pass-upkeep.ts";
import { RoomFeed } from "./room-feed.ts";

export type PassOptions = BoardRoomOptions &
  ArchivingOptions &
  PassRoomsOptions &
  PassJobsOptions & {
    /** Name of this run of the leaderboard, which no other run has. */
    readonly service: string;
  };

/** A pass that is over still passes outcomes to its rooms, and begins nothing new. */
type State = "starting" | "running" | "over" | "draining";

const HEARTBEAT_MS = 1_000;
const ARCHIVE_MS = 1_000;
const NEVER = Number.POSITIVE_INFINITY;

export class CountingPass {
  readonly #options: PassOptions;
  readonly #rooms: PassRooms;
  readonly #feed: RoomFeed;
  readonly #jobs: PassJobs;
  readonly #floor: CheckpointFloor;
  readonly #progress: CountingProgress;
  readonly #archiving: ArchivePlan;
  readonly #upkeep: PassUpkeep;
  /** Activities up to this stream sequence are removed from their stream, because checkpoints cover them. */
  #forgotten = 0;
  /** `NEVER` while the work is in progress. */
  #heartbeatAt = NEVER;
  #archiveAt = NEVER;
  #state: State = "starting";
  /** Reason why the pass is over. */
  #reason = "lease";
  #time: PassTime = { now: 0 as PassTime["now"], wallNow: 0 as UnixMillis };
  #effects: PassEffect[] = [];

  /** `through`: progress of the previous pass, for readers that ask in the meantime. */
  constructor(partition: number, from: { floor: LogFloor; through: UnixMillis }, options: PassOptions, view: PassView) {
    this.#options = options;
    this.#floor = new CheckpointFloor(from.floor);
    this.#progress = new CountingProgress({ edits: from.floor.edits, activities: 0 }, from.through);
    this.#rooms = new PassRooms(options, view.countedPartitions);
    this.#upkeep = new PassUpkeep(partition);
    this.#archiving = new ArchivePlan(partition, options, (room) => this.#upkeep.isAside(room));
    this.#feed = new RoomFeed(this.#rooms, options, {
      effect: (effect) => this.#effect(effect),
      fail: (reason, message) => this.#fail(reason, message),
      setAside: (room, cause) => this.#setAside(room, cause),
      settle: (room) => this.#jobs.settle(room, this.#time.now),
      isOver: () => this.isOver,
    });
    this.#jobs = new PassJobs(this.#rooms, this.#feed, options, view.watchedRooms, {
      received: () => this.#progress.received,
      hasCaughtUp: () => this.#progress.hasCaughtUp,
      onCounted: (through) => {
        if (this.#progress.receiveCounted(through)) this.#effect({ kind: "caught-up", through });
      },
      onSaved: () => this.#receiveSaved(),
      onTotalsSent: (through) => this.#progress.receiveTotalsSent(through),
      onRestored: (room) => this.#feedArchiving({ kind: "room-restored", room }),
      through: () => this.#progress.through,
    });
  }

  get isOver(): boolean {
    return this.#state === "over" || this.#state === "draining";
  }

  get reason(): string {
    return this.#reason;
  }

  get hasCaughtUp(): boolean {
    return this.#progress.hasCaughtUp;
  }

  get through(): UnixMillis {
    return this.#progress.through;
  }

  get rooms(): Pick<PassRooms, "size" | "active" | "pending"> {
    return this.#rooms;
  }

  get mayRead(): boolean {
    return !this.#rooms.isFull;
  }

  isApplying(room: RoomKey): boolean {
    return this.#rooms.get(room)?.isApplying === true;
  }

  /** Time of the next "tick", on the steady clock. */
  get nextTickAt(): number {
    const activitiesEnd = this.#feed.activitiesEnd.dueAt ?? NEVER;
    if (this.#state !== "running") return this.#state === "starting" ? activitiesEnd : NEVER;
    return Math.min(this.#heartbeatAt, this.#archiveAt, this.#upkeep.nextAt, this.#jobs.nextAt, activitiesEnd);
  }

  receiveInput(input: PassInput, time: PassTime): PassEffect[] {
    this.#time = time;
    this.#feed.now = time.now;
    this.#take(input);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #take(input: PassInput): void {
    if (this.isOver) return this.#takeWhenOver(input);
    switch (input.kind) {
      case "begin":
        return this.#effect({ kind: "read-forgotten" });
      case "forgotten-read":
        this.#forgotten = input.through;
        this.#progress.receiveEntry("activities", input.through);
        return this.#effect({ kind: "read-progress" });
      case "progress-read":
        this.#progress.resume(input.report);
        return this.#requestSentinel({ kind: "start" });
      case "sentinel-written":
        return this.#receiveSentinel(input.beat);
      case "checkpoints-listed":
        return this.#restoreAll(input.rooms);
      case "progress-begun":
        this.#floor.receiveBegun(input.sentinel);
        this.#effect({ kind: "floor-raised", floor: this.#floor.floor });
        return this.#run();
      case "record":
        if (input.source === "edits") this.#floor.receiveRecord(placeOf(input.stored));
        this.#feed.receiveRecord(input.source, input.stored);
        return this.#progress.receiveEntry(input.source, input.stored.streamSeq);
      case "tick":
        return this.#tick();
      case "count-room":
        return this.#jobs.countRoom(input.room);
      case "room":
        this.#feed.feed(input.room, input.outcome);
        return this.#jobs.settle(input.room, this.#time.now);
      case "archiving":
        return this.#feedArchiving(input.outcome);
      case "ends-read":
        return this.#receiveEnds(input);
      case "last-activity-read":
        this.#progress.receiveLastActivity(input.last);
        return this.#scheduleHeartbeat();
      case "activities-end-read":
        return this.#feed.confirmActivities(this.#feed.activitiesEnd.receiveEnd(input.end, this.#time.now));
      case "activities-read-now":
        return this.#feed.confirmActivities(this.#feed.activitiesEnd.receiveReadNow());
      case "activities-skipped":
        this.#progress.receiveEntry("activities", input.through);
        return this.#feed.confirmActivities(this.#feed.activitiesEnd.receiveSkipped(input.through));
      case "activities-forgotten":
        this.#forgotten = input.through;
        return this.#jobs.endSaving(this.#time.now);
      case "checkpoint-tried":
        if (input.isReadable) return this.#fail("stale", `the checkpoint of room ${input.room} can be decoded again`);
        this.#effects.push(...this.#upkeep.tryNext(this.#time.now));
        return;
      case "swept":
        return this.#upkeep.receiveSwept(this.#time.now);
      case "stop":
        return this.#end("lease");
      case "failed":
        return this.#fail("failed", input.cause);
      case "drain":
        return;
      default:
        return assertNever(input);
    }
  }

  /** Rooms complete their requests in progress, and a drain saves the other rooms. */
  #takeWhenOver(input: PassInput): void {
    switch (input.kind) {
      case "drain":
        this.#state = "draining";
        return this.#jobs.drain(input.until, this.#time.now, () => {
          this.#cover();
          this.#requestSentinel({ kind: "drain" });
        });
      case "room":
        this.#feed.feed(input.room, input.outcome);
        if (this.#state === "draining") this.#jobs.settle(input.room, this.#time.now);
        return;
      case "sentinel-written":
        this.#floor.receiveBeat(input.beat);
        this.#effect({ kind: "floor-raised", floor: this.#floor.floor });
        return this.#state === "draining" ? this.#writeSentinel() : undefined;
      default:
        return; // No caller waits for the answer any more.
    }
  }

  #effect(effect: PassEffect): void {
    this.#effects.push(effect);
  }

  #end(reason: string): void {
    this.#state = "over";
    this.#reason = reason;
    this.#jobs.cancel();
  }

  #fail(reason: "stale" | "doubtful" | "gap" | "failed", cause: unknown): void {
    if (this.isOver) return;
    if (reason === "gap" || cause instanceof LogEndLost) this.#effect({ kind: "floor-raised", floor: this.#floor.reset() });
    this.#end(reason);
    this.#effect({ kind: "failed", cause, floor: this.#floor.floor });
  }

  #run(): void {
    const { now } = this.#time;
    this.#state = "running";
    this.#feed.refusesGaps = !this.#floor.acceptsGaps;
    const { edits, activities } = this.#progress.received;
    this.#effect({ kind: "follow", source: "edits", after: edits, last: this.#floor.floor.last });
    this.#effect({ kind: "follow", source: "activities", after: activities });
    this.#jobs.begin(now);
    this.#archiveAt = now + ARCHIVE_MS;
    this.#upkeep.begin(now);
    this.#requestSentinel({ kind: "heartbeat" });
  }

  #tick(): void {
    const { now } = this.#time;
    this.#feed.confirmActivities(this.#feed.activitiesEnd.tick(now));
    if (this.#state !== "running") return;
    this.#jobs.tick(now);
    if (now >= this.#heartbeatAt) {
      this.#heartbeatAt = NEVER;
      this.#requestSentinel({ kind: "heartbeat" });
    }
    if (now >= this.#archiveAt) {
      this.#archiveAt = NEVER;
      this.#feedArchiving({ kind: "look", through: this.hasCaughtUp ? this.through : undefined });
    }
    this.#effects.push(...this.#upkeep.tick(now, this.hasCaughtUp));
  }

  #feedArchiving(input: ArchivingInput): void {
    for (const effect of this.#archiving.receiveInput(input, this.#time.wallNow)) {
      switch (effect.kind) {
        case "confirm":
          this.#requestSentinel({ kind: "confirm", subject: effect.subject });
          break;
        case "restore-room":
          this.#jobs.restore(effect.closing.room);
          break;
        case "set-room-aside":
          this.#setAside(effect.room, effect.cause);
          break;
        case "archived":
          if (effect.closing !== undefined) this.#rooms.get(effect.closing.room)?.forgetWindow(effect.closing.window.id);
          this.#effect({ kind: "archived", outcome: effect.outcome });
          break;
        default:
          this.#effect({ kind: "archiving", request: effect });
      }
    }
    if (this.#archiving.isIdle && this.#archiveAt === NEVER) this.#archiveAt = this.#time.now + ARCHIVE_MS;
  }

  /** When the checkpoint of a room that is set aside decodes again, a new pass counts the room from the floor. */
  #setAside(room: RoomKey, cause: unknown): void {
    if (this.#upkeep.setAside(room)) this.#effect({ kind: "set-aside", room, cause, count: this.#upkeep.asideCount });
  }

  #requestSentinel(purpose: SentinelPurpose): void {
    this.#floor.requestSentinel(purpose);
    this.#writeSentinel();
  }

  #writeSentinel(): void {
    if (!this.#floor.beginSentinel()) return;
    this.#effect({ kind: "write-sentinel", report: this.#report(), last: this.#floor.floor.sentinel });
  }

  #receiveSentinel(beat: SentinelWrite): void {
    const purposes = this.#floor.receiveBeat(beat);
    if (beat.kind !== "lost") this.#effect({ kind: "floor-raised", floor: this.#floor.floor });
    if (this.#state === "starting") return beat.kind === "lost" ? this.#effect({ kind: "list-checkpoints" }) : this.#run();
    if (beat.kind !== "kept")
      return this.#fail("doubtful", "Redis was away or lost data: its boards are compared with the checkpoints again");
    for (const purpose of purposes) {
      if (purpose.kind === "heartbeat") this.#readEnds();
      if (purpose.kind === "confirm") this.#feedArchiving({ kind: "confirmed", subject: purpose.subject });
    }
    this.#writeSentinel();
  }

  #report(): ProgressReport {
    const { through, totalsSent, hasCaughtUp } = this.#progress;
    return { service: this.#options.service, through, totalsSent, isRebuilding: !hasCaughtUp };
  }

  /** Redis may have lost boards. Each room whose checkpoint has more than Redis is restored. */
  #restoreAll(rooms: readonly RoomKey[]): void {
    if (rooms.length > 0) this.#effect({ kind: "restoring", rooms: rooms.length });
    this.#jobs.restoreAll(rooms, () => this.#effect({ kind: "begin-progress", report: this.#report() }));
  }

  #readEnds(): void {
    this.#progress.beginAsking(this.#time.wallNow);
    this.#effect({ kind: "read-ends" });
  }

  #receiveEnds(ends: StreamEnds): void {
    const next = this.#progress.receiveEnds(ends);
    if (next.kind === "lost") return this.#fail("failed", next.message);
    if (next.kind === "ask-last") return this.#effect({ kind: "read-last-activity" });
    this.#scheduleHeartbeat();
  }

  #scheduleHeartbeat(): void {
    this.#heartbeatAt = this.#time.now + HEARTBEAT_MS;
  }

  #receiveSaved(): void {
    this.#cover();
    this.#rooms.retire();
    const covered = this.#floor.kept.activities;
    if (covered > this.#forgotten) this.#effect({ kind: "forget-activities", through: covered });
    else this.#jobs.endSaving(this.#time.now);
  }

  #cover(): void {
    this.#floor.cover(this.#rooms.coveredThrough(this.#progress.received));
  }
}
