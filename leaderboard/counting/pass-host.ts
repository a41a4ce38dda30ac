/**
 * One pass over a partition of the log and its activities: from the floor (up to there everything is in checkpoints),
 * with an empty memory, to the first surprise. What Redis has counted already is passed over, so a pass costs time and
 * never a point. What it holds is bounded: past the limits it stops reading, and the log waits.
 */

import { isDeletedRecord } from "../../shared/bus/record.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import { ActivitiesEnd } from "./activities-end-host.ts";
import { AsideRooms } from "./aside-host.ts";
import { archiveClosed, type ClosedOptions, type ClosedPorts } from "../archiving/closed-host.ts";
import { Counting, type CountingDeps, type CountingOptions } from "./counting-host.ts";
import { type Floor, Footing } from "./footing-host.ts";
import { type Ends, Headway } from "./headway.ts";
import type { Source } from "./instants.ts";
import { PassRooms, type PassRoomsDeps, type PassRoomsOptions } from "./pass-rooms.ts";
import type { ActivityStream, EditLog, Progress, Word } from "../ports.ts";
import { decodeReceived, type Received } from "./received.ts";
import { BoardRoom, type RoomDeps, type RoomOptions, type RoomPorts } from "./room-host.ts";
import { sweepCheckpoints } from "./sweep-host.ts";
import { Trouble } from "./trouble.ts";
import { eachOf } from "./turns.ts";

export type PassPorts = RoomPorts &
  ClosedPorts & { readonly log: EditLog; readonly activities: ActivityStream; readonly progress: Progress };
export type PassOptions = RoomOptions &
  ClosedOptions &
  PassRoomsOptions &
  CountingOptions & {
    /** This run of the leaderboard: no other ever has its name. */
    readonly service: string;
    readonly boardsDrainMsMax: number;
  };
export type PassDeps = Omit<RoomDeps, "expectBehind" | "onAside"> & {
  readonly watchedRooms: CountingDeps["watchedRooms"];
  readonly countedPartitions: PassRoomsDeps["countedPartitions"];
  readonly onFloor: (floor: Floor) => void;
};

const BEAT_MS = 1_000;
const FULL_PAUSE_MS = 20;
const SAVE_MS = 500;

export class PassHost {
  readonly #partition: number;
  readonly #ports: PassPorts;
  readonly #options: PassOptions;
  readonly #deps: PassDeps;
  readonly #over = new AbortController();
  readonly #rooms: PassRooms;
  readonly #counting: Counting;
  readonly #footing: Footing;
  /** Activities up to this stream sequence are removed from their stream: checkpoints cover them. */
  #forgotten = 0;
  readonly #activitiesEnd: ActivitiesEnd;
  readonly #headway: Headway;
  readonly #aside: AsideRooms;
  #reason = "lease";

