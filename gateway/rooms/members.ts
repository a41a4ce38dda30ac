/** Who is in a room over this gateway, and how far each has come into it. */

import type { ClientId, Millis, Position } from "../../shared/ids.ts";
import { FEW, Few } from "../../shared/few.ts";
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
  readonly #byConnection = new Few<ConnectionId, Member>(connectionOf);
  /** Most clients have one connection, without a list. Undefined: there are few, which are looked through. */
  #byClient: Map<ClientId, ConnectionId | readonly ConnectionId[]> | undefined;
  readonly #counts: Record<MemberState["kind"], number> = { "waiting": 0, "catching-up": 0, "live": 0, "resyncing": 0 };

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
    return this.#byClient === undefined ? this.#findLast(client) !== undefined : this.#byClient.has(client);
  }

  /** One client's connections: one, but for a moment after it reconnected. */
  of(client: ClientId): Member[] {
    if (this.#byClient === undefined) return this.all().filter((member) => member.client === client);
    const of = this.#byClient.get(client) ?? NONE;
    return (typeof of === "number" ? [of] : of).map((connection) => this.#byConnection.get(connection)!);
  }

  /** The only connection of the client, if it is live. */
  soleLive(client: ClientId): ConnectionId | undefined {
    const [member, ...others] = this.of(client);
    return member?.state.kind === "live" && others.length === 0 ? member.connection : undefined;
  }

  set(member: Member): void {
    const earlier = this.#byConnection.get(member.connection);
    if (earlier?.client === member.client) {
      this.#counts[earlier.state.kind] -= 1;
      this.#byConnection.set(member); // In place: a Map keeps room for what was deleted, and members change their state at each join.
      this.#counts[member.state.kind] += 1;
      return;
    }
    this.remove(member.connection);
    const others = this.of(member.client).map(({ connection }) => connection);
    this.#byConnection.set(member);
    this.#setOf(member.client, [...others, member.connection]);
    this.#counts[member.state.kind] += 1;
  }

  remove(connection: ConnectionId): Member | undefined {
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

  #findLast(client: ClientId): Member | undefined {
    return this.#byConnection.findLast((member) => member.client === client);
  }

  #setOf(client: ClientId, connections: readonly ConnectionId[]): void {
    if (this.#byConnection.size > FEW) this.#byClient ??= this.#indexed();
    const [first, ...others] = connections;
    if (first === undefined) this.#byClient?.delete(client);
    else this.#byClient?.set(client, others.length === 0 ? first : connections);
  }

  #indexed(): Map<ClientId, ConnectionId | readonly ConnectionId[]> {
    const byClient = new Map<ClientId, ConnectionId | readonly ConnectionId[]>();
    for (const { client, connection } of this.#byConnection.values()) {
      const before = byClient.get(client);
      byClient.set(client, before === undefined ? connection : [before, connection].flat());
    }
    return byClient;
  }
}

const NONE: readonly never[] = [];

function connectionOf({ connection }: Member): ConnectionId {
  return connection;
}
