/**
 * Keeps a Yjs document and a room the same. `main.ts` makes it `CoroomProvider`.
 *
 * Until the room is known whole, changes of the document are not sent one by one: what the document has and the
 * room lacks is worked out then, so that content loaded from elsewhere is not sent anew in each session.
 * Rules YJS1 to YJS10.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { ClientId, Seq } from "../shared/ids.ts";
import type { Rights, SavingState } from "../shared/wire/frames.ts";
import { RoomAwareness } from "./awareness.ts";
import { Events } from "./events.ts";
import type { RoomEdit } from "./inbox.ts";
import type { Leaderboard } from "./leaderboard.ts";
import type { Participant, PresenceChange } from "./participants.ts";
import type { World } from "./ports.ts";
import type { Presence } from "./presence-fields.ts";
import type { Problem, Refusal } from "./problems.ts";
import { RoomHost, type RoomOptions, type Status } from "./room-host.ts";
import type { ModeFacts } from "./room-presence.ts";
import { type Clocks, clocksBefore, contentSince, isUpdate, lackingIn, saysNothing, splitEdit, yjsEdits } from "./yjs-edits.ts";

export type ProviderOptions = RoomOptions & { readonly doc: Y.Doc };

export type ProviderEvents = {
  status: [{ status: Status }];
  /** Whether the document holds everything up to the head that the server told. */
  synced: [boolean];
  /** Whether every change made here is acknowledged. */
  saved: [boolean];
  /** How the room's log keeps up. */
  saving: [SavingState];
  /** The newest seq in the document. */
  seq: [Seq];
  /** Somebody came, went, or is another now: their name, role or rights. */
  participants: [ReadonlyMap<ClientId, Participant>];
  /** Whose presence changed, this client's own too. The awareness tells it in its own way. */
  presence: [PresenceChange];
  mode: [ModeFacts];
  refused: [Refusal];
  error: [Problem];
};

type Mode =
  /** Not known yet what the room holds. `received`: what has come of it; `made`: changes meanwhile. */
  | { readonly kind: "meeting"; readonly received: Uint8Array[]; readonly hadContent: boolean; made: number }
  /** Each change is sent as it is made. */
  | { readonly kind: "following" }
  /** A change could not be sent, and those behind it would be unreadable without it: all from `since` on waits. */
  | { readonly kind: "withholding"; readonly since: Clocks; made: number };

export class YjsProvider {
  readonly doc: Y.Doc;
  /** For editor bindings: what each shows of itself, carets above all. */
  readonly awareness: RoomAwareness;
  readonly #room: RoomHost;
  readonly #events: Events<ProviderEvents>;
  #mode: Mode;
  #synced = false;
  #saved: boolean;

