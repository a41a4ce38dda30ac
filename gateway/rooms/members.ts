/** Who is in a room over this gateway, and how far each has come into it. */

import type { ClientId, Millis, Position } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";

export type Member = {
  readonly connection: ConnectionId;
  readonly client: ClientId;
  readonly state: MemberState;
};

export type MemberState =
  /** Asked to join; not let in yet. */
  | { readonly kind: "waiting"; readonly request: number; readonly position: Position; readonly since: Millis }
  /** Let in, and on its way to where the room is. */
  | { readonly kind: "catching-up" }
  /** Gets what the room gets. */
  | { readonly kind: "live" }
  /** Was told to fetch a snapshot; gets nothing until it joins again. */
  | { readonly kind: "resyncing" };

/** Shared by all members in them. */
export const CATCHING_UP: MemberState = { kind: "catching-up" };
export const LIVE: MemberState = { kind: "live" };
export const RESYNCING: MemberState = { kind: "resyncing" };

export class Members {
  readonly #byConnection = new Map<ConnectionId, Member>();
  /** Most clients have one connection: a set of its own for each would weigh more than the member. */
  readonly #byClient = new Map<ClientId, ConnectionId | Set<ConnectionId>>();
  readonly #counts: Record<MemberState["kind"], number> = { waiting: 0, "catching-up": 0, live: 0, resyncing: 0 };

  get size(): number {
    return this.#byConnection.size;
  }

  count(state: MemberState["kind"]): number {
    return this.#counts[state];
  }

  get(connection: ConnectionId): Member | undefined {
    return this.#byConnection.get(connection);
  }

  all(): Member[] {
    return [...this.#byConnection.values()];
  }

  has(client: ClientId): boolean {
    return this.#byClient.has(client);
  }

  /** One client's connections: one, but for a moment after it reconnected. */
  of(client: ClientId): Member[] {
    const connections = this.#byClient.get(client);
    if (connections === undefined) return [];
    return (typeof connections === "number" ? [connections] : [...connections]).map((connection) => this.#byConnection.get(connection)!);
  }

  /** The only connection of the client, if it is live. */
  soleLive(client: ClientId): ConnectionId | undefined {
    const connection = this.#byClient.get(client);
    if (typeof connection !== "number") return undefined;
    return this.#byConnection.get(connection)?.state.kind === "live" ? connection : undefined;
  }

  set(member: Member): void {
    const earlier = this.#byConnection.get(member.connection);
    if (earlier?.client === member.client) {
      this.#counts[earlier.state.kind] -= 1;
      this.#byConnection.set(member.connection, member); // In place: a Map keeps room for what was deleted, and members change their state at each join.
      this.#counts[member.state.kind] += 1;
      return;
    }
    this.remove(member.connection);
    this.#byConnection.set(member.connection, member);
    const before = this.#byClient.get(member.client);
    if (before === undefined) this.#byClient.set(member.client, member.connection);
    else if (typeof before === "number") this.#byClient.set(member.client, new Set([before, member.connection]));
    else before.add(member.connection);
    this.#counts[member.state.kind] += 1;
  }

  remove(connection: ConnectionId): Member | undefined {
    const member = this.#byConnection.get(connection);
    if (member === undefined) return undefined;
    this.#byConnection.delete(connection);
    this.#removeFromClient(member.client, connection);
    this.#counts[member.state.kind] -= 1;
    return member;
  }

  #removeFromClient(client: ClientId, connection: ConnectionId): void {
    const connections = this.#byClient.get(client);
    if (typeof connections === "number") this.#byClient.delete(client);
    else if (connections !== undefined) {
      connections.delete(connection);
      const [left, ...others] = connections;
      if (left !== undefined && others.length === 0) this.#byClient.set(client, left);
    }
  }
}
