/**
 * Keeps a Yjs document and a room the same: what comes from the room goes into the document, what the room lacks of it
 * (`yjs-changes.ts`) into the room. `main.ts` makes it `CoroomProvider`. Rules YJS1 to YJS17.
 */

import type * as Y from "yjs";

import type { ClientId, Seq } from "../../shared/ids.ts";
import type { Rights, SavingState } from "../../shared/wire/frames.ts";
import { refuseReserved, RoomAwareness } from "../presence/awareness.ts";
import { assertDoc, assertOptions } from "../options.ts";
import { Events } from "../events.ts";
import type { RoomEdit } from "../room/inbox.ts";
import type { Leaderboard } from "../boards/leaderboard.ts";
import type { Participant, PresenceChange } from "../presence/participants.ts";
import type { World } from "../ports.ts";
import type { Presence } from "../presence/presence-fields.ts";
import type { Problem, Refusal } from "../room/problems.ts";
import type { Outage } from "../connection/connection-messages.ts";
import type { RoomOptions, Status, StatusChange } from "../room/room-events.ts";
import { RoomHost } from "../room/room-host.ts";
import type { ModeFacts } from "../presence/room-presence.ts";
import type { RestoredEdit } from "../room/room-messages.ts";
import { YjsChanges } from "./yjs-changes.ts";
import { type Content, YjsContent } from "./yjs-content.ts";
import { isUpdate, yjsEdits } from "./yjs-edits.ts";

/** `doc`: with a store, give it empty: its content is loaded from there. */
export type ProviderOptions = RoomOptions & { readonly doc: Y.Doc };

export type ProviderEvents = {
  /** `why` and `retryInMs`: while it waits for the server. */
  status: [StatusChange];
  /** Whether the document holds everything up to the head that the server told. */
  synced: [boolean];
  /** The same, under the name that bindings made for y-websocket listen to: Lexical's begins an empty document with it. */
  sync: [boolean];
  /** Whether every change made here is acknowledged. */
  saved: [boolean];
  /** Whether every change made here is acknowledged or kept on this device: then closing the page loses nothing. */
  stored: [boolean];
  /** What was kept on this device is in the document again. */
  restored: [];
  /** How the room's log keeps up. */
  saving: [SavingState];
  /** The newest seq in the document. */
  seq: [Seq];
  /** Somebody came, went, or is another now: their name, role or rights. */
  participants: [ReadonlyMap<ClientId, Participant>];
  /** Whose presence changed, this client's own too. The awareness tells it in its own way. */
  presence: [PresenceChange];
  /** How the room's presence travels, and how often this client may say something. */
  mode: [ModeFacts];
  /** Nothing is tried any more, until `connect()` is called. */
  refused: [Refusal];
  /** What the application should know while it goes on. */
  error: [Problem];
};

export class YjsProvider {
  readonly doc: Y.Doc;
  /** For editor bindings: what each shows of itself, carets above all. */
  readonly awareness: RoomAwareness;
  /** What this client shows of itself beside the awareness. A field that is null is taken back. */
  readonly presence = {
    set: (presence: Presence): void => {
      refuseReserved(presence);
      this.#room.presence.set(presence);
    },
  };
  readonly #room: RoomHost;
  readonly #events: Events<ProviderEvents>;
  readonly #changes: YjsChanges;
  readonly #content: YjsContent;
  #synced = false;
  #saved: boolean;
  #stored: boolean;

