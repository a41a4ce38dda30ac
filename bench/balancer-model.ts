/**
 * The balancer of `deploy/balancer/haproxy.cfg` as a model: which gateway gets the next connection.
 *
 * With a routing key it follows HAProxy's `balance url_param` with `hash-type consistent` and `hash-balance-factor`
 * (lb_chash.c): the same hash functions, points of the ring and rounding, so that it names the same gateway as HAProxy
 * after the same connections (`routing.system.test.ts`). Example: a full gateway passes a connection to the gateway of the
 * next point of the ring, and not to the least loaded one. Without a key it follows `balance leastconn`.
 */

export type BalancerOptions = {
  readonly gateways: number;
  /** `hash-balance-factor`, in percent of the average number of connections. 0: no bound. */
  readonly balanceFactor: number;
};
export type Balancing = "by key" | "by load";

/** As in `deploy/balancer/haproxy.cfg`. */
export const BALANCE_FACTOR = 150;

/** BE_WEIGHT_SCALE: points on the ring of a server without `weight`, and its units of weight. */
const POINTS = 16;
/** SRV_EWGHT_RANGE. */
const SERVER_KEY_STEP = 4_096;

type RingPoint = { readonly at: number; readonly gateway: number };

export class BalancerModel {
  readonly #factor: number;
  readonly #ring: readonly RingPoint[];
  readonly #connections: number[];
  #total = 0;
  #next = 0;

  constructor({ gateways, balanceFactor }: BalancerOptions) {
    this.#factor = balanceFactor;
    this.#connections = Array.from({ length: gateways }, () => 0);
    this.#ring = this.#connections
      .flatMap((_, gateway) =>
        Array.from({ length: POINTS }, (__, point) => ({ at: fullHash((gateway + 1) * SERVER_KEY_STEP + point), gateway })),
      )
      .sort((a, b) => a.at - b.at);
  }

  /** Of each gateway. */
  get connections(): readonly number[] {
    return this.#connections;
  }

  connect(balancing: Balancing, key: string): number {
    const gateway = balancing === "by key" ? this.#gatewayOf(key) : this.#leastLoaded();
    this.#connections[gateway]!++;
    this.#total++;
    return gateway;
  }

  disconnect(gateway: number): void {
    this.#connections[gateway]!--;
    this.#total--;
  }

  #gatewayOf(key: string): number {
    const hash = fullHash(sdbm(key));
    const ring = this.#ring;
    const following = this.#pointAtOrAfter(hash) % ring.length;
    const preceding = (following + ring.length - 1) % ring.length;
    const isNearer = (hash - ring[preceding]!.at) >>> 0 <= (ring[following]!.at - hash) >>> 0;
    let point = isNearer ? preceding : following;
    while (!this.#hasRoom(ring[point]!.gateway)) point = (point + 1) % ring.length;
    return ring[point]!.gateway;
  }

  #pointAtOrAfter(hash: number): number {
    let [low, high] = [0, this.#ring.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ring[middle]!.at < hash) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Connections of a gateway are below its share of the bound, of which each unit of weight gets the same. */
  #hasRoom(gateway: number): boolean {
    if (this.#factor === 0) return true;
    const slots = Math.ceil(((this.#total + 1) * this.#factor) / 100);
    const weightOfAll = POINTS * this.#connections.length;
    const [each, rest] = [Math.floor(slots / weightOfAll), slots % weightOfAll];
    const restBefore = (servers: number): number => Math.floor((servers * POINTS * rest) / weightOfAll);
    const own = POINTS * each + restBefore(gateway + 1) - restBefore(gateway);
    return this.#connections[gateway]! < Math.max(1, own);
  }

  /** Gateways with equally many connections take turns. */
  #leastLoaded(): number {
    const count = this.#connections.length;
    let least = this.#next;
    for (let step = 1; step < count; step++) {
      const other = (this.#next + step) % count;
      if (this.#connections[other]! < this.#connections[least]!) least = other;
    }
    this.#next = (least + 1) % count;
    return least;
  }
}

function sdbm(text: string): number {
  let hash = 0;
  for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 65_599) + text.charCodeAt(index)) >>> 0;
  return hash;
}

/** Bob Jenkins' integer hash and a multiplication, as HAProxy spreads points and keys over the ring. */
function fullHash(value: number): number {
  let hash = (value + 0x7ed55d16 + (value << 12)) | 0;
  hash = hash ^ 0xc761c23c ^ (hash >>> 19);
  hash = (hash + 0x165667b1 + (hash << 5)) | 0;
  hash = (hash + 0xd3a2646c) ^ (hash << 9);
  hash = (hash + 0xfd7046c5 + (hash << 3)) | 0;
  hash = hash ^ 0xb55a4f09 ^ (hash >>> 16);
  return Math.imul(hash, 3_221_225_473) >>> 0;
}
