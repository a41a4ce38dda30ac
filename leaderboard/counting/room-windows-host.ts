/**
 * The windows that a room has points in: before a batch is counted in them they are put down for closing, and who gets
 * points is told to the tenant's; and what the room came to in each, once it is counted.
 */

import type { RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Batch, BoardsDump } from "../boards/board.ts";
import { type Window, windowsAt } from "../boards/windows.ts";
import type { Closings, TenantBoards } from "../ports.ts";
import type { Source } from "./instants.ts";
import { Totals } from "./totals-host.ts";

export type RoomWindowsPorts = {
  readonly closings: Pick<Closings, "open">;
  readonly tenants: Pick<TenantBoards, "meet" | "tell">;
};

export class RoomWindows {
  readonly #room: RoomKey;
  readonly #partition: number;
  readonly #ports: RoomWindowsPorts;
  /** They may have points and are not in the archive, by id. */
  readonly #windows = new Map<string, Window>();
  readonly #totals: Totals;
  /** For each stream, the end of the hour that was last entered: what is older lies in windows that are known. */
  readonly #hourEnds: Record<Source, number> = { edits: 0, activities: 0 };
  readonly #registered = new Set<string>();
  /** Users whom the tenant's windows were told of in this hour. */
  #met: { readonly hour: string; readonly users: Set<UserId> } = { hour: "", users: new Set() };

  constructor(room: RoomKey, partition: number, ports: RoomWindowsPorts) {
    this.#room = room;
    this.#partition = partition;
    this.#ports = ports;
    this.#totals = new Totals(room, ports.tenants);
  }

  get all(): readonly Window[] {
    return [...this.#windows.values()];
  }

  /** Whether the tenant's board of rooms has what this one came to. */
  get areTold(): boolean {
    return this.#totals.areTold;
  }

  know(windows: readonly Window[]): void {
    for (const window of windows) {
      this.#windows.set(window.id, window);
      this.#totals.receive(window); // A leaderboard may have died before it was told.
    }
  }

  forget(id: string): void {
    this.#windows.delete(id);
  }

  /** Something of that time came on a stream. */
  enter(source: Source, time: UnixMillis): void {
    if (time < this.#hourEnds[source]) return;
    const windows = windowsAt(time);
    this.#hourEnds[source] = windows[0]!.end;
    this.know(windows);
  }

  /** Before the batch is applied. */
  async prepare({ windows, awards }: Batch): Promise<void> {
    await this.#register(windows);
    await this.#meet(windows, awards);
  }

  /** Before boards are put back: as if each had just been counted. */
  async prepareRestore(boards: BoardsDump["boards"]): Promise<void> {
    await this.#ports.closings.open(
      this.#partition,
      this.#room,
      boards.map(({ window }) => window),
    );
    for (const { window, standings } of boards) {
      const users = standings.map(({ member }) => member);
      await this.#ports.tenants.meet(this.#room, [window], users);
    }
  }

  /** Brings the tenant's board of rooms up to date. */
  tellTotals(): Promise<void> {
    return this.#totals.tell();
  }

  async #register(windows: readonly Window[]): Promise<void> {
    const fresh = windows.filter(({ id, kind }) => kind !== "all" && !this.#registered.has(id));
    if (fresh.length === 0) return;
    await this.#ports.closings.open(this.#partition, this.#room, fresh);
    this.#registered.clear();
    for (const { id } of windows) this.#registered.add(id);
  }

  /** Who was met in this hour was met in all windows of it. */
  async #meet(windows: Batch["windows"], awards: Batch["awards"]): Promise<void> {
    const [hour] = windows;
    if (hour !== undefined && this.#met.hour !== hour.id) this.#met = { hour: hour.id, users: new Set() };
    const fresh = new Set<UserId>();
    for (const ofRole of awards.values()) for (const { member } of ofRole) if (!this.#met.users.has(member)) fresh.add(member);
    if (fresh.size === 0) return;
    await this.#ports.tenants.meet(this.#room, windows, [...fresh]);
    for (const user of fresh) this.#met.users.add(user);
  }
}
