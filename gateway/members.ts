/** Who is in a room over this gateway, and how far each has come into it. */

import type { ClientId, Millis, Position } from "../shared/ids.ts";
import type { Rights } from "../shared/wire/frames.ts";
import type { ConnectionId } from "./ports.ts";

export type Member = {
  readonly connection: ConnectionId;
  readonly client: ClientId;
  readonly rights: Rights;
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

export class Members {
  readonly #byConnection = new Map<ConnectionId, Member>();
  readonly #byClient = new Map<ClientId, Set<ConnectionId>>();
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
    return [...(this.#byClient.get(client) ?? [])].map((connection) => this.#byConnection.get(connection)!);
  }

  /** The only connection of the client, if it is live. */
  soleLive(client: ClientId): ConnectionId | undefined {
    const connections = this.#byClient.get(client);
    if (connections?.size !== 1) return undefined;
    const [connection] = connections;
    return connection !== undefined && this.#byConnection.get(connection)?.state.kind === "live" ? connection : undefined;
  }

  set(member: Member): void {
    this.remove(member.connection);
    this.#byConnection.set(member.connection, member);
    const connections = this.#byClient.get(member.client);
    if (connections === undefined) this.#byClient.set(member.client, new Set([member.connection]));
    else connections.add(member.connection);
    this.#counts[member.state.kind] += 1;
  }

  remove(connection: ConnectionId): Member | undefined {
    const member = this.#byConnection.get(connection);
    if (member === undefined) return undefined;
    this.#byConnection.delete(connection);
    const connections = this.#byClient.get(member.client);
    connections?.delete(connection);
    if (connections?.size === 0) this.#byClient.delete(member.client);
    this.#counts[member.state.kind] -= 1;
    return member;
  }
}
