/** The connections in a room, and the state of each. */

import type { ClientId, Millis, Position } from "../../shared/ids.ts";
import { SMALL_MAP_ENTRIES_MAX, SmallMap } from "../../shared/collections/small-map.ts";
import type { ConnectionId } from "../ports.ts";

export type MemberConnection = {
  readonly connection: ConnectionId;
  readonly client: ClientId;
  readonly state: MemberState;
};

type MemberState =
  /** Has sent JOIN and has received no answer. */
  | { readonly kind: "waiting"; readonly request: number; readonly position: Position; readonly since: Millis }
  /** Has received JOINED, and not all edits up to the room's position. */
  | { readonly kind: "catching-up" }
  /** Receives all edits of the room. `beyond`: it came with edits up to here, and the room's own were on their way. */
  | { readonly kind: "live"; readonly beyond: Position | undefined }
  /** Has to fetch a snapshot, and receives nothing until it joins again. */
  | { readonly kind: "resyncing" };

export const CATCHING_UP: MemberState = { kind: "catching-up" };
export const LIVE: MemberState = { kind: "live", beyond: undefined };
export const RESYNCING: MemberState = { kind: "resyncing" };

export class MemberConnections {
  readonly #byConnection = new SmallMap<ConnectionId, MemberConnection>(connectionOf);
  /** Undefined: the room has few members, and each search goes through all of them. */
  #byClient: Map<ClientId, readonly ConnectionId[]> | undefined;
  readonly #counts: Record<MemberState["kind"], number> = { "waiting": 0, "catching-up": 0, "live": 0, "resyncing": 0 };

  get size(): number {
    return this.#byConnection.size;
  }

  count(state: MemberState["kind"]): number {
    return this.#counts[state];
  }

  get(connection: ConnectionId): MemberConnection | undefined {
    return this.#byConnection.get(connection);
  }

  all(): MemberConnection[] {
    return [...this.#byConnection.values()];
  }

  has(client: ClientId): boolean {
    return this.#byClient === undefined ? this.#findLast(client) !== undefined : this.#byClient.has(client);
  }

  /** A client has several connections only briefly, after a reconnect. */
  of(client: ClientId): MemberConnection[] {
    if (this.#byClient === undefined) return this.#byConnection.filter((member) => member.client === client);
    return (this.#byClient.get(client) ?? []).map((connection) => this.#byConnection.get(connection)!);
  }

  /** The client's connection, if it has only one and that one is live. */
  soleLive(client: ClientId): ConnectionId | undefined {
    const members = this.of(client);
    const sole = members.length === 1 ? members[0] : undefined;
    return sole?.state.kind === "live" ? sole.connection : undefined;
  }

  set(member: MemberConnection): void {
    const earlier = this.#byConnection.get(member.connection);
    if (earlier?.client === member.client) {
      this.#counts[earlier.state.kind] -= 1;
      this.#byConnection.set(member); // Replaces the entry in place, because members change their state at each join.
      this.#counts[member.state.kind] += 1;
      return;
    }
    this.remove(member.connection);
    const others = this.of(member.client).map(({ connection }) => connection);
    this.#byConnection.set(member);
    this.#setOf(member.client, [...others, member.connection]);
    this.#counts[member.state.kind] += 1;
  }

  remove(connection: ConnectionId): MemberConnection | undefined {
    const member = this.#byConnection.get(connection);
    if (member === undefined) return undefined;
    const others = this.of(member.client)
      .map((other) => other.connection)
      .filter((other) => other !== connection);
    this.#byConnection.delete(connection);
    this.#setOf(member.client, others);
    this.#counts[member.state.kind] -= 1;
    return member;
  }

  #findLast(client: ClientId): MemberConnection | undefined {
    return this.#byConnection.findLast((member) => member.client === client);
  }

  #setOf(client: ClientId, connections: readonly ConnectionId[]): void {
    if (this.#byConnection.size > SMALL_MAP_ENTRIES_MAX) this.#byClient ??= this.#indexed();
    if (connections.length === 0) this.#byClient?.delete(client);
    else this.#byClient?.set(client, connections);
  }

  #indexed(): Map<ClientId, readonly ConnectionId[]> {
    const byClient = new Map<ClientId, readonly ConnectionId[]>();
    for (const { client, connection } of this.#byConnection.values()) byClient.set(client, [...(byClient.get(client) ?? []), connection]);
    return byClient;
  }
}

function connectionOf({ connection }: MemberConnection): ConnectionId {
  return connection;
}
