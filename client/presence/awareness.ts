/**
 * A room's presence as editor bindings know it: what `Awareness` of y-protocols is to them. Each top-level field
 * travels by itself, so that a caret that moves takes no name and colour along. There are no clocks to renew and no
 * timeouts: the server knows who is there. Rules AWA1 to AWA10.
 */

import { equalityDeep } from "lib0/function";
import { Observable } from "lib0/observable";
import type * as Y from "yjs";

import { assert } from "../../shared/assert.ts";
import type { ClientId } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { Participant, PresenceChange } from "./participants.ts";
import type { Clock } from "../ports.ts";
import { ownField } from "./presence-fields.ts";
import { sameBytes } from "./presence-values.ts";

/** The room behind it. */
export interface AwarenessRoom {
  readonly participants: ReadonlyMap<ClientId, Participant>;
  show(fields: readonly PresenceField[]): void;
}

// The types of y-protocols: bindings written in TypeScript take what fits them.
// oxlint-disable-next-line typescript/no-explicit-any
type State = { [field: string]: any };

/** Which Yjs client a participant writes as. Whoever shows none takes no part in the awareness. */
const YJS_CLIENT = "yjs";

const NOTHING = new Uint8Array();

/** What an application shows must not take the place of that. */
export function refuseReserved(fields: object): void {
  assert(
    !Object.hasOwn(fields, YJS_CLIENT),
    `a field cannot be named "${YJS_CLIENT}": it tells others which Yjs client this is; name it otherwise`,
  );
}

export class RoomAwareness extends Observable<string> {
  readonly doc: Y.Doc;
  readonly clientID: number;
  readonly states = new Map<number, State>();
  readonly meta = new Map<number, { clock: number; lastUpdated: number }>();
  /** There is none; the type of y-protocols has it. */
  readonly _checkInterval = undefined;
  readonly #room: AwarenessRoom;
  readonly #clock: Clock;
  readonly #reportError: (error: unknown) => void;
  readonly #ids = new Map<ClientId, number>();
  /** Should several say that they write as one: the last of them counts. */
  readonly #claims = new Map<number, Set<ClientId>>();
  readonly #fields = new Map<number, Participant["fields"]>();
  /** Of this client, as it was shown last or was to be: what is too large is refused once, and not with every caret that moves. */
  readonly #shown = new Map<string, Uint8Array>();

  constructor(doc: Y.Doc, room: AwarenessRoom, { clock, reportError }: { clock: Clock; reportError: (error: unknown) => void }) {
    super();
    this.doc = doc;
    this.clientID = doc.clientID;
    this.#room = room;
    this.#clock = clock;
    this.#reportError = reportError;
    this.setLocalState({});
  }

  getStates(): Map<number, State> {
    return this.states;
  }

  getLocalState(): State | null {
    return this.states.get(this.clientID) ?? null;
  }

  /** Null: this client is not to be seen. */
  setLocalState(state: State | null): void {
    refuseReserved(state ?? {});
    const { clientID } = this;
    const before = this.getLocalState();
    const gone = Object.keys(before ?? {}).filter((field) => state === null || !Object.hasOwn(state, field));
    const fields = [
      ...gone.map((field) => ownField(field, undefined)),
      ...Object.entries(state ?? {}).map(([field, value]) => ownField(field, value)),
    ];
    if (state === null) this.states.delete(clientID);
    else this.states.set(clientID, state);
    this.#count(clientID);
    this.#show([ownField(YJS_CLIENT, state === null ? undefined : clientID)]); // By itself: it is always taken.
    this.#show(fields);

    const added = state !== null && before === null ? [clientID] : [];
    const updated = state !== null && before !== null ? [clientID] : [];
    const removed = state === null ? [clientID] : [];
    const altered = equalityDeep(before, state) ? [] : updated;
    if (added.length + altered.length + removed.length > 0) this.emit("change", [{ added, updated: altered, removed }, "local"]);
    this.emit("update", [{ added, updated, removed }, "local"]);
  }

