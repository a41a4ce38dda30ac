/**
 * Keeps a Yjs document and a room equal: applies the room's edits to the document and sends the document's changes to
 * the room (`yjs-document.ts`). `main.ts` makes it `CoroomProvider`. Rules YJS1 to YJS38.
 */

import type * as Y from "yjs";

import type { ClientId, Seq } from "../../shared/ids.ts";
import type { Rights, SavingState } from "../../shared/wire/frames.ts";
import { type AwarenessState, RESERVED_FIELDS, RoomAwareness } from "../presence/awareness.ts";
import { assertOptions } from "../options.ts";
import { Events } from "../events.ts";
import type { Participant, PresenceChange } from "../presence/participants.ts";
import type { ClientWorld } from "../ports.ts";
import { type PresenceOf, refuseReserved } from "../presence/presence-fields.ts";
import { documentStuck, isAuthenticationFailure, type Problem, type Refusal } from "../room/problems.ts";
import type { Outage, SocketClose } from "../connection/connection-messages.ts";
import type { Status } from "../room/room-events.ts";
import { type MakePart, RoomConnection } from "../room/room-connection-host.ts";
import type { ModeFacts } from "../presence/room-presence.ts";
import type { RestoredEdit, RoomEdit, RoomPart } from "../room/room-messages.ts";
import type { ProviderEvents, ProviderOptions } from "./provider-events.ts";
import { assertDoc, YjsChanges, type RoomContent, YjsContent } from "./yjs-document.ts";
import { isUpdate, NO_CONTENT, yjsEdits } from "./yjs-edits.ts";

const ABNORMAL_CLOSURE = 1006; // The socket broke or could not be opened.

/** `State`: fields of the awareness. */
export class YjsProvider<State extends object = AwarenessState> {
  /** The document that was given. */
  readonly doc: Y.Doc;
  /** Awareness for editor bindings: carets, names and colours. */
  readonly awareness: RoomAwareness<State>;
  /**
   * This client's presence in addition to the awareness. `set` changes the named fields; null removes a field. Throws for
   * a reserved or invalid name. Presence that is too large is not taken: see the problem `presence-too-large`.
   */
  readonly presence = {
    set: <Fields extends object>(presence: PresenceOf<Fields>): void => {
      refuseReserved(presence, RESERVED_FIELDS);
      this.#room.presence.set(presence);
    },
  };
  readonly #room: RoomConnection;
  readonly #events: Events<ProviderEvents>;
  readonly #changes: YjsChanges;
  readonly #content: YjsContent;
  #synced = false;
  #saved: boolean;
  #stored: boolean;
  #unsyncedChanges: number;

