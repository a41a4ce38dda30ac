/**
 * Tasks that wait for threads, in an order that is fair by the time that tasks take: first by tenant, then by room. The
 * next task is one of the room that used the threads least since tasks began to wait. The invariant: a room with short
 * tasks waits for the tasks that run and for one task of each other room and thread at most, however many wait. If a room
 * with tasks of 100 ms has 50 waiting, a task of another room is the next. Rules FRQ1 to FRQ6.
 */

import { type RoomKey, type TenantId, tenantOf } from "../ids.ts";

type TenantTasks<Task> = { readonly rooms: Map<RoomKey, Task[]>; readonly used: UsedTime<RoomKey>; waiting: number };

export class FairQueue<Task> {
  readonly #tasksMax: number;
  /** Tenants with waiting tasks, and their rooms with waiting tasks. */
  readonly #tenants = new Map<TenantId, TenantTasks<Task>>();
  #used = new UsedTime<TenantId>();
  #length = 0;

  constructor(tasksMax: number) {
    this.#tasksMax = tasksMax;
  }

  get length(): number {
    return this.#length;
  }

  /** Tenants with waiting tasks. */
  get tenants(): Iterable<TenantId> {
    return this.#tenants.keys();
  }

  hasOf(tenant: TenantId): boolean {
    return this.#tenants.has(tenant);
  }

  /** Returns the task that is refused because too many wait: the last one of the room with the most, or `task` itself. */
  add(room: RoomKey, task: Task): Task | undefined {
    let refused: Task | undefined;
    if (this.#length >= this.#tasksMax) {
      const crowded = this.#roomToShorten(room);
      if (crowded === undefined) return task;
      refused = this.#remove(crowded, (tasks) => tasks.pop()!);
    }
    const tenant = tenantOf(room);
    const ofTenant = this.#tenants.get(tenant) ?? { rooms: new Map<RoomKey, Task[]>(), used: new UsedTime<RoomKey>(), waiting: 0 };
    this.#tenants.set(tenant, ofTenant);
    const tasks = ofTenant.rooms.get(room);
    if (tasks === undefined) ofTenant.rooms.set(room, [task]);
    else tasks.push(task);
    ofTenant.waiting += 1;
    this.#length += 1;
    return refused;
  }

  /** The next task of the tenants that may have one. Undefined: none of their tasks waits. */
  next(mayRun: (tenant: TenantId) => boolean = () => true): Task | undefined {
    const tenants = [...this.#tenants.keys()].filter(mayRun);
    if (tenants.length === 0) return undefined;
    const { rooms, used } = this.#tenants.get(this.#used.least(tenants))!;
    return this.#remove(used.least(rooms.keys()), (tasks) => tasks.shift()!);
  }

  /** A task of the room has used a thread. While no task waits, nobody is disadvantaged, so nothing is counted. */
  charge(room: RoomKey, ms: number): void {
    if (this.#length === 0) return void (this.#used = new UsedTime());
    this.#used.add(tenantOf(room), ms);
    this.#tenants.get(tenantOf(room))?.used.add(room, ms);
  }

  /** The room with the most tasks, in the tenant with the most. Undefined: the given room would then have as many. */
  #roomToShorten(room: RoomKey): RoomKey | undefined {
    const own = this.#tenants.get(tenantOf(room));
    const largest = greatest(this.#tenants.values(), ({ waiting }) => waiting);
    const isOther = largest !== own && largest.waiting > (own?.waiting ?? 0) + 1;
    const { rooms } = isOther || own === undefined ? largest : own;
    const [crowded, tasks] = greatest(rooms, ([, waiting]) => waiting.length);
    return isOther || tasks.length > (rooms.get(room)?.length ?? 0) + 1 ? crowded : undefined;
  }

  #remove(room: RoomKey, take: (tasks: Task[]) => Task): Task {
    const ofTenant = this.#tenants.get(tenantOf(room))!;
    const tasks = ofTenant.rooms.get(room)!;
    const task = take(tasks);
    if (tasks.length === 0) ofTenant.rooms.delete(room);
    ofTenant.waiting -= 1;
    if (ofTenant.waiting === 0) this.#tenants.delete(tenantOf(room));
    this.#length -= 1;
    return task;
  }
}

/** Limit of keys whose time is known. Above it, the key that used a thread first is forgotten. */
const KEYS_MAX = 10_000;

/** Time that each key has used, at least as much as the last one that was chosen: a new key begins there (start-time fair queueing). */
export class UsedTime<Key> {
  readonly #msByKey = new Map<Key, number>();
  #chosenMs = 0;

  get size(): number {
    return this.#msByKey.size;
  }

  add(key: Key, ms: number): void {
    this.#msByKey.set(key, this.#msOf(key) + ms);
    const [first] = this.#msByKey.keys();
    if (this.#msByKey.size > KEYS_MAX) this.#msByKey.delete(first!);
  }

  /** The first of the keys that used least. There is at least one key. */
  least(keys: Iterable<Key>): Key {
    let [chosen, leastMs]: [Key | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
    for (const key of keys) {
      const ms = this.#msOf(key);
      if (ms < leastMs) [chosen, leastMs] = [key, ms];
      if (ms === this.#chosenMs) break; // No key used less, so many new keys are not searched.
    }
    if (leastMs > this.#chosenMs) this.#advance(leastMs);
    return chosen!;
  }

  #advance(chosenMs: number): void {
    this.#chosenMs = chosenMs;
    for (const [key, ms] of this.#msByKey) if (ms <= chosenMs) this.#msByKey.delete(key);
  }

  #msOf(key: Key): number {
    return Math.max(this.#chosenMs, this.#msByKey.get(key) ?? 0);
  }
}

/** The first of the items with the highest value. There is at least one item. */
function greatest<Item>(items: Iterable<Item>, valueOf: (item: Item) => number): Item {
  return [...items].reduce((best, item) => (valueOf(item) > valueOf(best) ? item : best));
}
