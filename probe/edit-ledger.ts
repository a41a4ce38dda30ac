/**
 * Records the edits of one room: when each was made, acknowledged and seen, how long that took, and which are lost.
 * PED1: an edit counts as lost if a participant has the room up to a later seq without it; time alone never makes an
 * edit lost. PED2: the time to a participant counts only if both connections lasted; reconnects are measured
 * separately. PED3: edits in a snapshot count neither as seen nor as lost. PED8: an edit that its writer received in a
 * snapshot waits only until a later edit of the writer is acknowledged.
 */

import type { Millis, Seq } from "../shared/ids.ts";
import type { Finding } from "./findings.ts";

/** Number of an edit within one ledger, from 1. */
type EditNumber = number;
/** Index of a participant. */
export type ParticipantIndex = number;

type EditLedgerOptions = { readonly lateMs: number; readonly editsMax: number };

type Edit = {
  readonly writer: ParticipantIndex;
  readonly writtenAt: Millis;
  seq: Seq | undefined;
  ackedAt: Millis | undefined;
  /** The writer loaded a snapshot before the acknowledgement. If the snapshot contains the edit, it is never delivered to the writer. */
  mayBeInSnapshot: boolean;
  /** The seq of the writer's later edit that acknowledged this one. */
  ackedBy: Seq | undefined;
  readonly missing: Set<ParticipantIndex>;
  /** Participants that the edit did not reach over an uninterrupted connection. */
  readonly strayed: Set<ParticipantIndex>;
  isLate: boolean;
};

/**
 * `cameAt` undefined: the participant is disconnected. `through`: it has all of the room up to this seq; edits up to
 * `skipped` were in a snapshot.
 */
type Observer = { cameAt: Millis | undefined; through: Seq; skipped: Seq };

const NOTHING = 0 as Seq;

export class EditLedger {
  readonly #options: EditLedgerOptions;
  readonly #edits = new Map<EditNumber, Edit>();
  readonly #observers = new Map<ParticipantIndex, Observer>();
  #lastNumber = 0;

  constructor(options: EditLedgerOptions) {
    this.#options = options;
  }

  /** Undefined: no edit waits. */
  get oldestAt(): Millis | undefined {
    const [oldest] = this.#edits.values();
    return oldest?.writtenAt;
  }

  /** From now on the participant has all edits of the room. A participant that joined once is expected to see all edits. */
  receiveCame(participant: ParticipantIndex, now: Millis): void {
    const observer = this.#observers.get(participant);
    if (observer === undefined) this.#observers.set(participant, { cameAt: now, through: NOTHING, skipped: NOTHING });
    else observer.cameAt ??= now;
  }

  receiveWent(participant: ParticipantIndex): void {
    const observer = this.#observers.get(participant);
    if (observer === undefined) return;
    observer.cameAt = undefined;
    for (const { writer, missing, strayed } of this.#edits.values()) {
      if (missing.has(participant)) strayed.add(participant);
      if (writer === participant) for (const other of missing) strayed.add(other);
    }
  }

