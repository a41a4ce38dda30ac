/**
 * What becomes of an edit that comes in, before the log has seen it: taken, in its writer's order; answered, where the
 * log has it already; refused, with the reason. Rules INT1 to INT5.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Answer, SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { Epoch, Millis, RoomKey } from "../../shared/ids.ts";
import type { NackReason, SavingState, TentativeEdit } from "../../shared/wire/frames.ts";
import type { GroupCommit, GroupCommitOptions, UnackedEdit } from "./group-commit.ts";
import type { Seal } from "../ports.ts";
import { Refusals } from "./refusals.ts";
import type { Sequencer } from "./sequencer.ts";

export type IntakeOptions = GroupCommitOptions & {
  /** When an edit that was refused for want of room may be sent again. */
  readonly refusedRetryMs: number;
  /** A writer that left a gap is told once in so long. */
  readonly gapQuietMs: number;
};

export type Taken =
  | { kind: "accepted"; edit: UnackedEdit }
  | { kind: "answered"; answer: Answer }
  /** There is no room for it: that is counted, too. */
  | { kind: "full"; answer: Answer }
  /** It waits already, or its writer was told of a gap a moment ago. */
  | { kind: "passed-over" };

/** `saving`: "refusing" turns new edits away. */
export type IntakeState = { readonly epoch: Epoch; readonly saving: SavingState };

const PASSED_OVER: Taken = { kind: "passed-over" };

export class Intake {
  readonly #key: RoomKey;
  readonly #sequencer: Sequencer;
  readonly #unacked: GroupCommit;
  readonly #seal: Seal;
  readonly #options: IntakeOptions;
  readonly #refusals = new Refusals();

  constructor(key: RoomKey, parts: { sequencer: Sequencer; unacked: GroupCommit; seal: Seal }, options: IntakeOptions) {
    this.#key = key;
    this.#sequencer = parts.sequencer;
    this.#unacked = parts.unacked;
    this.#seal = parts.seal;
    this.#options = options;
  }

  receiveEdit(edit: SubmittedEdit, state: IntakeState, now: Millis): Taken {
    const { client } = edit.author;
    const place = this.#sequencer.placeOf(client, edit.counter, edit.ackedThrough, now);
    switch (place.kind) {
      case "next":
        return this.#receiveNext(edit, state, now);
      case "waiting":
        return PASSED_OVER;
      case "committed": {
        if (place.seq === 0) return PASSED_OVER; // A writer that claims commits in an empty log.
        const { seq, exact } = place;
        return { kind: "answered", answer: { kind: "acked", epoch: state.epoch, client, counter: edit.counter, seq, exact } };
      }
      case "gap":
        if (!this.#refusals.maySay(client, now)) return PASSED_OVER;
        this.#refusals.refused(client, this.#options.gapQuietMs, now);
        return { kind: "answered", answer: refusal(state, edit, "gap", place.expected, 0) };
      default:
        return assertNever(place);
    }
  }

  /**
   * Taken only where the room has no edit. A repeat is answered as any. While another edit waits for the log nothing is
   * said: it is sent again, and by then the other is in, or lost. It is never shown as tentative, for whoever holds it
   * could send it in once another is first.
   */
  receiveFirstEdit(edit: SubmittedEdit, state: IntakeState, now: Millis): Taken {
    const { author, counter, ackedThrough } = edit;
    if (this.#sequencer.placeOf(author.client, counter, ackedThrough, now).kind !== "next") return this.receiveEdit(edit, state, now);
    if (this.#sequencer.head > 0)
      return { kind: "answered", answer: { kind: "not-first", epoch: state.epoch, client: author.client, counter } };
    if (this.#unacked.size > 0) return PASSED_OVER;
    const taken = this.receiveEdit(edit, state, now);
    if (taken.kind === "accepted") taken.edit.shown = "never";
    return taken;
  }

  /** An edit that somebody else holds, of a writer who may be gone: a room server has sealed that it is theirs. */
  receiveResubmit(edit: TentativeEdit, state: IntakeState, now: Millis): Taken {
    const { user, client, counter, ackedThrough, parentSeq, payload } = edit;
    const submitted = { author: { user, client }, counter, ackedThrough, parentSeq, payload };
    if (this.#seal.isGenuine(this.#key, edit)) return this.receiveEdit(submitted, state, now);
    return { kind: "answered", answer: refusal(state, submitted, "forged", counter, 0) };
  }

  /** It remembers of nobody that it refused an edit. */
  get isIdle(): boolean {
    return this.#refusals.size === 0;
  }

  forgetPast(now: Millis): void {
    this.#refusals.forgetPast(now);
  }

  #receiveNext(edit: SubmittedEdit, state: IntakeState, now: Millis): Taken {
    const { client } = edit.author;
    const reason = this.#reasonToRefuse(edit.payload, state);
    if (reason !== undefined) {
      const retryAfterMs = reason === "too-large" ? 0 : this.#options.refusedRetryMs;
      this.#refusals.refused(client, Math.max(retryAfterMs, this.#options.gapQuietMs), now);
      return {
        kind: reason === "write-backpressure" ? "full" : "answered",
        answer: refusal(state, edit, reason, edit.counter, retryAfterMs),
      };
    }
    this.#refusals.accepted(client);
    this.#sequencer.accept(client, edit.counter);
    return { kind: "accepted", edit: this.#unacked.add(edit, now) };
  }

  #reasonToRefuse(payload: Uint8Array, { saving }: IntakeState): NackReason | undefined {
    if (payload.byteLength > this.#options.recordBytesMax) return "too-large";
    if (saving === "refusing") return "log-stalled";
    return this.#unacked.hasRoomFor(payload) ? undefined : "write-backpressure";
  }
}

function refusal(
  { epoch }: IntakeState,
  { author, counter }: SubmittedEdit,
  reason: NackReason,
  expected: number,
  retryAfterMs: number,
): Answer {
  return { kind: "refused", epoch, client: author.client, counter, reason, expected, retryAfterMs };
}