  constructor({ doc, ...options }: ProviderOptions, world: World) {
    this.doc = doc;
    this.#events = new Events(world.reportError);
    this.#mode = { kind: "meeting", received: [], hadContent: doc.store.clients.size > 0, made: 0 };
    this.#room = new RoomHost({ ...options, format: yjsEdits, connect: false }, world);
    this.#saved = this.saved;
    this.awareness = new RoomAwareness(doc, this.#room, world);

    doc.on("update", this.#receiveChange);
    doc.on("destroy", this.#receiveDocDestroyed);
    this.#room.on("edits", (edits) => this.#receiveEdits(edits));
    this.#room.on("tentative", (edits) => this.#apply(edits));
    this.#room.on("unconfirmed", (edits) => this.#receiveUnconfirmed(edits));
    this.#room.on("snapshot", ({ position: { seq }, payload }) => this.#receiveContent([{ seq, payload }]));
    this.#room.on("rolled-back", () => this.#meetAgain());
    this.#room.on("synced", (synced) => this.#receiveSynced(synced));
    this.#room.on("saved", () => this.#receiveSaved());
    this.#room.on("error", (problem) => this.#receiveProblem(problem));
    this.#room.on("status", (change) => this.#events.emit("status", change));
    this.#room.on("saving", (state) => this.#events.emit("saving", state));
    this.#room.on("seq", (seq) => this.#events.emit("seq", seq));
    this.#room.on("participants", (participants) => this.#events.emit("participants", participants));
    this.#room.on("presence", (change) => this.#receivePresence(change));
    this.#room.on("mode", (mode) => this.#events.emit("mode", mode));
    this.#room.on("refused", (refusal) => this.#events.emit("refused", refusal));
    if (options.connect ?? true) this.connect();
  }

  get room(): string {
    return this.#room.room;
  }

  get status(): Status {
    return this.#room.status;
  }

  get synced(): boolean {
    return this.#synced;
  }

  get saved(): boolean {
    return this.unsavedEdits === 0 && !(this.#mode.kind === "meeting" && this.#mode.hadContent);
  }

  get saving(): SavingState {
    return this.#room.saving;
  }

  /** How many changes made here are not acknowledged yet. */
  get unsavedEdits(): number {
    return this.#room.unsavedEdits + (this.#mode.kind === "following" ? 0 : this.#mode.made);
  }

  get seq(): Seq {
    return this.#room.seq;
  }

  get client(): ClientId | undefined {
    return this.#room.client;
  }

  get rights(): Rights {
    return this.#room.rights;
  }

  /** Who is in the room, this client among them; a view that goes along. */
  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#room.participants;
  }

  /** What this client shows of itself beside the awareness. A field that is null is taken back. */
  get presence(): { set(presence: Presence): void } {
    return this.#room.presence;
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

  connect(): void {
    this.#room.connect();
  }

  /** Changes made from here on are kept, and sent after the next `connect()`. */
  disconnect(): void {
    this.#room.disconnect();
  }

  destroy(): void {
    this.doc.off("update", this.#receiveChange);
    this.doc.off("destroy", this.#receiveDocDestroyed);
    this.awareness.destroy();
    this.#room.destroy();
    this.#events.clear();
  }

  readonly #receiveChange = (update: Uint8Array, origin: unknown): void => {
    if (origin === this) return;
    const mode = this.#mode;
    switch (mode.kind) {
      case "meeting":
        mode.made += 1;
        break;
      case "following":
        this.#room.send(update);
        break;
      case "withholding":
        mode.made += 1;
        this.#tryAgain();
        break;
      default:
        assertNever(mode);
    }
    this.#tellSaved();
  };

  readonly #receiveDocDestroyed = (): void => this.destroy();

  #receivePresence(change: PresenceChange): void {
    this.awareness.receive(change, this);
    this.#events.emit("presence", change);
  }

  #receiveEdits(edits: readonly RoomEdit[]): void {
    const unknown = this.#mode.kind === "meeting" ? edits : edits.filter(({ own }) => !own);
    if (unknown.length > 0) this.#receiveContent(unknown);
  }

  #receiveContent(edits: readonly { readonly seq: Seq; readonly payload: Uint8Array }[]): void {
    const read = this.#apply(edits);
    if (this.#mode.kind === "meeting") for (const payload of read) this.#mode.received.push(payload);
  }

  /** In one transaction, so that an editor draws once, and one that is not `local`: bindings and undo go by that. Those that could be read. */
  #apply(edits: readonly { readonly seq?: Seq; readonly payload: Uint8Array }[]): Uint8Array[] {
    const read: Uint8Array[] = [];
    const applyAll = (): void => {
      for (const { seq, payload } of edits) {
        try {
          Y.applyUpdate(this.doc, payload, this);
          read.push(payload);
        } catch (cause) {
          // Bytes that are no Yjs update, from whoever wrote them: the room goes on without.
          this.#events.emit("error", { kind: "edit-unreadable", seq: seq ?? this.seq, message: "an edit of the room is no Yjs update and was left out", cause });
        }
      }
    };
    Y.transact(this.doc, applyAll, this, false);
    return read;
  }

  /** The document has them and the room has not: they become edits of this client. Applied twice they are applied once. */
  #receiveUnconfirmed(edits: readonly { readonly payload: Uint8Array }[]): void {
    for (const { payload } of edits) if (isUpdate(payload)) this.#room.send(payload);
    this.#tellSaved();
  }

  /** The log has lost what this document still has. */
  #meetAgain(): void {
    const made = this.#mode.kind === "following" ? 0 : this.#mode.made;
    this.#mode = { kind: "meeting", received: [], hadContent: true, made };
    this.#tellSaved();
  }

  #receiveSynced(synced: boolean): void {
    const mode = this.#mode;
    if (synced && mode.kind === "meeting") {
      this.#mode = { kind: "following" };
      const lacking = mode.hadContent || mode.made > 0 ? lackingIn(mode.received, this.doc) : undefined;
      if (lacking !== undefined) this.#room.send(lacking);
    }
    this.#synced = synced;
    this.#events.emit("synced", synced);
    this.#tellSaved();
  }

  #receiveSaved(): void {
    if (this.#mode.kind === "withholding") this.#tryAgain();
    this.#tellSaved();
  }

  #receiveProblem(problem: Problem): void {
    if (problem.kind === "edit-too-large" || problem.kind === "outbox-full") this.#withhold(problem.payload);
    this.#events.emit("error", problem);
    this.#tellSaved();
  }

  #withhold(payload: Uint8Array): void {
    if (this.#mode.kind === "meeting") return; // Whatever is lacking then will be sent.
    const since = clocksBefore([payload]);
    const made = 1;
    if (this.#mode.kind === "following") this.#mode = { kind: "withholding", since, made };
    else this.#mode = { kind: "withholding", since: earliest(this.#mode.since, since), made: this.#mode.made + made };
  }

  /** What was too large may be gone by now (undone, for one), or the outbox have room. */
  #tryAgain(): void {
    const bytesMax = this.#room.editBytesMax;
    if (this.#mode.kind !== "withholding" || bytesMax === undefined) return;
    const withheld = contentSince(this.#mode.since, this.doc);
    if (withheld.byteLength > bytesMax && splitEdit(withheld, bytesMax) === undefined) return;
    this.#mode = { kind: "following" };
    if (!saysNothing(withheld)) this.#room.send(withheld);
  }

  #tellSaved(): void {
    const { saved } = this;
    if (saved === this.#saved) return;
    this.#saved = saved;
    this.#events.emit("saved", saved);
  }
}

function earliest(a: Clocks, b: Clocks): Clocks {
  const clocks = new Map(a);
  for (const [client, clock] of b) clocks.set(client, Math.min(clock, clocks.get(client) ?? clock));
  return clocks;
}
