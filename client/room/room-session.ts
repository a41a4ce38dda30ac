/**
 * One room over one connection: joins it, joins it again after a loss, sends the edits of the outbox, and delivers
 * committed edits. Takes inputs and returns effects; deterministic. Rules ROO1 to ROO31. Its parts: `join-state.ts`
 * (whether the room is joined), `incoming-edits.ts`, `outbox.ts`, `edit-sender.ts`, `catch-up.ts` (gaps and snapshots),
 * `persistence.ts` (the local store). The invariant: leaving the room or losing the connection removes nothing from the
 * outbox and never moves the position back.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, Millis, Position } from "../../shared/ids.ts";
import type { LeftReason, Rights, SavingState } from "../../shared/wire/frames.ts";
import type { Backoff } from "../connection/retry.ts";
import { earlier } from "../connection/turns.ts";
import type { KeptRoom } from "../persistence/edit-store.ts";
import type { RoomPersistence } from "../persistence/persistence.ts";
import type { ClientRandom } from "../ports.ts";
import { type CatchUpStep, Resync, RoomCatchUp } from "./catch-up.ts";
import { EditSender } from "./edit-sender.ts";
import { IncomingEdits, type IncomingEditsOptions } from "./incoming-edits.ts";
import { type JoinOptions, type JoinResult, JoinState } from "./join-state.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import { rightsRevoked, roomDeleted, roomUnavailable } from "./problems.ts";
import type { KnownEdit, RoomFrame, RoomSessionEffect, RoomSessionInput, SharedLimits } from "./room-messages.ts";
import { WriterKey } from "./writer-numbering.ts";

export type RoomSessionOptions = JoinOptions & {
  readonly outbox: OutboxOptions;
  readonly feed: IncomingEditsOptions;
  /** Undefined: the application gave no store. */
  readonly persistence?: ((outbox: Outbox) => RoomPersistence) | undefined;
  readonly resyncBackoff: Backoff;
  /** Servers remember the numbering of an absent client for at least this long. */
  readonly dedupeMs: number;
  readonly since?: KnownEdit | undefined;
};

export class RoomSession {
  readonly #outbox: Outbox;
  readonly #incoming: IncomingEdits;
  readonly #sender: EditSender;
  readonly #catchUp: RoomCatchUp;
  readonly #persistence: RoomPersistence | undefined;
  readonly #joinState: JoinState;
  readonly #writer: WriterKey;
  readonly #hasFormat: boolean;
  /** An edit was made here while tentative edits of others were shown. */
  #buildsOnTentative = false;

  constructor(options: RoomSessionOptions, random: ClientRandom) {
    const unit = (): number => random.unit();
    this.#joinState = new JoinState(options, unit);
    this.#outbox = new Outbox(options.outbox);
    this.#incoming = new IncomingEdits(options.feed, this.#outbox, unit);
    this.#sender = new EditSender(this.#outbox);
    this.#catchUp = new RoomCatchUp(this.#incoming, new Resync(options.resyncBackoff, unit), options.since);
    this.#persistence = options.persistence?.(this.#outbox);
    this.#writer = new WriterKey(this.#outbox, () => random.clientKey(), options.dedupeMs);
    this.#hasFormat = options.outbox.format !== undefined;
  }

  get joinState(): Pick<JoinState, "status" | "joinRetry" | "joined"> {
    return this.#joinState;
  }

  get position(): Position {
    return this.#incoming.position;
  }

  /** Everything up to the head in JOINED has been delivered. */
  get synced(): boolean {
    return this.#catchUp.synced;
  }

  get saving(): SavingState {
    return this.#incoming.saving;
  }

  get unsavedEdits(): number {
    return this.#outbox.unsavedEdits;
  }

  /** True: edits made here may build on tentative edits that never reach the log, and then no client can read them. */
  get buildsOnTentative(): boolean {
    return this.#buildsOnTentative;
  }

  get waiting(): readonly Uint8Array[] {
    const { sent, unsent } = this.#outbox.pending(this.#writer.key);
    return [...sent.map(([{ payload }]) => payload), ...unsent.map(({ payload }) => payload)];
  }

  /** True: all unacknowledged edits survive the end of this page. */
  get stored(): boolean {
    return this.#outbox.isEmpty || this.#persistence?.isKept === true;
  }

  /** Whether the local store is still being opened, and whether anything is left to write. Undefined: there is no store. */
  get keeping(): Pick<RoomPersistence, "isOpening" | "isDone"> | undefined {
    return this.#persistence;
  }

  get client(): ClientId | undefined {
    return this.#incoming.client;
  }

  get rights(): Rights {
    return this.#sender.rights;
  }

  /** Maximum payload in bytes that the server accepts, once known. */
  get editBytesMax(): number | undefined {
    const { connection } = this.#joinState;
    return connection === undefined ? undefined : this.#sender.bytesMaxOf(connection);
  }