  constructor(given: ProviderOptions, world: ClientWorld) {
    assertOptions(given, "url, token, room and doc");
    assertDoc(given.doc);
    const { doc, ...options } = given;
    this.doc = doc;
    this.#events = new Events(world.reportError);
    this.#room = new RoomConnection({ ...options, format: yjsEdits, connect: false }, world); // Throws on wrong options, before anything listens to the document.
    this.#content = new YjsContent(doc, this, world, (cause) => this.#receiveStuck(cause));
    this.#changes = new YjsChanges(doc, this.#room, (why) =>
      this.#content.receiveStuck(new Error(`no other document of the room accepts a change made here: ${why}`)),
    );
    this.#saved = this.saved;
    this.#stored = this.stored;
    this.#unsyncedChanges = this.unsyncedChanges;
    this.awareness = new RoomAwareness<State>(doc, this.#room, world);

    doc.on("update", this.#receiveChange);
    doc.on("destroy", this.#receiveDocDestroyed);
    this.#room.on("edits", (edits) => this.#receiveEdits(edits));
    this.#room.on("tentative", (edits) => this.#apply(edits));
    this.#room.on("unconfirmed", (edits) => this.#receiveUnconfirmed(edits));
    this.#room.on("snapshot", ({ position: { seq }, payload }) => this.#receiveContent([{ seq, payload, isState: true }]));
    this.#room.on("restored", (edits) => this.#receiveRestored(edits));
    this.#room.on("rolled-back", () => this.#receiveRolledBack());
    this.#room.on("synced", (synced) => this.#receiveSynced(synced));
    this.#room.on("saved", () => this.#receiveSaved());
    this.#room.on("stored", () => this.#emitSaved());
    this.#room.on("error", (problem) => this.#receiveProblem(problem));
    this.#room.on("status", (change) => this.#events.emit("status", change));
    this.#room.on("saving", (state) => this.#events.emit("saving", state));
    this.#room.on("seq", (seq) => this.#receiveSeq(seq));
    this.#room.on("participants", (participants) => this.#events.emit("participants", participants));
    this.#room.on("presence", (change) => this.#receivePresence(change));
    this.#room.on("mode", (mode) => this.#events.emit("mode", mode));
    this.#room.on("refused", (refusal) => this.#receiveRefused(refusal));
    this.#room.on("connection-close", (close) => this.#receiveClose(close));
    if (options.connect ?? true) this.connect();
  }

  /** Id of the room. */
  get room(): string {
    return this.#room.room;
  }

  /** State of the connection to the room. */
  get status(): Status {
    return this.#room.status;
  }

  /** Why there is no connection, and when the next attempt follows. Undefined unless the client waits for an attempt. */
  get outage(): Outage | undefined {
    return this.#room.outage;
  }

  /** True: the document holds everything up to the head at the time of joining. */
  get synced(): boolean {
    return this.#synced;
  }

  /** True: every change made here, and everything it may build on, is in the server's log. */
  get saved(): boolean {
    return this.#room.saved && this.#hasSentAll;
  }

  /** True: every change made here is acknowledged or stored on this device, and builds on nothing that may be lost. */
  get stored(): boolean {
    return this.saved || (this.#room.stored && this.#hasSentAll);
  }

  /** Same as `synced`, under the name of Hocuspocus. */
  get isSynced(): boolean {
    return this.#synced;
  }

  /** Same as `unsavedEdits`, but at least 1 until `saved`. Under the name of Hocuspocus. */
  get unsyncedChanges(): number {
    return this.saved ? 0 : Math.max(1, this.unsavedEdits);
  }

  /** The opposite of `saved`, under the name of Hocuspocus. */
  get hasUnsyncedChanges(): boolean {
    return !this.saved;
  }

  /** State of the room's log: `saved`, `saving` (slow) or `refusing` (accepts no edits). */
  get saving(): SavingState {
    return this.#room.saving;
  }

  /** Number of changes made here that are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#room.unsavedEdits + this.#changes.unsent;
  }

  /** Seq of the newest edit in the document; 0: none yet. */
  get seq(): Seq {
    return this.#room.seq;
  }

  /** This client's id, as others see it. Undefined before the first join. */
  get client(): ClientId | undefined {
    return this.#room.client;
  }

  /** This client's rights in the room. None before the first join. */
  get rights(): Rights {
    return this.#room.rights;
  }

  /** A live map of the participants in the room, including this client. */
  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#room.participants;
  }

  /** The mode in which the room's presence is sent. Undefined before the first MODE frame of the server. */
  get mode(): ModeFacts | undefined {
    return this.#room.mode;
  }

  /** @internal For the public class, which rejects late calls. */
  get isDestroyed(): boolean {
    return this.#room.isDestroyed;
  }

  /** @internal For other entry points: the part of the room that `make` returns. */
  part<Part extends RoomPart>(make: MakePart<Part>): Part {
    return this.#room.part(make);
  }

  /** Calls the listener at each event of this name. {@link ProviderEvents} lists names and arguments. */
  on<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  /** Calls the listener at the next event of this name, once. */
  once<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /**
   * Joins the room and stays in it. After a refusal, or while it waits to reach the server, tries at once. If another
   * member has the room on a shared connection, this provider uses an additional connection.
   */
  connect(): void {
    this.#room.connect();
  }

  /** Leaves the room. Later changes are kept and sent after the next `connect()`. */
  disconnect(): void {
    this.#room.disconnect();
  }

  /** Leaves permanently and detaches from the document. No event is emitted any more. Wait for `saved` first to lose nothing. */
  destroy(): void {
    this.#content.end();
    this.doc.off("update", this.#receiveChange);
    this.doc.off("destroy", this.#receiveDocDestroyed);
    this.awareness.destroy();
    this.#room.destroy();
    this.#events.clear();
  }

  get #hasSentAll(): boolean {
    return !this.#content.isStuck && this.#changes.unsent === 0 && !this.#changes.mayLack;
  }

  /** A client that may only read does not clean up formatting: the cleanup would be an edit. */
  readonly #receiveChange = (update: Uint8Array, origin: unknown, _: Y.Doc, transaction: Y.Transaction): void => {
    if (this.#content.isStuck || origin === this || (this.#content.isCleanup(transaction) && !this.rights.write)) return;
    this.#changes.receiveChange(update);
    this.#emitSaved();
  };

  #receiveStuck(cause: unknown): void {
    this.#events.emit("error", documentStuck(cause));
    if (this.#synced) this.#receiveSynced(false);
    else this.#emitSaved();
  }

  readonly #receiveDocDestroyed = (): void => this.destroy();

  #receivePresence(change: PresenceChange): void {
    this.awareness.receivePresence(change, this);
    this.#events.emit("presence", change);
  }

  #receiveEdits(edits: readonly RoomEdit[]): void {
    const unknown = this.#changes.isMeeting ? edits : edits.filter(({ own }) => !own);
    if (unknown.length > 0) this.#receiveContent(unknown);
  }

  #receiveContent(edits: readonly RoomContent[]): void {
    this.#changes.receiveContent(this.#apply(edits));
  }