  /** `through`: how far the pass before had come, for those who ask meanwhile. */
  constructor(partition: number, from: { floor: Floor; through: UnixMillis }, ports: PassPorts, options: PassOptions, deps: PassDeps) {
    this.#partition = partition;
    this.#headway = new Headway({ edits: from.floor.edits, activities: 0 }, from.through);
    this.#footing = new Footing(partition, from.floor, ports.progress, deps.onFloor);
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#activitiesEnd = new ActivitiesEnd(partition, ports.activities, {
      ...deps,
      onSkip: (through) => this.#headway.receive("activities", through),
    });
    this.#aside = new AsideRooms(partition, ports.checkpoints, deps);
    this.#rooms = new PassRooms(options, {
      newRoom: (key) => this.#newRoom(key),
      onFailure: (cause) => this.#fail(cause),
      countedPartitions: deps.countedPartitions,
    });
    this.#counting = new Counting(partition, this.#rooms, this.#headway, options, deps);
  }

  get hasCaughtUp(): boolean {
    return this.#headway.hasCaughtUp;
  }

  get through(): UnixMillis {
    return this.#headway.through;
  }

  get rooms(): Pick<PassRooms, "size" | "pending"> {
    return this.#rooms;
  }

  /** Resolves once all that the streams have of the room now is counted, or after a while. */
  async countNow(room: RoomKey): Promise<void> {
    await Promise.all([this.#ports.log.readNow(this.#partition), this.#ports.activities.readNow(this.#partition)]);
    const known = this.#rooms.get(room);
    if (known !== undefined && !this.#isOver) await known.apply().catch((cause: unknown) => this.#fail(cause));
  }

  /** Returns why it ended. */
  async run(signal: AbortSignal): Promise<string> {
    const end = (): void => this.#over.abort();
    signal.addEventListener("abort", end);
    await this.#part(async () => {
      this.#forgotten = await this.#ports.activities.forgotten(this.#partition);
      this.#headway.receive("activities", this.#forgotten);
      this.#headway.resume(await this.#ports.progress.read(this.#partition));
      if ((await this.#footing.say(this.#word())) === "lost") await this.#restoreAll();
      await Promise.all(
        [
          () => this.#follow("edits"),
          () => this.#follow("activities"),
          () => this.#counting.count(this.#over.signal),
          () => this.#save(),
          () => this.#beat(),
          () => this.#archive(),
          () => this.#counting.tellTotals(this.#over.signal),
          () => this.#sweep(),
          () => this.#aside.expectUnreadable(this.#over.signal),
        ].map((work) => this.#part(work)),
      );
    });
    signal.removeEventListener("abort", end);
    return this.#reason;
  }

  /** Checkpoints what is left, so that whoever comes next begins at the end of the log. */
  async drain(): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.now() + this.#options.boardsDrainMsMax;
    await this.#part(() =>
      eachOf(this.#rooms.all, this.#options.boardCheckpointWritesMax, async (room) => {
        if (clock.now() < deadline && !room.isCovered) await room.saveCheckpoint();
      }),
    );
    this.#cover();
    await this.#part(() => this.#expectKept());
  }

  /** The first part that fails ends them all. */
  async #part(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      this.#fail(cause);
    } finally {
      this.#over.abort();
    }
  }

  #fail(cause: unknown): void {
    unlessMistake(cause);
    if (this.#isOver) return;
    this.#reason = cause instanceof Trouble ? cause.reason : "failed";
    this.#deps.log.warn(
      { partition: this.#partition, after: this.#footing.floor, cause },
      "counting begins again from the last checkpoints",
    );
    this.#over.abort();
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Redis may have less than it had, or nothing: every room of which a checkpoint has more gets its boards back. */
  async #restoreAll(): Promise<void> {
    const rooms = await this.#ports.checkpoints.rooms(this.#partition);
    if (rooms.length > 0) {
      this.#deps.log.warn(
        { partition: this.#partition, rooms: rooms.length },
        "Redis may have lost boards: those it lacks are put back from checkpoints, and the log is counted from there",
      );
    }
    await eachOf(rooms, this.#options.boardCheckpointWritesMax, async (room) => {
      if (!this.#isOver) await this.#restore(room);
    });
    if (!this.#isOver) await this.#footing.begin(this.#word());
  }

  async #restore(room: RoomKey): Promise<void> {
    const restored = this.#newRoom(room);
    await restored.open();
    await restored.tellTotals();
  }

  async #follow(source: Source): Promise<void> {
    const stream = source === "edits" ? this.#ports.log : this.#ports.activities;
    for await (const stored of stream.follow(this.#partition, this.#headway.received[source], this.#over.signal)) {
      if (source === "edits" && isDeletedRecord(stored.bytes)) {
        this.#rooms.delete(stored.room, stored.streamSeq);
      } else {
        const received = this.#read(source, stored);
        if (received !== undefined) this.#rooms.receive(stored.room, received);
      }
      this.#headway.receive(source, stored.streamSeq);
      this.#deps.metrics.records.inc();
      while (this.#rooms.isFull && !this.#isOver) await pause(this.#deps.clock, FULL_PAUSE_MS, this.#over.signal);
    }
    if (!this.#isOver) throw new Error(`the stream of ${source} ended: is NATS reachable?`);
  }

  /** Undefined: nothing to count. */
  #read(source: Source, stored: StoredRecord): Received | undefined {
    const decoded = decodeReceived(source, stored);
    if (decoded.kind === "received") return decoded.received;
    if (decoded.kind === "nothing") return undefined;
    const { room, streamSeq } = stored;
    this.#deps.metrics.unreadable.inc();
    this.#deps.log.warn({ room, source, streamSeq }, "a record does not decode and counts for nothing: was it written by a newer version?");
    return undefined;
  }

  #newRoom(key: RoomKey): BoardRoom {
    return new BoardRoom(key, this.#partition, this.#ports, this.#options, {
      ...this.#deps,
      expectBehind: (activity) => this.#activitiesEnd.expectBehind(activity, this.#over.signal),
      onAside: (room, cause) => this.#aside.add(room, cause),
    });
  }

  /** Checkpoints what is due, and forgets who is quiet. */
  async #save(): Promise<void> {
    const { clock } = this.#deps;
    for (;;) {
      await pause(clock, SAVE_MS, this.#over.signal);
      await eachOf(this.#rooms.checkpointsDue(clock.now()), this.#options.boardCheckpointWritesMax, async (room) => {
        if (!this.#isOver) await room.saveCheckpoint();
      });
      if (this.#isOver) return;
      this.#cover();
      this.#rooms.retire();
      await this.#forgetActivities();
    }
  }

  #cover(): void {
    const { edits, activities } = this.#headway.received;
    this.#footing.cover({
      edits: this.#rooms.coveredThrough("edits", edits),
      activities: this.#rooms.coveredThrough("activities", activities),
    });
  }

  /** What checkpoints cover of them nobody reads again. */
  async #forgetActivities(): Promise<void> {
    const covered = this.#footing.kept.activities;
    if (covered <= this.#forgotten) return;
    await this.#ports.activities.forget(this.#partition, covered);
    this.#forgotten = covered;
  }

  #word(): Word {
    const { through, told, hasCaughtUp } = this.#headway;
    return { service: this.#options.service, through, told, isRebuilding: !hasCaughtUp };
  }

  async #beat(): Promise<void> {
    while (!this.#isOver) {
      await this.#expectKept();
      const [asked, received] = [this.#deps.clock.wallNow(), this.#headway.received];
      const [edits, activities] = await Promise.all([this.#ports.log.end(this.#partition), this.#ports.activities.end(this.#partition)]);
      expectRead("edits", edits, received);
      expectRead("activities", activities, received);
      // Those of rooms that are deleted are removed before anyone counts them, the last of all among them.
      const last = activities > received.activities ? await this.#ports.activities.last(this.#partition) : activities;
      this.#headway.aimAt({ edits, activities: last }, asked);
      await pause(this.#deps.clock, BEAT_MS, this.#over.signal);
    }
  }

  async #expectKept(): Promise<void> {
    if ((await this.#footing.say(this.#word())) !== "kept") {
      throw new Trouble("doubtful", "Redis was away or lost data: what it still has is looked at anew");
    }
  }

  async #archive(): Promise<void> {
    const { clock, metrics } = this.#deps;
    await archiveClosed(
      this.#partition,
      this.#ports,
      this.#options,
      {
        clock,
        metrics,
        through: () => (this.hasCaughtUp ? this.through : undefined),
        confirm: () => this.#expectKept(),
        restore: (room) => this.#restore(room),
        isAside: (room) => this.#aside.has(room),
        setAside: (room, cause) => this.#aside.add(room, cause),
        onArchived: ({ room, window }) => this.#rooms.get(room)?.forgetWindow(window.id),
      },
      this.#over.signal,
    );
  }

  async #sweep(): Promise<void> {
    const mayBegin = (): boolean => this.#partition === 0 && this.hasCaughtUp;
    await sweepCheckpoints(this.#ports.checkpoints, { ...this.#deps, mayBegin }, this.#over.signal);
  }
}

function expectRead(source: Source, end: number, received: Ends): void {
  if (end >= received[source]) return;
  const why = "it was lost or put back from a backup";
  throw new Error(`the stream of ${source} ends at ${end}, before ${received[source]} which had been read: ${why}`);
}