  write(writer: ParticipantIndex, now: Millis, findings: Finding[]): EditNumber {
    const others = [...this.#observers.keys()].filter((participant) => participant !== writer);
    const strayed = this.#isHere(writer) ? others.filter((participant) => !this.#isHere(participant)) : others;
    const number = (this.#lastNumber += 1);
    this.#edits.set(number, {
      writer,
      writtenAt: now,
      seq: undefined,
      ackedAt: undefined,
      mayBeInSnapshot: false,
      ackedBy: undefined,
      missing: new Set(others),
      strayed: new Set(strayed),
      isLate: false,
    });
    if (this.#edits.size > this.#options.editsMax) this.#forgetOldest(findings);
    return number;
  }

  /** Call in the room's order, without a gap. `number` undefined: an edit of another writer. */
  receiveDelivered(participant: ParticipantIndex, seq: Seq, number: EditNumber | undefined, now: Millis, findings: Finding[]): void {
    const edit = number === undefined ? undefined : this.#edits.get(number);
    if (edit !== undefined) {
      edit.seq ??= seq;
      if (participant === edit.writer) {
        this.#acknowledge(edit, now, findings);
        this.#acknowledgeBefore(edit, now, findings);
      } else if (edit.missing.delete(participant) && !edit.strayed.has(participant))
        findings.push({ kind: "edit-arrived", ms: now - edit.writtenAt });
    }
    this.#passTo(participant, seq);
    this.#settle(findings);
  }

  /** A snapshot contains all edits up to this seq. */
  receiveSnapshot(participant: ParticipantIndex, seq: Seq, findings: Finding[]): void {
    for (const edit of this.#edits.values()) edit.mayBeInSnapshot ||= edit.writer === participant && edit.ackedAt === undefined;
    const observer = this.#observers.get(participant);
    if (observer !== undefined) observer.skipped = seq;
    this.#passTo(participant, seq);
    this.#settle(findings);
  }

  /** The log has changed: the order of waiting edits is unknown, so they are dropped. */
  receiveRolledBack(findings: Finding[]): void {
    findings.push({ kind: "rolled-back" });
    for (const observer of this.#observers.values()) observer.through = observer.skipped = NOTHING;
    while (this.#edits.size > 0) this.#forgetOldest(findings);
  }

  tick(now: Millis, findings: Finding[]): void {
    for (const edit of this.#edits.values()) {
      const { ackedAt, missing, isLate } = edit;
      if (isLate || ackedAt === undefined) continue;
      const waiting = [...missing].filter((participant) => this.#hasWaited(participant, ackedAt, now));
      edit.isLate = waiting.length > 0;
      for (const _ of waiting) findings.push({ kind: "edit-late" });
    }
  }

  #isHere(participant: ParticipantIndex): boolean {
    return this.#observers.get(participant)?.cameAt !== undefined;
  }

  #hasWaited(participant: ParticipantIndex, ackedAt: Millis, now: Millis): boolean {
    const cameAt = this.#observers.get(participant)?.cameAt;
    return cameAt !== undefined && now >= Math.max(cameAt, ackedAt) + this.#options.lateMs;
  }

  #acknowledge(edit: Edit, now: Millis, findings: Finding[]): void {
    if (edit.ackedAt !== undefined) return;
    edit.ackedAt = now;
    findings.push({ kind: "edit-acknowledged", ms: now - edit.writtenAt });
  }

  /**
   * The room has a writer's edits in the order of writing, and the writer receives them in that order. An earlier edit
   * that was not delivered to its writer was in a snapshot.
   */
  #acknowledgeBefore(later: Edit, now: Millis, findings: Finding[]): void {
    for (const edit of this.#edits.values()) {
      if (edit === later) return;
      if (edit.writer !== later.writer || edit.ackedAt !== undefined || !edit.mayBeInSnapshot) continue;
      edit.ackedAt = now;
      edit.ackedBy = later.seq;
      findings.push({ kind: "edit-unjudged" });
    }
  }

  #passTo(participant: ParticipantIndex, seq: Seq): void {
    const observer = this.#observers.get(participant);
    if (observer !== undefined && seq > observer.through) observer.through = seq;
  }

  /** A participant that has the room up to an edit has either seen the edit or lost it. */
  #settle(findings: Finding[]): void {
    for (const [number, edit] of this.#edits) {
      const passed = edit.seq ?? edit.ackedBy;
      if (passed === undefined) continue;
      for (const participant of edit.missing) {
        const { through, skipped } = this.#observers.get(participant)!;
        if (through < passed) continue;
        edit.missing.delete(participant);
        const isUnjudged = edit.seq === undefined || edit.seq <= skipped; // Without a seq the edit was delivered to nobody: all loaded snapshots.
        findings.push({ kind: isUnjudged ? "edit-unjudged" : "edit-lost" });
      }
      if (edit.ackedAt !== undefined && edit.missing.size === 0) this.#edits.delete(number);
    }
  }

  #forgetOldest(findings: Finding[]): void {
    const [number, edit] = this.#edits.entries().next().value!;
    this.#edits.delete(number);
    for (let missing = edit.missing.size; missing > 0; missing--) findings.push({ kind: "edit-unjudged" });
  }
}
