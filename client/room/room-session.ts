/**
 * One room over one connection: joins it, comes back to it, sends what the outbox holds, delivers what the feed
 * lets through. Takes what happened, answers with what should happen next. Deterministic. Rules ROO1 to ROO28.
 * It brings together its parts, of which each knows one thing: `room-dialogue.ts` what the server is asked and answers,
 * `membership.ts` where the client stands, `edit-feed.ts` what comes in, `edit-sender.ts` what goes out, `catching-up.ts`
 * what is lacking, `keeping.ts` what is kept here.
 *
 * Leaving the room or losing the line takes nothing from the outbox and nothing from the position.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, Millis, Position } from "../../shared/ids.ts";
import type { Rights, SavingState } from "../../shared/wire/frames.ts";
import type { Backoff } from "../connection/backoff.ts";
import { earlier } from "../connection/alarm.ts";
import { CatchingUp } from "./catching-up.ts";
import type { KeptRoom } from "../keeping/edit-store.ts";
import { EditFeed, type FeedOptions } from "./edit-feed.ts";
import { EditSender } from "./edit-sender.ts";
import { inherit } from "../keeping/inheritance.ts";
import { Keeping, type KeepingOptions } from "../keeping/keeping.ts";
import { Membership, type PutOff, type RoomStatus } from "./membership.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import type { Chance } from "../ports.ts";
import { Resync } from "./resync.ts";
import { type DialogueOptions, RoomDialogue } from "./room-dialogue.ts";
import type { Line, RoomEffect, RoomInput } from "./room-messages.ts";
import { WriterKey } from "../keeping/writer-key.ts";

export type SessionOptions = DialogueOptions & {
  readonly outbox: OutboxOptions;
  readonly feed: FeedOptions;
  readonly keeping: KeepingOptions;
  readonly resyncBackoff: Backoff;
  /** Servers know a silent client's numbering for so long at least. */
  readonly dedupeMs: number;
};

export class RoomSession {
  readonly #outbox: Outbox;
  readonly #feed: EditFeed;
  readonly #sender: EditSender;
  readonly #catchingUp: CatchingUp;
  readonly #keeping: Keeping;
  readonly #membership = new Membership();
  readonly #writer: WriterKey;
  readonly #dialogue: RoomDialogue;
  /** An edit was made here while others' were shown that are tentative still. */
  #buildsOnTentative = false;

  constructor(options: SessionOptions, chance: Chance) {
    const unit = (): number => chance.unit();
    this.#outbox = new Outbox(options.outbox);
    this.#feed = new EditFeed(options.feed, this.#outbox, unit);
    this.#sender = new EditSender(this.#outbox);
    this.#catchingUp = new CatchingUp(this.#feed, new Resync(options.resyncBackoff, unit));
    this.#keeping = new Keeping(options.keeping, this.#outbox);
    this.#writer = new WriterKey(this.#outbox, () => chance.clientKey(), options.dedupeMs);
    const parts = {
      outbox: this.#outbox,
      feed: this.#feed,
      sender: this.#sender,
      catchingUp: this.#catchingUp,
      keeping: this.#keeping,
      membership: this.#membership,
      writer: this.#writer,
    };
    this.#dialogue = new RoomDialogue(options, parts, chance);
  }

  get status(): RoomStatus {
    return this.#membership.status;
  }

  /** Turned away for now. */
  get putOff(): PutOff | undefined {
    return this.#membership.putOff;
  }

  get position(): Position {
    return this.#feed.position;
  }

  /** Everything up to the head told in JOINED has been delivered. */
  get synced(): boolean {
    return this.#catchingUp.synced;
  }

  get saving(): SavingState {
    return this.#feed.saving;
  }

  get unsavedEdits(): number {
    return this.#outbox.unsavedEdits;
  }

  /** What was made here may build upon what others showed and the log may never have: nobody could read it then. */
  get buildsOnTentative(): boolean {
    return this.#buildsOnTentative;
  }

  /** The payloads of all of them. */
  get waiting(): readonly Uint8Array[] {
    const { sent, unsent } = this.#outbox.pending(this.#writer.key);
    return [...sent.map(([{ payload }]) => payload), ...unsent.map(({ payload }) => payload)];
  }

  /** What waits here would outlast this page. */
  get stored(): boolean {
    return this.#outbox.isEmpty || this.#keeping.isKept;
  }

  /** What is kept on this device: whether that is known yet, and whether anything is still to be written. */
  get keeping(): Pick<Keeping, "isOpening" | "isDone"> {
    return this.#keeping;
  }

  get client(): ClientId | undefined {
    return this.#feed.client;
  }

  get rights(): Rights {
    return this.#sender.rights;
  }

