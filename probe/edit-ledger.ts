/**
 * One room's edits: which were made when, acknowledged, and seen by whom. Says how long each took, and which are lost.
 *
 * PED1 what counts as lost is told by the order, not by a clock: a participant has the room up to behind an edit, and
 *      not the edit. However long an outage, nothing is lost by it;
 * PED2 how long an edit takes to a participant counts where its line and the writer's stood all the while: coming back is
 *      measured by itself;
 * PED3 what a snapshot stands for can be neither seen nor missed.
 */

import type { Millis, Seq } from "../shared/ids.ts";
import type { Finding } from "./findings.ts";

/** Of one ledger, from 1 on. */
export type EditNumber = number;
/** Index of a participant. */
export type ParticipantIndex = number;

export type EditLedgerOptions = { readonly lateMs: number; readonly editsMax: number };

type Edit = {
  readonly writer: ParticipantIndex;
  readonly writtenAt: Millis;
  seq: Seq | undefined;
  ackedAt: Millis | undefined;
  readonly missing: Set<ParticipantIndex>;
  /** Those whom it did not reach over lines that stood all the while. */
  readonly strayed: Set<ParticipantIndex>;
  isLate: boolean;
};

/** `cameAt` undefined: it is away. `through`: has all of the room up to there; of that a snapshot stands for what is up to `skipped`. */
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

  /** Undefined: none waits. */
  get oldestAt(): Millis | undefined {
    const [oldest] = this.#edits.values();
    return oldest?.writtenAt;
  }

  /** They have all of the room from here on, as it comes. Who came once is expected to see all that is made. */
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
      missing: new Set(others),
      strayed: new Set(strayed),
      isLate: false,
    });
    if (this.#edits.size > this.#options.editsMax) this.#forgetOldest(findings);
    return number;
  }

  /** In the room's order, without a hole. `number` undefined: an edit of somebody else's. */
  receiveDelivered(participant: ParticipantIndex, seq: Seq, number: EditNumber | undefined, now: Millis, findings: Finding[]): void {
    const edit = number === undefined ? undefined : this.#edits.get(number);
    if (edit !== undefined) {
      edit.seq ??= seq;
      if (participant === edit.writer) this.#acknowledge(edit, now, findings);
      else if (edit.missing.delete(participant) && !edit.strayed.has(participant))
        findings.push({ kind: "edit-arrived", ms: now - edit.writtenAt });
    }
    this.#passTo(participant, seq);
    this.#settle(findings);
  }

  /** A snapshot stands for all up to there. */
  receiveSnapshot(participant: ParticipantIndex, seq: Seq, findings: Finding[]): void {
    const observer = this.#observers.get(participant);
    if (observer !== undefined) observer.skipped = seq;
    this.#passTo(participant, seq);
    this.#settle(findings);
  }

  /** The log is another from here on: what waits has no place in its order that is known. */
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

  #passTo(participant: ParticipantIndex, seq: Seq): void {
    const observer = this.#observers.get(participant);
    if (observer !== undefined && seq > observer.through) observer.through = seq;
  }

  /** Whoever has the room up to an edit has seen it, or does without it. */
  #settle(findings: Finding[]): void {
    for (const [number, edit] of this.#edits) {
      const { seq } = edit;
      if (seq === undefined) continue;
      for (const participant of edit.missing) {
        const { through, skipped } = this.#observers.get(participant)!;
        if (through < seq) continue;
        edit.missing.delete(participant);
        findings.push({ kind: seq <= skipped ? "edit-unjudged" : "edit-lost" });
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
