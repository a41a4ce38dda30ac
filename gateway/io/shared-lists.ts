/**
 * One list for all who have the same. Most tokens open one room, or all, and those who are in a room have tokens that
 * open it: 56 bytes of each connection that is held.
 */

/** Beyond it all are forgotten: whoever holds one has it, and lists are shared anew. */
export const LISTS_MAX = 1_024;

export class SharedLists {
  /** Of those with one entry. Others are seldom the same, and their text may be long. */
  readonly #ofOne = new Map<string, readonly [string]>();

  /** Nobody may change what is returned. */
  share(list: readonly string[]): readonly string[] {
    const [entry] = list;
    if (entry === undefined || list.length > 1) return list;
    const known = this.#ofOne.get(entry);
    if (known !== undefined) return known;
    if (this.#ofOne.size === LISTS_MAX) this.#ofOne.clear();
    const shared = [entry] as const;
    this.#ofOne.set(entry, shared);
    return shared;
  }
}