  setLocalStateField(field: string, value: unknown): void {
    const state = this.getLocalState();
    if (state !== null) this.setLocalState({ ...state, [field]: value });
  }

  /** @internal For the provider: what has changed in the room. */
  receive({ entered, changed, left }: PresenceChange, origin: unknown): void {
    const touched = new Set<number>();
    for (const client of [...left, ...changed, ...entered]) this.#reclaim(client, touched);
    touched.delete(this.clientID); // Whoever says that they write as this client.
    const [added, updated, removed]: [number[], number[], number[]] = [[], [], []];
    for (const id of touched) {
      const claimant = [...(this.#claims.get(id) ?? [])].at(-1);
      const fields = claimant === undefined ? undefined : this.#room.participants.get(claimant)?.fields;
      if (fields === this.#fields.get(id)) continue;
      if (fields === undefined) removed.push(id);
      else (this.states.has(id) ? updated : added).push(id);
      this.#setRemote(id, fields);
    }
    if (added.length + updated.length + removed.length > 0) {
      this.emit("change", [{ added, updated, removed }, origin]);
      this.emit("update", [{ added, updated, removed }, origin]);
    }
    for (const id of removed) if (!this.states.has(id)) this.meta.delete(id); // Until then listeners may ask for it.
  }

  /** A listener that throws disturbs nobody else. */
  override emit(name: string, args: unknown[]): void {
    const listeners: ReadonlySet<(...args: unknown[]) => void> = this._observers.get(name) ?? new Set();
    for (const listener of Array.from(listeners)) {
      try {
        listener(...args);
      } catch (error) {
        this.#reportError(error); // The binding's own; nothing of ours throws here.
      }
    }
  }

  override destroy(): void {
    this.emit("destroy", [this]);
    this.setLocalState(null);
    super.destroy();
  }

  /**
   * Each by itself, for the room takes what it is shown at once whole or not at all. What makes room comes first, and
   * then all is offered again.
   */
  #show(fields: readonly PresenceField[]): void {
    const growth = ({ name, value }: PresenceField): number => value.byteLength - (this.#shown.get(name) ?? NOTHING).byteLength;
    const changed = fields.filter(({ name, value }) => !sameBytes(this.#shown.get(name) ?? NOTHING, value));
    const offered = changed.some((field) => growth(field) < 0) ? fields.toSorted((one, other) => growth(one) - growth(other)) : changed;
    for (const field of offered) this.#room.show([field]);
    for (const { name, value } of changed) {
      if (value.byteLength === 0) this.#shown.delete(name);
      else this.#shown.set(name, value);
    }
  }

  #reclaim(client: ClientId, touched: Set<number>): void {
    const participant = this.#room.participants.get(client);
    const id = participant === undefined || participant.self ? undefined : yjsClientOf(participant);
    const before = this.#ids.get(client);
    if (before !== undefined) touched.add(before);
    if (id !== undefined) touched.add(id);
    if (id === before) return;
    if (before !== undefined) {
      const claims = this.#claims.get(before);
      claims?.delete(client);
      if (claims?.size === 0) this.#claims.delete(before);
    }
    if (id === undefined) this.#ids.delete(client);
    else {
      this.#ids.set(client, id);
      this.#claims.set(id, (this.#claims.get(id) ?? new Set()).add(client));
    }
  }

  #setRemote(id: number, fields: Participant["fields"] | undefined): void {
    this.#count(id);
    if (fields === undefined) {
      this.#fields.delete(id);
      this.states.delete(id);
      return;
    }
    const { [YJS_CLIENT]: _, ...state } = fields;
    this.#fields.set(id, fields);
    this.states.set(id, state);
  }

  #count(id: number): void {
    this.meta.set(id, { clock: (this.meta.get(id)?.clock ?? -1) + 1, lastUpdated: this.#clock.now() });
  }
}

function yjsClientOf({ fields }: Participant): number | undefined {
  const id = fields[YJS_CLIENT];
  return typeof id === "number" && Number.isSafeInteger(id) && id >= 0 ? id : undefined;
}