  constructor(given: ProviderOptions, world: World) {
    assertOptions(given, "url, token, room and doc");
    assertDoc(given.doc);
    const { doc, ...options } = given;
    this.doc = doc;
    this.#events = new Events(world.reportError);
    this.#room = new RoomHost({ ...options, format: yjsEdits, connect: false }, world); // Refuses wrong options: nothing listens to the document yet.
    this.#content = new YjsContent(doc, this, world.reportError);
    this.#changes = new YjsChanges(doc, this.#room);
    this.#saved = this.saved;
    this.#stored = this.stored;
    this.awareness = new RoomAwareness(doc, this.#room, world);

    doc.on("update", this.#receiveChange);
    doc.on("destroy", this.#receiveDocDestroyed);
    this.#room.on("edits", (edits) => this.#receiveEdits(edits));
    this.#room.on("tentative", (edits) => this.#apply(edits));
    this.#room.on("unconfirmed", (edits) => this.#receiveUnconfirmed(edits));
    this.#room.on("snapshot", ({ position: { seq }, payload }) => this.#receiveContent([{ seq, payload }]));
    this.#room.on("restored", (edits) => this.#receiveRestored(edits));
    this.#room.on("rolled-back", () => this.#receiveRolledBack());
    this.#room.on("synced", (synced) => this.#receiveSynced(synced));
    this.#room.on("saved", () => this.#receiveSaved());
    this.#room.on("stored", () => this.#tellSaved());
    this.#room.on("error", (problem) => this.#receiveProblem(problem));
    this.#room.on("status", (change) => this.#events.emit("status", change));
    this.#room.on("saving", (state) => this.#events.emit("saving", state));
    this.#room.on("seq", (seq) => this.#events.emit("seq", seq));
    this.#room.on("participants", (participants) => this.#events.emit("participants", participants));
    this.#room.on("presence", (change) => this.#receivePresence(change));
    this.#room.on("mode", (mode) => this.#events.emit("mode", mode));
    this.#room.on("refused", (refusal) => this.#events.emit("refused", refusal));
    if (options.connect ?? true) this.#connectOrEnd();
  }

  get room(): string {
    return this.#room.room;
  }

  get status(): Status {
    return this.#room.status;
  }

  /** Why there is no connection, and when it is tried again; undefined: it does not wait for one. */
  get outage(): Outage | undefined {
    return this.#room.outage;
  }

  /** The document holds everything up to the head that the server told on joining. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Every change made here is acknowledged, and all that it may build upon: the server's log has it. */
  get saved(): boolean {
    return this.#room.saved && this.#changes.unsent === 0 && !this.#changes.mayLack;
  }

  /** Every change made here is acknowledged or kept on this device, and builds upon nothing that may be lost. */
  get stored(): boolean {
    return this.saved || (this.#room.stored && this.#changes.unsent === 0 && !this.#changes.mayLack);
  }

  /** How the room's log keeps up. */
  get saving(): SavingState {
    return this.#room.saving;
  }

  /** How many changes made here are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#room.unsavedEdits + this.#changes.unsent;
  }

  /** The newest edit in the document, in the room's order; 0: none yet. */
  get seq(): Seq {
    return this.#room.seq;
  }

  /** As others see this client. Undefined before the first join. */
  get client(): ClientId | undefined {
    return this.#room.client;
  }

  /** As the token has them; none before the first join. */
  get rights(): Rights {
    return this.#room.rights;
  }

  /** Who is in the room, this client among them; a view that goes along. */
  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#room.participants;
  }

  /** Who is most active in the room: `leaderboard.subscribe({ window: "day" })`. */
  get leaderboard(): Leaderboard {
    return this.#room.leaderboard;
  }

  /** How the room's presence travels; undefined until the server has told it. */
  get mode(): ModeFacts | undefined {
    return this.#room.mode;
  }

  on<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  once<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  off<Name extends keyof ProviderEvents>(name: Name, listener: (...args: ProviderEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Joins the room and stays in it; after a refusal, or while waiting to try again, tries at once. */
  connect(): void {
    this.#room.connect();
  }

  /** Changes made from here on are kept, and sent after the next `connect()`. */
  disconnect(): void {
    this.#room.disconnect();
  }

  /** Leaves for good, lets go of the document, and tells nobody anything any more. To lose nothing, wait for `saved` first. */
  destroy(): void {
    this.#content.end();
    this.doc.off("update", this.#receiveChange);
    this.doc.off("destroy", this.#receiveDocDestroyed);
    this.awareness.destroy();
    this.#room.destroy();
    this.#events.clear();
  }

  /** Who may only read leaves it to the others to clean up formatting: to be sent it would be an edit. */
  readonly #receiveChange = (update: Uint8Array, origin: unknown, _: Y.Doc, transaction: Y.Transaction): void => {
    if (origin === this || (this.#content.isCleanup(transaction) && !this.rights.write)) return;
    this.#changes.receiveChange(update);
    this.#tellSaved();
  };

  /** Where another has the room on a shared connection already, nothing of this one stays behind. */
  #connectOrEnd(): void {
    try {
      this.connect();
    } catch (mistake) {
      this.destroy();
      throw mistake;
    }
  }

  readonly #receiveDocDestroyed = (): void => this.destroy();

  #receivePresence(change: PresenceChange): void {
    this.awareness.receive(change, this);
    this.#events.emit("presence", change);
  }

  #receiveEdits(edits: readonly RoomEdit[]): void {
    const unknown = this.#changes.isMeeting ? edits : edits.filter(({ own }) => !own);
    if (unknown.length > 0) this.#receiveContent(unknown);
  }

  #receiveContent(edits: readonly Content[]): void {
    this.#changes.receiveContent(this.#apply(edits));
  }

  #receiveRestored(edits: readonly RestoredEdit[]): void {
    this.#receiveContent(edits);
    this.#changes.receiveRestored(this.#room.seq > 0);
    this.#events.emit("restored");
    this.#tellSaved();
  }

  /** Those that could be read. */
  #apply(edits: readonly Content[]): Uint8Array[] {
    return this.#content.apply(edits, (cause, seq = this.seq) => {
      const message = "an edit of the room is no Yjs update and was left out";
      this.#events.emit("error", { kind: "edit-unreadable", seq, message, cause });
    });
  }

  /**
   * The document has them and the room has not: they become edits of who may write, at once or when it may. What waits
   * here may build upon them, and they wait with it. Applied twice they are applied once.
   */
  #receiveUnconfirmed(edits: readonly { readonly payload: Uint8Array }[]): void {
    const payloads = edits.map(({ payload }) => payload).filter(isUpdate);
    if (this.rights.write || this.unsavedEdits > 0) for (const payload of payloads) this.#room.send(payload);
    else this.#changes.keepUnconfirmed(payloads);
    this.#tellSaved();
  }

  #receiveRolledBack(): void {
    this.#changes.meetAgain();
    this.#tellSaved();
  }

  #receiveSynced(synced: boolean): void {
    if (synced) this.#changes.receiveSynced();
    if (synced && this.rights.write) this.#changes.sendUnconfirmed();
    this.#synced = synced;
    this.#events.emit("synced", synced);
    this.#events.emit("sync", synced);
    this.#tellSaved();
  }

  #receiveSaved(): void {
    this.#changes.tryAgain();
    this.#tellSaved();
  }

  #receiveProblem(problem: Problem): void {
    if (problem.kind === "edit-too-large" || problem.kind === "outbox-full") this.#changes.withhold(problem.payload);
    this.#events.emit("error", problem);
    this.#tellSaved();
  }

  #tellSaved(): void {
    const { saved, stored } = this;
    const [savedBefore, storedBefore] = [this.#saved, this.#stored];
    [this.#saved, this.#stored] = [saved, stored];
    if (stored !== storedBefore) this.#events.emit("stored", stored);
    if (saved !== savedBefore) this.#events.emit("saved", saved);
  }
}
