/**
 * Counts one room. It looks up the stored boards, and restores them from the checkpoint if Redis has less. Then it counts
 * records and activities, applies one batch at a time, and saves the checkpoint. Each batch names the mark that it follows.
 * A batch after mark 7 is stale if Redis is at 8: the pass ends, and the next pass begins at the floor.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import { BoardRemoval } from "../archiving/removal.ts";
import { type CountedPosition, type ScoreBatch, type BoardsDump, isAhead, type CountedMark, type Uses } from "../boards/board.ts";
import type { BoardWrite, CheckpointMark, CheckpointWrite, RoomChange, StoredBoards } from "../ports.ts";
import type { BoardRoomEffect, BoardRoomInput, OpeningOutcome } from "./board-room-messages.ts";
import { CheckpointPlan } from "./checkpoint-plan.ts";
import type { ReceivedEntry, Source } from "./received.ts";
import { RoomOpening } from "./room-opening.ts";
import { type ProjectionOptions, RoomProjection } from "./room-projection.ts";
import { RoomWindows } from "./room-windows.ts";

export type BoardRoomOptions = ProjectionOptions & { readonly boardCheckpointMsMax: number };

type State =
  /** The stored boards are being looked up. `waiting`: the entries received in the meantime, and their number. */
  | { readonly kind: "opening"; readonly waiting: ReceivedEntry[]; entries: number }
  | { readonly kind: "counting"; readonly projection: RoomProjection }
  /**
   * The checkpoint does not decode. Records are discarded. Only the stream sequence of the first one is kept, because
   * no checkpoint covers it.
   */
  | { readonly kind: "aside" }
  /** `endsAt`: the stream sequence of the deletion record; undefined once the boards are removed. */
  | { readonly kind: "deleted"; endsAt: number | undefined };

/** The look-up of the stored boards. A deletion does not interrupt it. */
type Opening =
  | { readonly kind: "looking-up"; readonly opening: RoomOpening }
  /** Waits until new activities are certain to get numbers above the counted ones. */
  | { readonly kind: "confirming"; readonly applied: CountedPosition; readonly uses: Uses };

type Saving =
  /** `through`: the mark that the checkpoint has to contain. `upTo`: the mark up to which the dump names all windows. */
  | { readonly kind: "applying" | "sending-totals"; readonly through: CountedMark }
  | { readonly kind: "dumping"; readonly through: CountedMark; readonly upTo: CountedMark }
  | { readonly kind: "writing"; readonly dump: BoardsDump }
  /** `removal`: undefined while a batch is being applied. */
  | { readonly kind: "removing"; readonly removal: BoardRemoval | undefined; readonly endsAt: number };

/** The result of most inputs. It is shared, so that a record allocates nothing. */
const NOTHING: readonly BoardRoomEffect[] = [];

export class BoardRoom {
  readonly key: RoomKey;
  readonly #options: BoardRoomOptions;
  readonly #checkpoint: CheckpointPlan;
  readonly #windows: RoomWindows;
  #state: State = { kind: "opening", waiting: [], entries: 0 };
  #opening: Opening | undefined;
  /** The batch that is being applied. */
  #batch: ScoreBatch | undefined;
  #saving: Saving | undefined;
  #effects: BoardRoomEffect[] = [];

  constructor(key: RoomKey, options: BoardRoomOptions) {
    this.key = key;
    this.#options = options;
    this.#windows = new RoomWindows(options.boardWindows);
    this.#checkpoint = new CheckpointPlan(options);
  }

