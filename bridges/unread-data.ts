/**
 * The data that clients have not read yet, of all sockets of the bridge together. Above the limit, the tenant with the
 * most unread bytes is chosen, in it the user with the most, and of this user's sockets the one with the most is cut. If
 * the socket with the most of all were cut, a user with hundreds of sockets would end an honest client's download.
 */

import { assert } from "../shared/assert.ts";
import type { TenantId } from "../shared/ids.ts";

/** `waitingBytes` falls while the client reads. Nothing reports this, so it is read again where it matters. */
type DataReader = { readonly waitingBytes: number };
/** Whose token a gateway has accepted. */
export type ReaderOwner = { readonly tenant: TenantId; readonly user: string };

type Share<Reader> = { readonly reader: Reader; bytes: number; owner: ReaderOwner | undefined };

export class UnreadData<Reader extends DataReader> {
  readonly #bytesMax: number;
  readonly #receiveExcess: (reader: Reader) => void;
  readonly #shares = new Map<Reader, Share<Reader>>();
  #bytes = 0;

  constructor(bytesMax: number, receiveExcess: (reader: Reader) => void) {
    this.#bytesMax = bytesMax;
    this.#receiveExcess = receiveExcess;
  }

  get bytes(): number {
    this.#countAll();
    return this.#bytes;
  }

  enter(reader: Reader): void {
    this.#shares.set(reader, { reader, bytes: 0, owner: undefined });
  }

  /** A socket belongs to the first user whose token is accepted. Sockets without one belong together. */
  identify(reader: Reader, owner: ReaderOwner): void {
    const share = this.#shares.get(reader);
    if (share !== undefined) share.owner ??= owner;
  }

  /** Call after each message to the client. */
  receiveSent(reader: Reader): void {
    const share = this.#shares.get(reader);
    if (share === undefined) return;
    this.#count(share);
    if (this.#bytes > this.#bytesMax) this.#countAll();
    while (this.#bytes > this.#bytesMax) {
      const heaviest = this.#heaviest();
      this.forget(heaviest);
      this.#receiveExcess(heaviest);
    }
  }

  forget(reader: Reader): void {
    this.#bytes -= this.#shares.get(reader)?.bytes ?? 0;
    this.#shares.delete(reader);
  }

  #countAll(): void {
    for (const share of this.#shares.values()) this.#count(share);
  }

  #count(share: Share<Reader>): void {
    const bytes = share.reader.waitingBytes;
    this.#bytes += bytes - share.bytes;
    share.bytes = bytes;
  }

  #heaviest(): Reader {
    const ofTenant = heaviestOf([...this.#shares.values()], ({ owner }) => owner?.tenant);
    const ofUser = heaviestOf(ofTenant, ({ owner }) => owner?.user);
    const [share] = heaviestOf(ofUser, ({ reader }) => reader);
    assert(share !== undefined, "unread data belongs to a socket");
    return share.reader;
  }
}

/** The shares with the same key that have the most bytes together. */
function heaviestOf<Reader, Key>(shares: readonly Share<Reader>[], keyOf: (share: Share<Reader>) => Key): readonly Share<Reader>[] {
  const bytesOf = new Map<Key, number>();
  for (const share of shares) bytesOf.set(keyOf(share), (bytesOf.get(keyOf(share)) ?? 0) + share.bytes);
  const [heaviest] = [...bytesOf].reduce((most, next) => (next[1] > most[1] ? next : most));
  return shares.filter((share) => keyOf(share) === heaviest);
}