  #receiveRestored(edits: readonly RestoredEdit[]): void {
    this.#receiveContent(edits.map(({ payload }) => ({ payload, isState: true })));
    this.#changes.receiveRestored(this.#room.seq > 0);
    this.#events.emit("restored");
    this.#emitSaved();
  }

  /** Returns the payloads that could be applied. */
  #apply(edits: readonly RoomContent[]): readonly Uint8Array[] {
    const { read, lacking } = this.#content.apply(edits, (cause, { payload, seq = this.seq }) => {
      this.#room.store?.replace(payload, NO_CONTENT); // A page that loads it would apply it with all stored content, unchecked.
      const message = "an edit of the room is no Yjs update, or exceeds a limit, and was left out";
      this.#events.emit("error", { kind: "edit-unreadable", seq, message, cause });
    });
    if (lacking !== undefined && !this.#content.isStuck) this.#changes.receiveLacking(lacking);
    if (lacking !== undefined) this.#emitSaved();
    return read;
  }

  /**
   * The document has these edits and the room lacks them. A client that may write sends them at once, others later.
   * Local changes may build on them and wait with them. Applying them twice has no further effect.
   */
  #receiveUnconfirmed(edits: readonly { readonly payload: Uint8Array }[]): void {
    const payloads = edits.map(({ payload }) => payload).filter(isUpdate);
    if (this.rights.write || this.unsavedEdits > 0) for (const payload of payloads) this.#room.send(payload);
    else this.#changes.keepUnconfirmed(payloads);
    this.#emitSaved();
  }

  #receiveRolledBack(): void {
    this.#changes.meetAgain();
    this.#emitSaved();
  }

  #receiveSynced(synced: boolean): void {
    if (synced && !this.#content.isStuck) this.#changes.receiveSynced();
    if (synced && !this.#content.isStuck && this.rights.write) this.#changes.sendUnconfirmed();
    if (this.#content.isStuck && !this.#synced) return; // Also by what it would have sent now.
    this.#synced = synced;
    this.#events.emit("synced", synced);
    this.#events.emit("sync", synced);
    this.#emitSaved();
  }

  #receiveSaved(): void {
    this.#changes.tryAgain();
    this.#emitSaved();
  }

  #receiveProblem(problem: Problem): void {
    if (problem.kind === "edit-too-large" || problem.kind === "outbox-full") this.#changes.withhold(problem.payload);
    this.#events.emit("error", problem);
    this.#emitSaved();
  }

  #receiveSeq(seq: Seq): void {
    this.#events.emit("seq", seq);
    this.#emitSaved(); // An acknowledged edit changes the number of unsaved edits.
  }

  #receiveRefused(refusal: Refusal): void {
    if (isAuthenticationFailure(refusal)) this.#events.emit("authenticationFailed", { reason: refusal.message });
    this.#events.emit("refused", refusal);
  }

  #receiveClose(close: SocketClose | null): void {
    if (close?.code === ABNORMAL_CLOSURE) this.#events.emit("connection-error", close, this);
    this.#events.emit("connection-close", close, this);
  }

  /** Each fact is read when its event is due, because a listener of an earlier event may have made a change. */
  #emitSaved(): void {
    const unsynced = this.#unsyncedChanges;
    if ((this.#unsyncedChanges = this.unsyncedChanges) !== unsynced)
      this.#events.emit("unsyncedChanges", { number: this.#unsyncedChanges });
    const stored = this.#stored;
    if ((this.#stored = this.stored) !== stored) this.#events.emit("stored", this.#stored);
    const saved = this.#saved;
    if ((this.#saved = this.saved) !== saved) this.#events.emit("saved", this.#saved);
  }
}
