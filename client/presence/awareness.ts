/**
 * A room's presence in the form of `Awareness` of y-protocols, for editor bindings. Each top-level field is sent
 * separately, so a moving caret does not resend name and colour. There are no clocks to renew and no timeouts, because
 * the server knows who is present. Rules AWA1 to AWA12.
 */

import { equalityDeep } from "lib0/function";
import { Observable } from "lib0/observable";
import type * as Y from "yjs";

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { ClientId } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { ClientClock } from "../ports.ts";
import type { Participant, PresenceChange } from "./participants.ts";
import { BROADCASTS, ownField, refuseReserved } from "./presence-fields.ts";

/** The room that the awareness belongs to. */
interface AwarenessRoom {
  readonly participants: ReadonlyMap<ClientId, Participant>;
  show(fields: readonly PresenceField[]): void;
}

/** Fields of the awareness by name, if no type is given: any value that JSON can represent. */
// The types of y-protocols, so that bindings written in TypeScript accept this class.
// oxlint-disable-next-line typescript/no-explicit-any
export type AwarenessState = { [field: string]: any };

/** Field with the Yjs client id of a participant. A participant without it is not part of the awareness. */
const YJS_CLIENT = "yjs";

const NOTHING = new Uint8Array();

/** Fields that applications cannot set. */
export const RESERVED_FIELDS: readonly string[] = [YJS_CLIENT, BROADCASTS];

/**
 * The awareness of y-protocols, carried by the room's presence: bindings use it unchanged. `State`: fields of the awareness,
 * for TypeScript. A field is missing until its client has set it. Events `change`, `update` and `destroy`, as there.
 */
export class RoomAwareness<State extends object = AwarenessState> extends Observable<string> {
  /** The document of the provider. */
  readonly doc: Y.Doc;
  /** Id of this client in Yjs: that of the document. */
  readonly clientID: number;
  /** The states by Yjs client id, including this client's own. */
  readonly states = new Map<number, Partial<State>>();
  /** For each client that was ever shown: number of its changes, and time of the last one in milliseconds. */
  readonly meta = new Map<number, { clock: number; lastUpdated: number }>();
  /** Unused; the type of y-protocols requires it. */
  readonly _checkInterval = undefined;
  readonly #room: AwarenessRoom;
  readonly #clock: ClientClock;
  readonly #reportError: (error: unknown) => void;
  readonly #ids = new Map<ClientId, number>();
  /**
   * Participants that use the same Yjs client id. The last one of the first one's user counts: a client that returned has
   * two for a while, and another user who takes the id of a participant must not replace it.
   */
  readonly #claims = new Map<number, Set<ClientId>>();
  readonly #fields = new Map<number, Participant["fields"]>();
  /**
   * This client's fields as last offered. A field that is too large is rejected once, not with every caret movement.
   */
  readonly #shown = new Map<string, Uint8Array>();

  constructor(doc: Y.Doc, room: AwarenessRoom, { clock, reportError }: { clock: ClientClock; reportError: (error: unknown) => void }) {
    super();
    this.doc = doc;
    this.clientID = doc.clientID;
    this.#room = room;
    this.#clock = clock;
    this.#reportError = reportError;
    this.setLocalState({});
  }

  /** The states by Yjs client id, including this client's own. */
  getStates(): Map<number, Partial<State>> {
    return this.states;
  }

  /** This client's own state. Null: invisible. */
  getLocalState(): Partial<State> | null {
    return this.states.get(this.clientID) ?? null;
  }

  /** Replaces this client's own state. Null: this client becomes invisible. Throws for a reserved or invalid name. */
  setLocalState(state: Partial<State> | null): void {
    refuseReserved(state ?? {}, RESERVED_FIELDS);
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
    this.#show([ownField(YJS_CLIENT, state === null ? undefined : clientID)]); // Sent separately, because it is always accepted.
    this.#show(fields);

    const added = state !== null && before === null ? [clientID] : [];
    const updated = state !== null && before !== null ? [clientID] : [];
    const removed = state === null ? [clientID] : [];
    const altered = equalityDeep(before, state) ? [] : updated;
    if (added.length + altered.length + removed.length > 0) this.emit("change", [{ added, updated: altered, removed }, "local"]);
    this.emit("update", [{ added, updated, removed }, "local"]);
  }

