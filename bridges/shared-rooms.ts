/** The copies of rooms that clients use now. Clients of different tenants never share one. Rule YRC9. */

import type { RoomId } from "../shared/ids.ts";
import { RoomCopy, type RoomCopyDeps, type RoomCopyOptions } from "./room-copy.ts";

type SharedRoomsDeps = RoomCopyDeps & { readonly reportRooms: (count: number) => void };

export class SharedRooms {
  readonly #options: RoomCopyOptions;
  readonly #deps: SharedRoomsDeps;
  readonly #rooms = new Map<string, { readonly copy: RoomCopy; users: number }>();

  constructor(options: RoomCopyOptions, deps: SharedRoomsDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** The copy is kept until every user has released it. A copy that was lost is replaced. */
  take(tenant: string, room: RoomId): { readonly copy: RoomCopy; readonly release: () => void } {
    const key = `${tenant}/${room}`;
    const known = this.#rooms.get(key);
    const entry = known !== undefined && !known.copy.isLost ? known : { copy: new RoomCopy(this.#options, this.#deps), users: 0 };
    this.#rooms.set(key, entry);
    entry.users += 1;
    this.#deps.reportRooms(this.#rooms.size);
    const release = (): void => {
      entry.users -= 1;
      if (entry.users === 0 && this.#rooms.get(key) === entry) this.#rooms.delete(key);
      this.#deps.reportRooms(this.#rooms.size);
    };
    return { copy: entry.copy, release };
  }
}