  /** The time of the next tick. */
  dueAt(now: Millis): Millis | undefined {
    const keepAt = this.#persistence?.dueAt(now);
    const { live } = this.#joinState;
    if (live === undefined) return earlier(keepAt, this.#joinState.askAgainAt);
    const sendAt = this.#sender.dueAt(live.connection, { synced: this.synced, saving: this.#incoming.saving }, now);
    return earlier(keepAt, earlier(this.#catchUp.dueAt, earlier(this.#incoming.resubmitAt, sendAt)));
  }

  receiveInput(input: RoomSessionInput, now: Millis): RoomSessionEffect[] {
    const effects: RoomSessionEffect[] = [];
    this.#take(input, now, effects);
    this.#buildsOnTentative = (this.#buildsOnTentative || input.kind === "edit") && this.#incoming.showsTentative;
    if (input.kind === "edit") return effects; // Stored and sent with the next tick, so that edits made in one task go together.
    if (input.kind !== "restored") this.#persistence?.observe(effects, this.position);
    this.#persistence?.follow({ clientKey: this.#writer.key, isEnd: input.kind === "leave", isSynced: this.synced }, now, effects);
    return effects;
  }

  #take(input: RoomSessionInput, now: Millis, effects: RoomSessionEffect[]): void {
    switch (input.kind) {
      case "enter":
        return this.#joinState.enter();
      case "leave":
        this.#flush(now, effects); // Edits made just before leaving.
        return this.#leave(now, effects);
      case "connection-open":
        if (!this.#joinState.needsConnection || this.#persistence?.isOpening === true) return;
        this.#sender.isLongAway = this.#writer.receiveReturn(now);
        return this.#join(input, undefined, now, effects);
      case "connection-lost":
        if (this.#joinState.joined !== undefined) this.#writer.receiveSign(input.lastReceivedAt);
        if (this.#joinState.connection !== undefined) this.#end("offline");
        return;
      case "edit":
        return this.#sender.receiveEdit(input.payload, effects);
      case "restored":
        this.#receiveRestored(input.kept, effects);
        break;
      case "keep-failed":
        this.#persistence?.receiveFailed(input.write, input.cause, now, effects);
        break;
      case "stored":
        this.#persistence?.receiveWritten(input.write, this.#writer.key);
        break;
      case "store-lost":
        this.#persistence?.receiveStoreLost();
        break;
      case "frame":
        this.#receiveFrame(input.frame, now, effects);
        break;
      case "snapshot":
        if (this.#joinState.live !== undefined) this.#rejoinIf(this.#catchUp.receiveSnapshot(input.answer, now, effects), now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    this.#send(now, effects);
  }

  /** A late store of a room that has begun gives only edits. The room or the log may have them already, which only a format tolerates. */
  #receiveRestored({ document, edits }: KeptRoom, effects: RoomSessionEffect[]): void {
    const { hasBegun } = this.#joinState;
    const mayBeLate = !hasBegun || this.#hasFormat;
    if (!this.#persistence?.isOpening && !(mayBeLate && this.#persistence?.isLate)) return void effects.push({ kind: "close-store" });
    const inheritance = this.#persistence.receiveOpened(edits, hasBegun);
    this.#outbox.inherit(inheritance);
    this.#incoming.inherit(inheritance);
    if (document !== undefined && !hasBegun) this.#catchUp.restored(document, effects);
    effects.push({ kind: "restored", edits: edits.map(({ payload, made }) => ({ payload, made })) });
  }

  #receiveTick(now: Millis, effects: RoomSessionEffect[]): void {
    const { connection, joined, askAgainAt } = this.#joinState;
    if (connection !== undefined && askAgainAt !== undefined && now >= askAgainAt) this.#join(connection, joined, now, effects);
    if (this.#joinState.live === undefined) return;
    this.#catchUp.fetchSnapshot(now, effects);
    this.#repair(now, effects);
    this.#sender.receiveTick(this.#incoming.saving, now);
    const { channel } = this.#joinState.live?.joined ?? {};
    if (channel === undefined) return; // The repair has started a new join.
    const { resubmit, unconfirmed } = this.#incoming.takeResubmits(now);
    if (this.#sender.rights.write) for (const edit of resubmit) effects.push({ kind: "send", frame: { type: "resubmit", channel, edit } });
    if (unconfirmed.length > 0) effects.push({ kind: "unconfirmed", edits: unconfirmed });
  }

  #send(now: Millis, effects: RoomSessionEffect[]): void {
    this.#flush(now, effects);
    const { live } = this.#joinState;
    if (live !== undefined && this.#writer.renewIfNeeded()) this.#join(live.connection, live.joined, now, effects);
  }

  #flush(now: Millis, effects: RoomSessionEffect[]): void {
    const { live } = this.#joinState;
    if (live === undefined) return;
    const { position, saving } = this.#incoming;
    const where = { channel: live.joined.channel, parentSeq: position.seq, synced: this.synced, saving };
    this.#sender.flush(live.connection, where, now, effects);
  }

  /** `before`: the result of the last join, if it stays valid until the new one. */
  #join(connection: SharedLimits, before: JoinResult | undefined, now: Millis, effects: RoomSessionEffect[]): void {
    this.#joinState.ask(connection, before, now);
    effects.push({ kind: "join", clientKey: this.#writer.key, position: this.#catchUp.beginJoin() });
  }

  #leave(now: Millis, effects: RoomSessionEffect[]): void {
    const { joined, heldChannel } = this.#joinState;
    if (joined !== undefined) this.#writer.receiveSign(now);
    if (heldChannel !== undefined) effects.push({ kind: "send", frame: { type: "leave", channel: heldChannel } });
    this.#end("out");
  }

  /** No frames arrive any more. `offline`: until there is a connection. */
  #end(kind: "out" | "refused" | "offline"): void {
    this.#joinState.end(kind);
    this.#catchUp.lost();
  }

  #receiveFrame(frame: RoomFrame, now: Millis, effects: RoomSessionEffect[]): void {
    switch (frame.type) {
      case "joined":
        return this.#receiveJoined(frame, now, effects);
      case "join-refused":
        return this.#receiveJoinRefused(frame, now, effects);
      case "left":
        return this.#receiveLeft(frame.reason, now, effects);
      case "committed":
      case "ack":
        return this.#receiveSequenced(frame, now, effects);
      case "acked-through":
        this.#outbox.receiveAck(frame.counter, now);
        return;
      case "nack":
        return this.#sender.receiveNack(frame, now, effects);
      case "resync-required":
        if (this.#joinState.live !== undefined) this.#catchUp.receiveResyncRequired(frame.reason, now, effects);
        return;
      case "tentative":
        return this.#incoming.receiveTentative(frame.edit, now, effects);
      case "saving":
        return this.#incoming.receiveSaving(frame.state, now);
      case "presence-delta":
      case "presence-again":
      case "mode":
      case "board":
      case "own-rank":
        return;
      default:
        assertNever(frame);
    }
  }

  /** Requests missing edits when their time has come. */
  #repair(now: Millis, effects: RoomSessionEffect[]): void {
    const { live } = this.#joinState;
    if (live !== undefined) this.#rejoinIf(this.#catchUp.repair(live.joined.channel, now, effects), now, effects);
  }

  #receiveJoined(joined: RoomFrame & { type: "joined" }, now: Millis, effects: RoomSessionEffect[]): void {
    if (!this.#joinState.receiveJoined(joined)) return;
    this.#incoming.joined(joined.client, now);
    this.#sender.joined(joined, now, effects);
    this.#rejoinIf(this.#catchUp.joined(joined.head, effects), now, effects);
  }

  #receiveJoinRefused(refused: RoomFrame & { type: "join-refused" }, now: Millis, effects: RoomSessionEffect[]): void {
    if (!this.#joinState.isJoining) return;
    const { reason, retryAfterMs, message } = refused;
    if (retryAfterMs > 0) {
      const { retryInMs, isNewReason } = this.#joinState.wait(refused, now);
      if (isNewReason) effects.push({ kind: "problem", problem: roomUnavailable(reason, message, retryInMs) });
      return this.#catchUp.lost();
    }
    if (reason === "deleted") return this.#receiveDeleted(effects);
    this.#end("refused");
    effects.push({ kind: "refused", refusal: { kind: "room-refused", reason, message } });
  }

  #receiveLeft(reason: LeftReason, now: Millis, effects: RoomSessionEffect[]): void {
    const { connection } = this.#joinState;
    if (connection === undefined) return;
    switch (reason) {
      case "asked":
        return;
      case "rights-revoked":
        this.#end("refused");
        effects.push({ kind: "refused", refusal: rightsRevoked() });
        return;
      case "deleted":
        return this.#receiveDeleted(effects);
      case "rights-changed":
        this.#end("offline");
        return this.#join(connection, undefined, now, effects);
      default:
        assertNever(reason);
    }
  }

  /** Nothing on this device may bring the room back. */
  #receiveDeleted(effects: RoomSessionEffect[]): void {
    this.#end("refused");
    this.#persistence?.forget(effects);
    effects.push({ kind: "refused", refusal: roomDeleted() });
  }

  #receiveSequenced(frame: RoomFrame & { type: "committed" | "ack" }, now: Millis, effects: RoomSessionEffect[]): void {
    if (this.#joinState.joined === undefined) return;
    const next = this.#catchUp.checkStored(frame, this.#incoming.client, effects);
    if (next === "rejoin") return this.#rejoinIf(next, now, effects);
    if (frame.type === "committed") this.#incoming.receiveCommitted(frame, !this.synced, now, effects);
    else this.#incoming.receiveAck(frame, !this.synced, now, effects);
    const { live } = this.#joinState;
    if (live !== undefined) this.#catchUp.deliveredSoFar(live.joined);
    this.#repair(now, effects);
  }

  #rejoinIf(next: CatchUpStep, now: Millis, effects: RoomSessionEffect[]): void {
    const { live } = this.#joinState;
    if (next === "rejoin" && live !== undefined) this.#join(live.connection, live.joined, now, effects);
  }
}
