/**
 * Which changes of a document its room has still to be sent, and when.
 *
 * Until the room is known whole, changes are not sent one by one: what the document has and the room lacks is worked
 * out then, so that content loaded from elsewhere is not sent anew in each session.
 */

import type * as Y from "yjs";

import { type Clocks, clocksBefore, contentSince, isUpdate, lackingIn, saysNothing, splitEdit, yjsEdits } from "./yjs-edits.ts";

/** Where they go. `waiting`: what it was given and will have. */
export type ChangesRoom = {
  send(payload: Uint8Array): void;
  readonly editBytesMax: number | undefined;
  readonly waiting: readonly Uint8Array[];
};

type Mode =
  /** Not known yet what the room holds. `received`: what has come of it; `made`: changes meanwhile. */
  | { readonly kind: "meeting"; readonly received: Uint8Array[]; readonly hadContent: boolean; made: number }
  /** Each change is sent as it is made. */
  | { readonly kind: "following" }
  /** A change could not be sent, and those behind it would be unreadable without it: all from `since` on waits. */
  | { readonly kind: "withholding"; readonly since: Clocks; made: number };

export class YjsChanges {
  readonly #doc: Y.Doc;
  readonly #room: ChangesRoom;
  #mode: Mode;
  /** The document has it and the room has not, and what is made here may build upon it. As large as the document at most. */
  #unconfirmed: Uint8Array | undefined;

  constructor(doc: Y.Doc, room: ChangesRoom) {
    this.#doc = doc;
    this.#room = room;
    this.#mode = { kind: "meeting", received: [], hadContent: doc.store.clients.size > 0, made: 0 };
  }

  /** Changes made that the room was not given yet. */
  get unsent(): number {
    return this.#mode.kind === "following" ? 0 : this.#mode.made;
  }

  get isMeeting(): boolean {
    return this.#mode.kind === "meeting";
  }

  /** Whether the room may lack something that nobody has counted. */
  get mayLack(): boolean {
    return this.#mode.kind === "meeting" && this.#mode.hadContent;
  }

  receiveChange(update: Uint8Array): void {
    this.sendUnconfirmed();
    switch (this.#mode.kind) {
      case "meeting":
        this.#mode.made += 1;
        return;
      case "following":
        return this.#room.send(update);
      case "withholding":
        this.#mode.made += 1;
        return this.tryAgain();
    }
  }

  /** In the document now, and in the room. */
  receiveContent(payloads: readonly Uint8Array[]): void {
    if (this.#mode.kind !== "meeting") return;
    for (const payload of payloads) this.#mode.received.push(payload);
  }

  /**
   * What was kept on this device has been received, edits that wait among it. From here on each change is sent, for
   * only so can it be kept. Not where the document had content and nothing is known of the room: it may have it.
   */
  receiveRestored(isRoomKnown: boolean): void {
    if (this.#mode.kind === "meeting" && (isRoomKnown || !this.#mode.hadContent)) this.#follow(this.#mode);
  }

  /** The room is known whole. */
  receiveSynced(): void {
    if (this.#mode.kind === "meeting") this.#follow(this.#mode);
  }

  /** The log has lost what this document still has. */
  meetAgain(): void {
    this.#mode = { kind: "meeting", received: [], hadContent: true, made: this.unsent };
  }

  /** What the room has lost of others, and this client may not give it yet. */
  keepUnconfirmed(payloads: readonly Uint8Array[]): void {
    const kept = this.#unconfirmed === undefined ? payloads : [this.#unconfirmed, ...payloads];
    if (kept.length > 0) this.#unconfirmed = yjsEdits.merge(kept);
  }

  /** Once it may write, or has made something itself: nobody could read that without. */
  sendUnconfirmed(): void {
    const unconfirmed = this.#unconfirmed;
    this.#unconfirmed = undefined;
    if (unconfirmed !== undefined) this.#room.send(unconfirmed);
  }

  withhold(payload: Uint8Array): void {
    if (this.#mode.kind === "meeting") return; // Whatever is lacking then will be sent.
    const since = clocksBefore([payload]);
    const made = 1;
    if (this.#mode.kind === "following") this.#mode = { kind: "withholding", since, made };
    else this.#mode = { kind: "withholding", since: earliest(this.#mode.since, since), made: this.#mode.made + made };
  }

  /** What was too large may be gone by now (undone, for one), or the outbox have room. */
  tryAgain(): void {
    const bytesMax = this.#room.editBytesMax;
    if (this.#mode.kind !== "withholding" || bytesMax === undefined) return;
    const withheld = contentSince(this.#mode.since, this.#doc);
    if (withheld.byteLength > bytesMax && splitEdit(withheld, bytesMax) === undefined) return;
    this.#mode = { kind: "following" };
    if (!saysNothing(withheld)) this.#room.send(withheld);
  }

  #follow({ received, hadContent, made }: Mode & { kind: "meeting" }): void {
    this.#mode = { kind: "following" };
    const lacking = hadContent || made > 0 ? lackingIn([...received, ...this.#room.waiting.filter(isUpdate)], this.#doc) : undefined;
    if (lacking !== undefined) this.#room.send(lacking);
  }
}

function earliest(a: Clocks, b: Clocks): Clocks {
  const clocks = new Map(a);
  for (const [client, clock] of b) clocks.set(client, Math.min(clock, clocks.get(client) ?? clock));
  return clocks;
}
