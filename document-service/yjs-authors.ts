/**
 * Records which user introduced each Yjs client id in a room. Yjs takes the first struct of an id and clock, and
 * ignores a later one. So a hostile writer who uses the id of another user makes edits of that user disappear. Such
 * edits cannot be refused, because a client may send edits that it received over another provider. So they are
 * reported. Rules YAU1 to YAU5.
 *
 * A repeat of known structs is never reported: after a synchronisation every client may send all structs.
 */

import * as decoding from "lib0/decoding";
import * as Y from "yjs";

import type { UserId } from "../shared/ids.ts";

/** A value in place of a user in `known`: the id was reported, and is not compared any more. */
const REPORTED = "" as UserId;
/**
 * Maximum number of known ids of a room. Above it, the id that is known longest is forgotten, and counts as introduced
 * by its next writer.
 */
export const KNOWN_IDS_MAX = 128;

/** The users of a merge's edits: `writers` has an index into `users` for each edit. */
export type EditAuthors = {
  readonly users: readonly UserId[];
  readonly writers: Uint32Array;
  readonly known: ReadonlyMap<number, UserId>;
};

const MAIN_WRITERS_MAX = 3;

/** The users with most of these edits, for people who look for the cause of a failure. */
export function mainWriters({ users, writers }: EditAuthors): readonly UserId[] {
  const counts = users.map((): number => 0);
  for (const index of writers) counts[index]! += 1;
  return users
    .map((user, index) => ({ user, count: counts[index]! }))
    .sort((a, b) => b.count - a.count)
    .slice(0, MAIN_WRITERS_MAX)
    .map(({ user }) => user);
}

/** `user` wrote new structs under the id. `introducedBy` is another user; undefined if the id was not known. */
export type YjsIdUse = { readonly yjsClient: number; readonly user: UserId; readonly introducedBy: UserId | undefined };
/** An id that two users have written under. */
export type DisputedYjsId = YjsIdUse & { readonly introducedBy: UserId };

export class YjsAuthors {
  readonly #known = new Map<number, UserId>();

  /** `users`: the user of each edit. */
  of(users: readonly UserId[]): EditAuthors {
    const indexes = new Map<UserId, number>();
    const writers = Uint32Array.from(users, (user) => {
      const index = indexes.get(user) ?? indexes.size;
      indexes.set(user, index);
      return index;
    });
    return { users: [...indexes.keys()], writers, known: new Map(this.#known) };
  }

  /** Returns only uses that were not reported before. */
  receiveUses(uses: readonly YjsIdUse[]): readonly DisputedYjsId[] {
    const disputed: DisputedYjsId[] = [];
    for (const use of uses) {
      const { yjsClient, user, introducedBy } = use;
      if (introducedBy === undefined) this.#remember(yjsClient, user);
      else if (this.#known.get(yjsClient) !== REPORTED) {
        this.#remember(yjsClient, REPORTED);
        disputed.push({ ...use, introducedBy });
      }
    }
    return disputed;
  }

  #remember(yjsClient: number, user: UserId): void {
    this.#known.set(yjsClient, user);
    const oldest = this.#known.size > KNOWN_IDS_MAX ? this.#known.keys().next().value : undefined;
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/**
 * Uses of ids that are new or belong to another user, in the order of the edits. `state`: the document before them.
 * `edits`: a merge has applied all of them, because a refused edit may contain any ids. An edit by the known author
 * only needs four numbers read. Any other edit needs the earlier edits decoded.
 */
export function findYjsIdUses(
  state: Uint8Array,
  edits: readonly Uint8Array[],
  { users, writers, known }: EditAuthors,
): readonly YjsIdUse[] {
  const authors = new Map(known);
  const ends = new ClockEnds(state, edits);
  const uses: YjsIdUse[] = [];
  edits.forEach((edit, index) => {
    const user = users[writers[index]!]!;
    for (const yjsClient of idsOf(edit)) {
      const introducedBy = authors.get(yjsClient);
      if (introducedBy === user || introducedBy === REPORTED) continue;
      if ((endsOf(edit).get(yjsClient) ?? 0) <= ends.before(index, yjsClient)) continue; // A repeat.
      authors.set(yjsClient, introducedBy === undefined ? user : REPORTED);
      uses.push({ yjsClient, user, introducedBy });
    }
  });
  return uses;
}

/** The exclusive end of the clocks of each id before an edit. Decodes nothing until it is asked. */
class ClockEnds {
  readonly #state: Uint8Array;
  readonly #edits: readonly Uint8Array[];
  #ends: Map<number, number> | undefined;
  #decoded = 0;

  constructor(state: Uint8Array, edits: readonly Uint8Array[]) {
    this.#state = state;
    this.#edits = edits;
  }

  /** `index` never decreases from call to call. */
  before(index: number, yjsClient: number): number {
    this.#ends ??= Y.decodeStateVector(Y.encodeStateVectorFromUpdate(this.#state));
    for (; this.#decoded < index; this.#decoded++)
      for (const [id, end] of endsOf(this.#edits[this.#decoded]!)) this.#ends.set(id, Math.max(end, this.#ends.get(id) ?? 0));
    return this.#ends.get(yjsClient) ?? 0;
  }
}

/** An edit of one client, as of a person who types, begins with 1, the number of structs, and the client. */
function idsOf(edit: Uint8Array): Iterable<number> {
  const input = decoding.createDecoder(edit);
  const clients = decoding.readVarUint(input);
  if (clients === 0) return [];
  if (clients > 1) return endsOf(edit).keys();
  decoding.readVarUint(input);
  return [decoding.readVarUint(input)];
}

function endsOf(edit: Uint8Array): ReadonlyMap<number, number> {
  return Y.parseUpdateMeta(edit).to;
}