  /** Sets one field of the own state. Without effect while this client is invisible. */
  setLocalStateField<Field extends keyof State & string>(field: Field, value: State[Field]): void {
    const state = this.getLocalState();
    if (state !== null) this.setLocalState({ ...state, [field]: value });
  }

  /** @internal Called by the provider with the room's presence changes. */
  receivePresence({ entered, changed, left }: PresenceChange, origin: unknown): void {
    const touched = new Set<number>();
    for (const client of [...left, ...changed, ...entered]) this.#reclaim(client, touched);
    touched.delete(this.clientID); // Participants that use this client's own id are ignored.
    const [added, updated, removed]: [number[], number[], number[]] = [[], [], []];
    for (const id of touched) {
      const fields = this.#claimantOf(id)?.fields;
      if (fields === this.#fields.get(id)) continue;
      if (fields === undefined) removed.push(id);
      else (this.states.has(id) ? updated : added).push(id);
      this.#setRemote(id, fields);
    }
    if (added.length + updated.length + removed.length > 0) {
      this.emit("change", [{ added, updated, removed }, origin]);
      this.emit("update", [{ added, updated, removed }, origin]);
    }
    for (const id of removed) if (!this.states.has(id)) this.meta.delete(id); // Until here listeners may read the old state.
  }

  /** An error of one listener does not affect the others. */
  override emit(name: string, args: unknown[]): void {
    const listeners: ReadonlySet<(...args: unknown[]) => void> = this._observers.get(name) ?? new Set();
    for (const listener of Array.from(listeners)) {
      try {
        listener(...args);
      } catch (error) {
        this.#reportError(error); // The binding's own error; no code of this package throws here.
      }
    }
  }

  /** Makes this client invisible and removes all listeners. The provider calls it. */
  override destroy(): void {
    this.emit("destroy", [this]);
    this.setLocalState(null);
    super.destroy();
  }

  /**
   * Offers each field separately, because the room accepts or rejects one call as a whole. Removals that free space
   * come first, then all fields are offered again.
   */
  #show(fields: readonly PresenceField[]): void {
    const growth = ({ name, value }: PresenceField): number => value.byteLength - (this.#shown.get(name) ?? NOTHING).byteLength;
    const changed = fields.filter(({ name, value }) => !isSameBytes(this.#shown.get(name) ?? NOTHING, value));
    const offered = changed.some((field) => growth(field) < 0) ? [...fields].sort((one, other) => growth(one) - growth(other)) : changed;
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

  #claimantOf(id: number): Participant | undefined {
    const claimants = [...(this.#claims.get(id) ?? [])].flatMap((client) => this.#room.participants.get(client) ?? []);
    return claimants.filter(({ user }) => user === claimants[0]!.user).at(-1);
  }

  #setRemote(id: number, fields: Participant["fields"] | undefined): void {
    this.#count(id);
    if (fields === undefined) {
      this.#fields.delete(id);
      this.states.delete(id);
      return;
    }
    const { [YJS_CLIENT]: _, [BROADCASTS]: __, ...state } = fields;
    this.#fields.set(id, fields);
    this.states.set(id, state as Partial<State>); // Other clients may set fields of any type.
  }

  #count(id: number): void {
    this.meta.set(id, { clock: (this.meta.get(id)?.clock ?? -1) + 1, lastUpdated: this.#clock.now() });
  }
}

function yjsClientOf({ fields }: Participant): number | undefined {
  const id = fields[YJS_CLIENT];
  return typeof id === "number" && Number.isSafeInteger(id) && id >= 0 ? id : undefined;
}
