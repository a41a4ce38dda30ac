/**
 * Edits per second of each tenant, or of each user, at this gateway: the part of the limit that the other gateways do not
 * use. If all gateways together request more than the limit, each gets its proportional share.
 */

type Second = { asked: number; left: number };

export class SharedEditRate<Key extends string> {
  readonly #perSecondMax: number;
  readonly #elsewhere: (key: Key) => number;
  readonly #seconds = new Map<Key, Second>();

  /** `elsewhere`: edits that the tenant or user requested at the other gateways in their last second. */
  constructor(perSecondMax: number, elsewhere: (key: Key) => number) {
    this.#perSecondMax = perSecondMax;
    this.#elsewhere = elsewhere;
  }

  take(key: Key): boolean {
    const second = this.#seconds.get(key) ?? this.#begin(key, 0);
    second.asked += 1;
    if (second.left < 1) return false;
    second.left -= 1;
    return true;
  }

  /** Ends a second and returns the edits that were requested in it, by key. A quiet key is reported once as 0, then forgotten. */
  endSecond(): [Key, number][] {
    return [...this.#seconds].map(([key, { asked }]) => {
      if (asked === 0) this.#seconds.delete(key);
      else this.#begin(key, asked);
      return [key, asked];
    });
  }

  #begin(key: Key, asked: number): Second {
    const elsewhere = this.#elsewhere(key);
    const fair = asked === 0 ? 0 : (this.#perSecondMax * asked) / (asked + elsewhere);
    const second = { asked: 0, left: Math.max(this.#perSecondMax - elsewhere, fair) };
    this.#seconds.set(key, second);
    return second;
  }
}