  /** The largest payload that the server takes, once it has said so. */
  get editBytesMax(): number | undefined {
    const { line } = this.#membership;
    return line === undefined ? undefined : this.#sender.bytesMaxOf(line);
  }

  /** When a tick is next needed. */
  dueAt(now: Millis): Millis | undefined {
    const keepAt = this.#keeping.dueAt(now);
    const { live } = this.#membership;
    if (live === undefined) return earlier(keepAt, this.#membership.askAgainAt);
    const sendAt = this.#sender.dueAt(live.line, { synced: this.synced, saving: this.#feed.saving }, now);
    return earlier(keepAt, earlier(this.#catchingUp.dueAt, earlier(this.#feed.resubmitAt, sendAt)));
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    this.#take(input, now, effects);
    this.#buildsOnTentative = (this.#buildsOnTentative || input.kind === "edit") && this.#feed.showsTentative;
    if (input.kind === "edit") return effects; // Kept and sent with the tick that follows: what is made at once together.
    if (input.kind !== "restored") this.#keeping.observe(effects, this.position);
    this.#keeping.follow({ clientKey: this.#writer.key, isEnd: input.kind === "leave", isSynced: this.synced }, now, effects);
    return effects;
  }

  #take(input: RoomInput, now: Millis, effects: RoomEffect[]): void {
    switch (input.kind) {
      case "enter":
        return this.#membership.enter();
      case "leave":
        this.#flush(now, effects); // What was made right before it.
        return this.#dialogue.leave(now, effects);
      case "line-open":
        if (this.#membership.needsLine && !this.#keeping.isOpening) this.#joinAgain(input, now, effects);
        return;
      case "line-lost":
        if (this.#membership.joined !== undefined) this.#writer.heard(input.heardAt);
        if (this.#membership.line !== undefined) this.#dialogue.end("offline");
        return;
      case "edit":
        return this.#sender.receiveEdit(input.payload, effects);
      case "restored":
        return this.#receiveRestored(input.kept, effects);
      case "keep-failed":
        this.#keeping.failed(input.write, input.cause, now, effects);
        break;
      case "kept":
        this.#keeping.kept(input.write, this.#writer.key);
        break;
      case "store-lost":
        this.#keeping.lost();
        break;
      case "frame":
        this.#dialogue.receiveFrame(input.frame, now, effects);
        break;
      case "snapshot":
        this.#dialogue.receiveSnapshot(input.answer, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    this.#send(now, effects);
  }

  #receiveRestored({ document, edits }: KeptRoom, effects: RoomEffect[]): void {
    if (!this.#keeping.isOpening) {
      effects.push({ kind: "close-store" }); // It took too long, and the room goes on without.
      return;
    }
    const inheritance = inherit(edits);
    this.#outbox.inherit(inheritance);
    this.#feed.inherit(inheritance);
    this.#keeping.opened(inheritance.places);
    if (document !== undefined) this.#catchingUp.restored(document, effects);
    effects.push({ kind: "restored", edits: edits.map(({ payload, made }) => ({ payload, made })) });
  }

  /** A new line: all that is known of the old one is the position and what is not acknowledged. */
  #joinAgain(line: Line, now: Millis, effects: RoomEffect[]): void {
    this.#writer.renewIfSilent(now);
    this.#dialogue.join(line, undefined, now, effects);
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    const { line, joined, askAgainAt } = this.#membership;
    if (line !== undefined && askAgainAt !== undefined && now >= askAgainAt) this.#dialogue.join(line, joined, now, effects);
    if (this.#membership.live === undefined) return;
    this.#catchingUp.fetchSnapshot(now, effects);
    this.#dialogue.repair(now, effects);
    this.#sender.receiveTick(this.#feed.saving, now);
    const { channel } = this.#membership.live?.joined ?? {};
    if (channel === undefined) return; // The repair has asked for the room anew.
    const { resubmit, givenUp } = this.#feed.takeResubmits(now);
    if (this.#sender.rights.write) for (const edit of resubmit) effects.push({ kind: "send", frame: { type: "resubmit", channel, edit } });
    if (givenUp.length > 0) effects.push({ kind: "unconfirmed", edits: givenUp });
  }

  #send(now: Millis, effects: RoomEffect[]): void {
    this.#flush(now, effects);
    const { live } = this.#membership;
    if (live !== undefined && this.#writer.renewIfNeeded()) this.#dialogue.join(live.line, live.joined, now, effects);
  }

  /** Sends what may go out now. */
  #flush(now: Millis, effects: RoomEffect[]): void {
    const { live } = this.#membership;
    if (live === undefined) return;
    const { position, saving } = this.#feed;
    this.#sender.flush(live.line, { channel: live.joined.channel, parentSeq: position.seq, synced: this.synced, saving }, now, effects);
  }
}