  /** Entries that wait to be applied. */
  get pending(): number {
    if (this.#state.kind === "opening") return this.#state.entries;
    return this.#state.kind === "counting" ? this.#state.projection.entries : 0;
  }

  /** The first entry of a stream that no checkpoint covers. */
  uncoveredFrom(source: Source): number | undefined {
    if (this.#state.kind !== "deleted") return this.#checkpoint.uncoveredFrom(source);
    return source === "edits" ? this.#state.endsAt : undefined;
  }

  get isCovered(): boolean {
    return this.uncoveredFrom("edits") === undefined && this.uncoveredFrom("activities") === undefined;
  }

  get isOpening(): boolean {
    return this.#state.kind === "opening" || this.#opening !== undefined;
  }

  get isApplying(): boolean {
    return this.#batch !== undefined;
  }

  get isSaving(): boolean {
    return this.#saving !== undefined;
  }

  get isSendingTotals(): boolean {
    return this.#windows.totals.isSending;
  }

  /** Whether the tenant's board may lack a total of the room. */
  get hasUnsentTotals(): boolean {
    return this.#state.kind !== "deleted" && !this.#windows.totals.areSent;
  }

  /** The checkpoint cannot be decoded: this pass does not count the room. */
  get isAside(): boolean {
    return this.#state.kind === "aside";
  }

  /** Whether the room can be forgotten without losing anything. */
  get canRetire(): boolean {
    return this.#isIdle && this.isCovered && !this.hasUnsentTotals;
  }

  /** `isPressed`: the number of rooms in the pass is close to its maximum. */
  isCheckpointDue(now: Millis, { isPressed }: { isPressed: boolean }): boolean {
    if (this.#saving !== undefined) return false;
    if (this.#state.kind === "deleted") return this.#state.endsAt !== undefined && this.#opening === undefined;
    if (this.#state.kind !== "counting" || this.isCovered) return false;
    return (isPressed && this.#isIdle) || this.#checkpoint.isOverdue(now);
  }

  forgetWindow(id: string): void {
    this.#windows.forget(id);
  }

  receiveInput(input: BoardRoomInput, now: Millis): readonly BoardRoomEffect[] {
    this.#take(input, now);
    if (this.#effects.length === 0) return NOTHING;
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  get #isIdle(): boolean {
    const isSettled = this.#state.kind === "counting" || (this.#state.kind === "deleted" && this.#opening === undefined);
    return isSettled && this.pending === 0 && this.#batch === undefined && this.#saving === undefined;
  }

  #take(input: BoardRoomInput, now: Millis): void {
    switch (input.kind) {
      case "open":
        this.#opening = { kind: "looking-up", opening: new RoomOpening(this.key) };
        return this.#effect({ kind: "look-up" });
      case "received":
        return this.#receiveEntry(input.received, now);
      case "deleted":
        return void (this.#state = { kind: "deleted", endsAt: input.streamSeq }); // A room in the state "aside" is deleted too, with its boards.
      case "apply":
        return this.#applyNext();
      case "send-totals":
        return this.#sendTotals(this.#windows.totals.send());
      case "save":
        return this.#beginSaving();
      case "looked-up":
        this.#noteLookUp(input.stored, input.mark);
        return this.#advanceOpening(input);
      case "undecodable":
        this.#opening = undefined;
        if (this.#state.kind !== "deleted") this.#state = { kind: "aside" };
        return this.#effect({ kind: "set-aside", cause: input.cause });
      case "deletion-marked":
      case "checkpoint-read":
      case "restored":
      case "loaded":
        return this.#advanceOpening(input);
      case "windows-opened":
        if (this.#batch === undefined) return this.#advanceOpening(input);
        this.#windows.receiveRegistered(this.#batch);
        return this.#effect(this.#windows.nextRequest(this.#batch));
      case "activities-confirmed":
        return this.#beginCounting(now);
      case "batch-applied":
        return this.#receiveApplied(input.write);
      case "totals-sent":
        this.#sendTotals(this.#windows.totals.receiveSent());
        return this.#continueSaving();
      case "dumped":
        return this.#receiveDump(input.dump);
      case "checkpoint-written":
        return this.#receiveWritten(input.write);
      case "removed":
        return this.#opening === undefined ? this.#receiveRemoved(input) : this.#advanceOpening(input);
      default:
        return assertNever(input);
    }
  }

  #effect(effect: BoardRoomEffect): void {
    this.#effects.push(effect);
  }

  #fail(message: string, reason: "stale" | "gap" = "stale"): void {
    this.#effect({ kind: "fail", reason, message });
  }

  #noteLookUp(stored: StoredBoards, mark: CheckpointMark): void {
    if (!mark.isDeleted && stored !== "deleted") {
      this.#checkpoint.receiveStored(mark);
      this.#windows.add(mark.windows, "all"); // A leaderboard may have stopped before it sent them.
    } else if (this.#state.kind !== "deleted") this.#state = { kind: "deleted", endsAt: undefined };
  }

  #advanceOpening(input: OpeningOutcome): void {
    assert(this.#opening?.kind === "looking-up", "the room's boards are being looked up");
    const step = this.#opening.opening.receiveOutcome(input, this.#state.kind === "deleted");
    switch (step.kind) {
      case "next":
        return this.#effect(step.effect);
      case "known":
        this.#opening = { kind: "confirming", applied: step.applied, uses: step.uses };
        return this.#effect({ kind: "confirm-activities", counted: step.applied.activity });
      case "over":
        return void (this.#opening = undefined);
      default:
        return assertNever(step);
    }
  }

  #beginCounting(now: Millis): void {
    const opening = this.#opening;
    this.#opening = undefined;
    if (this.#state.kind !== "opening") return;
    assert(opening?.kind === "confirming", "a room counts once its boards are known");
    const { waiting } = this.#state;
    const projection = new RoomProjection(opening.applied, opening.uses, this.#options);
    this.#state = { kind: "counting", projection };
    this.#checkpoint.forgetEntries(); // The checkpoint may cover the first of them.
    for (const received of waiting) this.#count(projection, received, now);
  }

  #receiveEntry(received: ReceivedEntry, now: Millis): void {
    if (this.#state.kind === "deleted") return;
    if (this.#state.kind === "counting") return this.#count(this.#state.projection, received, now);
    this.#checkpoint.receiveEntry(received, now);
    if (this.#state.kind === "aside") return;
    this.#state.waiting.push(received);
    this.#state.entries += received.entries;
  }

  #count(projection: RoomProjection, received: ReceivedEntry, now: Millis): void {
    const { source, streamSeq, time } = received;
    this.#checkpoint.receiveEntry(received, now);
    const outcome =
      source === "edits"
        ? projection.receiveRecord(received.record, streamSeq, time)
        : projection.receiveActivity(received.activity, streamSeq, time);
    // The leaderboard that counted the entry may have stopped before it sent the totals.
    if (outcome.kind === "known") this.#windows.enterCounted(source, time);
    if (outcome.kind === "gap") this.#fail(`the boards of room ${this.key} may lack edits below the checkpoint floor`, "gap");
    if (outcome.kind === "counted" && outcome.missing > 0) this.#effect({ kind: "edits-missing", streamSeq, missing: outcome.missing });
  }

  /** Applies batches until none is left. */
  #applyNext(): void {
    if (this.#batch !== undefined) return;
    this.#batch = this.#state.kind === "counting" ? this.#state.projection.takeBatch() : undefined;
    if (this.#batch === undefined) return this.#continueSaving();
    this.#effect(this.#windows.nextRequest(this.#batch));
  }

  #receiveApplied(write: BoardWrite): void {
    const batch = this.#batch;
    assert(batch !== undefined, "an applied batch was under way");
    if (write.kind === "stale") {
      return this.#fail(`room ${this.key} is counted up to ${JSON.stringify(write.counted)}, not ${JSON.stringify(batch.after)}`);
    }
    this.#batch = undefined;
    this.#windows.addBatch(batch);
    this.#effect({ kind: "counted", edits: Math.max(0, batch.applied.seq - batch.after.seq) });
    this.#applyNext();
  }

  #sendTotals(changes: readonly RoomChange[]): void {
    if (changes.length > 0) this.#effect({ kind: "send-totals", changes });
  }

  #beginSaving(): void {
    if (this.#saving !== undefined) return;
    if (this.#state.kind === "deleted") {
      const { endsAt } = this.#state;
      if (endsAt === undefined || this.#opening !== undefined) return;
      this.#saving = { kind: "removing", removal: undefined, endsAt };
      return this.#continueSaving();
    }
    if (this.#state.kind !== "counting") return;
    this.#checkpoint.begin();
    this.#saving = { kind: "applying", through: this.#state.projection.applied };
    this.#applyNext();
  }

  /** Called whenever a batch or an update of totals has ended. */
  #continueSaving(): void {
    const saving = this.#saving;
    switch (saving?.kind) {
      case "applying":
        if (this.#batch !== undefined) return;
        this.#saving = { kind: "sending-totals", through: saving.through };
        this.#sendTotals(this.#windows.totals.send()); // Entries that a checkpoint covers are not read again.
        return this.#continueSaving();
      case "sending-totals":
        if (this.#windows.totals.isSending) return;
        if (this.#state.kind !== "counting") return void (this.#saving = undefined); // The room was deleted meanwhile.
        this.#saving = { kind: "dumping", through: saving.through, upTo: this.#state.projection.taken };
        return this.#effect({ kind: "dump", windows: this.#windows.allWith(this.#batch) });
      case "removing":
        return this.#beginRemoval(saving);
      case "dumping":
      case "writing":
      case undefined:
        return;
      default:
        return assertNever(saving);
    }
  }

  #receiveDump(dump: BoardsDump | undefined): void {
    assert(this.#saving?.kind === "dumping", "a dump was asked for");
    if (dump === undefined || isAhead(this.#saving.through, dump.applied)) {
      return this.#fail(`the boards of room ${this.key} are counted less far than they were: did Redis lose data?`);
    }
    if (isAhead(dump.applied, this.#saving.upTo)) return this.#fail(`another leaderboard counts room ${this.key}, in windows unknown here`);
    this.#saving = { kind: "writing", dump };
    this.#effect({ kind: "write-checkpoint", dump, revision: this.#checkpoint.revision });
  }

  #receiveWritten(write: CheckpointWrite): void {
    assert(this.#saving?.kind === "writing", "a checkpoint was being written");
    if (write.kind === "superseded") return this.#fail(`another leaderboard wrote the checkpoint of room ${this.key}`);
    this.#checkpoint.end(this.#saving.dump.applied, write.revision);
    this.#saving = undefined;
  }

  #beginRemoval(saving: Saving & { kind: "removing" }): void {
    if (this.#batch !== undefined || saving.removal !== undefined) return;
    const removal = new BoardRemoval();
    this.#saving = { ...saving, removal };
    this.#effect(removal.begin());
  }

  #receiveRemoved(input: BoardRoomInput & { kind: "removed" }): void {
    assert(this.#saving?.kind === "removing" && this.#saving.removal !== undefined, "a removal was under way");
    const next = this.#saving.removal.receiveRemoved(input);
    if (next !== undefined) return this.#effect(next);
    if (this.#state.kind === "deleted" && this.#state.endsAt === this.#saving.endsAt) this.#state.endsAt = undefined;
    this.#saving = undefined;
    this.#effect({ kind: "boards-removed" });
  }
}
